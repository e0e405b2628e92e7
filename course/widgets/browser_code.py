"""JavaScript and CSS of the widgets: plain modules of this package, nothing from a network."""

from importlib.resources import files


def javascript(name: str) -> str:
    """The ES module of a widget: what all share (`page.js`), then `<name>.js`."""
    return f"{_read('page.js')}\n{_read(f'{name}.js')}"


def stylesheet(name: str = "") -> str:
    """The CSS that all widgets share (`page.css`), then `<name>.css` if a name is given."""
    return _read("page.css") + (f"\n{_read(f'{name}.css')}" if name else "")


def _read(file: str) -> str:
    return files("course.widgets").joinpath(file).read_text(encoding="utf-8")
