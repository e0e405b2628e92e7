"""JavaScript and CSS of the widgets: plain modules of this package, nothing from a network."""

from importlib.resources import files

_PARTS = {"explorer": ("chart",)}
"""Widget -> the files that its own needs besides `page.js`."""


def javascript(name: str) -> str:
    """The ES module of a widget: what all share (`page.js`), its parts, then `<name>.js`."""
    files_of = ("page", *_PARTS.get(name, ()), name)
    return "\n".join(_read(f"{file}.js") for file in files_of)


def stylesheet(name: str = "") -> str:
    """The CSS that all widgets share (`page.css`), then `<name>.css` if a name is given."""
    return _read("page.css") + (f"\n{_read(f'{name}.css')}" if name else "")


def _read(file: str) -> str:
    return files("course.widgets").joinpath(file).read_text(encoding="utf-8")
