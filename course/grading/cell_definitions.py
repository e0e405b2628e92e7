"""What a cell imports and defines, without what it does: it can run where the cell itself may not.

A cell as IPython reads it: lines that start with % or ! are its commands, not Python.
"""

from __future__ import annotations

import ast
import re

_COMMAND = re.compile(r"(?m)^([ \t]*)[%!].*$")
_WRITES_A_FILE = re.compile(r"\s*%%(writefile|file)\b")
_DEFINITIONS = (
    ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
)  # fmt: skip


def imports_and_definitions(source: str) -> str:
    """The imports, functions, classes and literal constants of a cell; "" where it has none.

    A cell that only writes a file is left as it is: what it writes may be imported.
    """
    if _WRITES_A_FILE.match(source):
        return source
    if source.lstrip().startswith("%%"):
        return ""
    try:
        statements = ast.parse(_COMMAND.sub(r"\1pass", source)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    kept = [one for one in statements if isinstance(one, _DEFINITIONS) or _is_constant(one)]
    return "\n".join(ast.unparse(one) for one in kept)


def _is_constant(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    try:
        ast.literal_eval(statement.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True
