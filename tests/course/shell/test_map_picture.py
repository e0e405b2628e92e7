"""A map's picture: SVG and PNG of one drawing, the same bytes each time, with all its words."""

import base64
import html
import re

from sample_lesson import MAP

from course.shell.map_picture import map_picture


def test_bundle_has_svg_png_and_text_for_readers_that_may_not_show_svg():
    bundle, metadata = map_picture(MAP)
    assert set(bundle) == {"image/svg+xml", "image/png", "text/plain"}
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert metadata["image/png"]["alt"] == MAP.title


def test_svg_keeps_its_words_as_text_and_has_a_name():
    svg = map_picture(MAP)[0]["image/svg+xml"]
    assert svg.startswith(f'<svg role="img" aria-label="{MAP.title}"')
    words = html.unescape(" ".join(re.findall(r"<text[^>]*>([^<]*)</text>", svg))).split()
    for titled in (*MAP.nodes, *MAP.edges):
        assert set(titled.title.split()) <= set(words)


def test_same_map_is_drawn_to_the_same_bytes_without_date_or_version():
    map_picture.cache_clear()
    first = map_picture(MAP)[0]
    map_picture.cache_clear()
    assert map_picture(MAP)[0] == first
    assert not re.search(r"dc:date|Matplotlib v", first["image/svg+xml"])
