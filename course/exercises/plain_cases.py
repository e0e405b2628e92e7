"""Cases of plain functions: arguments, the right answer, and what each mistake would answer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from course.exercises.tensor_cases import mistakes, on_every_rank
from course.grading.exercise import Case, case_weight

Wrong = Iterable[tuple[str, Any]]
"""Texts of mistakes, each with the answer that it leads to."""


def plain_case(
    name: str, arguments: Mapping[str, Any], right: Any, wrong: Wrong, messages: Mapping[str, str]
) -> Case:
    """One call of a function without a `comm`; answers equal to the right one are no mistakes.

    `tp` among the arguments is the number of ranks that it is about, and weighs the case.
    """
    shown = [(text, on_every_rank(value)) for text, value in wrong if value != right]
    return Case(
        name=name,
        ranks=0,
        arguments=lambda rank: copy.deepcopy(dict(arguments)),
        expected=on_every_rank(right),
        mistakes=mistakes(messages, shown),
        weight=case_weight(arguments.get("tp", 0)),
    )
