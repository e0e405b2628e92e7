"""The shard explorer: every choice answered, on paper as well, and nothing said that is not so."""

import json
from itertools import product

import pytest

from course.widgets.shard_explorer import ShardExplorer
from course.widgets.shard_outcome import SIZES, outcome, size_of
from course.widgets.shard_tables import legal_table, refused_table
from course.widgets.shard_view import CONTROLS, MODELS, choice, view
from labkit.plan.holdings import holdings
from labkit.plan.layout import LayoutError, validate
from labkit.plan.presets import PRESETS

LLAMA = PRESETS["llama-3.1-70b"]


def reasons_of_layout(model: str, tp: int, uneven: bool) -> tuple[str, ...]:
    try:
        validate(PRESETS[model].spec, tp=tp, allow_uneven_heads=uneven)
    except LayoutError as refused:
        return refused.reasons
    return ()


@pytest.mark.parametrize("model", MODELS)
def test_a_choice_is_refused_with_exactly_the_reasons_of_the_layout(model: str):
    for tp, uneven in product(SIZES, (False, True)):
        answer = view({**choice(model, tp), "uneven": int(uneven)})
        assert answer.reasons == reasons_of_layout(model, tp, uneven)
        assert answer.is_good == (not answer.reasons)
        assert len(answer.rows) == (tp if answer.is_good else 0)


@pytest.mark.parametrize("model", MODELS)
def test_buttons_of_a_refused_size_lead_to_legal_sizes(model: str):
    for tp in SIZES:
        answer = view(choice(model, tp))
        targets = [SIZES[jump.choice["tp"]] for jump in answer.jumps]
        assert bool(targets) == bool(answer.reasons)
        assert not any(reasons_of_layout(model, target, False) for target in targets)


def test_nearest_sizes_are_said_on_paper_and_are_buttons_in_the_page():
    refused = ShardExplorer("llama-3.1-70b", tp=5)
    assert "Nearest legal: TP 4 and TP 8." in refused.static()[1]
    shown = view(choice("llama-3.1-70b", 5))
    assert [jump.text for jump in shown.jumps] == ["Show TP 4", "Show TP 8"]
    assert not [line for line in shown.sentences if "Nearest" in line]


def test_cost_of_a_kv_replica_is_said_in_bytes():
    held = holdings(LLAMA.spec, 16)
    said = " ".join(outcome(LLAMA, 16).sentences)
    assert "each KV head lives on 2 ranks" in said
    assert f"costs {size_of(held.kv_head_weight_bytes)} of weights" in said
    assert f"{size_of(held.kv_head_bytes_per_token)} of KV cache for every token" in said
    assert size_of(held.extra_kv_bytes_per_token) in said
    assert "lives on one rank" in " ".join(outcome(LLAMA, 8).sentences)


def test_padding_is_said_and_drawn_where_it_is():
    answer = view(choice("smollm2-360m", 5))
    assert "padded with 128 rows of zeros" in " ".join(answer.sentences)
    [last] = [cell for cell in answer.rows[-1][1] if "padding" in cell.note]
    assert last.note == "+ 128 padding"
    assert [bar.look for bar in last.bars] == ["first", "filler"]
    assert not any("padding" in cell.note for _, cells in answer.rows[:-1] for cell in cells)


def test_uneven_heads_are_offered_where_they_would_help():
    strict = outcome(PRESETS["smollm2-135m"], 2)
    assert "6 and 3 query heads" in " ".join(strict.sentences)
    uneven = outcome(PRESETS["smollm2-135m"], 2, allow_uneven_heads=True)
    assert uneven.held is not None
    assert "Ranks hold 6 and 3 query heads" in " ".join(uneven.sentences)


@pytest.mark.parametrize(("model", "tp"), [("llama-3.1-70b", 16), ("smollm2-360m", 5)])
def test_bars_tile_their_tracks_and_copies_look_different(model: str, tp: int):
    answer = view(choice(model, tp))
    held = holdings(PRESETS[model].spec, tp)
    for column in range(4):
        bars = [bar for _, cells in answer.rows for bar in cells[column].bars]
        first = [bar for bar in bars if bar.look != "again"]
        assert sum(bar.width for bar in first) == pytest.approx(100)
        assert len(bars) - len(first) == (held.extra_kv_heads if column == 1 else 0)
    norms = [cells[4].bars[0].look for _, cells in answer.rows]
    assert norms == ["first", *["again"] * (tp - 1)]


def test_paper_has_every_size_and_the_cost_of_a_copy():
    html, text = ShardExplorer().static()
    for shown in (html, text):
        assert "One more copy of a KV head costs 320 MiB of weights" in shown
        assert "40 KiB of KV cache for every token" in shown
        assert "64 attention heads do not divide over TP n" in shown
        assert "3, 5, 6, 9, 10, 11, 12, 13, 15" in shown
        assert LLAMA.source.url in shown
        assert all(preset.title in shown for preset in PRESETS.values())
    sizes = [str(row[0]) for table in (legal_table, refused_table) for row in table(LLAMA).rows]
    assert sorted(map(int, ", ".join(sizes).split(", "))) == list(SIZES)


def test_paper_of_a_refused_start_gives_its_reasons_and_no_picture():
    explorer = ShardExplorer("smollm2-135m", 4)
    assert "9 attention heads do not divide over TP 4" in explorer.static()[1]
    assert explorer.pictures() == []


def test_picture_says_in_words_what_it_draws():
    [(data, metadata)] = ShardExplorer().pictures()
    assert "rank 1: query heads 4\N{EN DASH}7, KV heads 0 (copy 2)" in data["text/plain"]
    title = "Llama 3.1 70B over 16 ranks: each KV head is held by 2 of them"
    assert metadata["image/png"]["alt"] == title
    assert data["text/plain"].startswith(title)


def test_unknown_model_and_size_are_refused_by_sentences():
    with pytest.raises(ValueError, match="there is no model 'gpt-2' here; there are smollm2"):
        ShardExplorer("gpt-2")
    with pytest.raises(ValueError, match="TP 17 is not offered; choose 1 to 16"):
        ShardExplorer(tp=17)


def test_widget_starts_where_the_paper_does_and_holds_plain_data():
    explorer = ShardExplorer("llama-3.1-8b", 4)
    widget = explorer.make_widget()
    assert widget.view["headline"] == explorer.start.headline
    assert len(widget.answers) == 1 + sum(len(control.options) - 1 for control in CONTROLS)
    assert "Llama 3.1 8B over 8 ranks: legal." in json.dumps(widget.answers)
