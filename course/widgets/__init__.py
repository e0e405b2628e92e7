"""Things to operate on a page: each is a static twin first, then a widget where one can run."""
