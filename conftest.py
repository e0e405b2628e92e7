"""Makes nbval believe the kernel: a cell whose reply says `error` fails, whatever it printed.

nbval looks for an error message among a cell's outputs and ignores the status of the reply. An
unknown magic prints to stderr and ends the cell without such a message, so nbval would count the
cell as passed and never notice that the rest of it did not run.
"""

from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    kernel = getattr(item.parent, "kernel", None)
    if kernel is None or not hasattr(item, "raise_cell_error"):
        return (yield)

    receive = kernel.get_message
    failures: list[dict[str, Any]] = []

    def get_message(stream: str, timeout: float | None = None) -> dict[str, Any]:
        message = receive(stream, timeout=timeout)
        if stream == "shell" and message["content"].get("status") == "error":
            failures.append(message["content"])
        return message

    kernel.get_message = get_message
    try:
        outcome = yield
    finally:
        kernel.get_message = receive
    if failures and not item.options["check_exception"]:
        reply = failures[-1]
        item.raise_cell_error(
            f"The kernel reports {reply.get('ename')}: {reply.get('evalue')}",
            "\n".join(reply.get("traceback", [])),
        )
    return outcome
