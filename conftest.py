"""Two things that nbval does not see, made failures of the cell.

A reply that says `error`: nbval looks for an error message among the outputs and ignores the
reply's status. An unknown magic ends the cell with a line on stderr and no such message, so the
cell would count as passed though the rest of it never ran.

A kernel that died: nbval would wait for it until the cell's timeout.
"""

import os
import time
from collections.abc import Generator
from queue import Empty
from typing import Any

import pytest

POLL_SECONDS = 0.5
MODEL, MODEL_TAG = "smollm2-135m", "needs-smollm2"


def is_notebook_cell(item: pytest.Item) -> bool:
    return hasattr(item, "raise_cell_error")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    kernel = item.parent.kernel if is_notebook_cell(item) else None
    if kernel is None:
        return (yield)

    receive = kernel.get_message
    failures: list[dict[str, Any]] = []

    def get_message(stream: str, timeout: float | None = None) -> dict[str, Any]:
        if stream != "shell":
            return receive(stream, timeout=timeout)
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            try:
                message = receive(stream, timeout=POLL_SECONDS)
                break
            except Empty:
                if not kernel.is_alive():
                    item.raise_cell_error("The kernel died")
                if time.monotonic() > deadline:
                    raise
        if message["content"].get("status") == "error":
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Outputs that only SmolLM2 gives are not compared where it was not fetched."""
    needing = [
        item
        for item in items
        if is_notebook_cell(item) and MODEL_TAG in item.cell.metadata.get("tags", [])  # type: ignore[attr-defined]
    ]
    if needing and not _must_have_model() and not _is_model_present():
        for item in needing:
            item.options["check"] = False  # type: ignore[attr-defined]


def _must_have_model() -> bool:
    return os.environ.get("LABKIT_REQUIRE_MODEL") == "1"


def _is_model_present() -> bool:
    from labkit.models.library import is_present

    return is_present(MODEL)
