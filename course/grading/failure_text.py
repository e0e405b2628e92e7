"""A call that failed, as a diagnosis: which rank, what became of it, where in its code."""

from __future__ import annotations

import re

from course.grading.function_bytes import FunctionProblem
from course.grading.rank_call import StudentError
from labkit.ranks.report import RankError, RankReport, RankTimeout
from labkit.ranks.stack import readable_paths

_CELL = re.compile(r'File "[^"\n]*ipykernel_\d+/\d+\.py"')
_MAX_LINES = 6


def explain_failure(error: RankError, is_plain: bool) -> tuple[str, str]:
    """Key and message. `is_plain`: the function runs on its own, so no rank is named."""
    for report in error.reports:
        if isinstance(report.exception, FunctionProblem):
            return report.exception.key, report.exception.text
    culprit = error.reports[error.rank]
    headline = _headline(culprit, is_plain)
    raised = culprit.exception
    summary = str(error).split("\n")[0]
    is_own = summary == culprit.headline() and not culprit.consequence
    if isinstance(error, RankTimeout):
        told = summary.replace("rank 0", "the function") if is_plain else summary
        advice = "Look for a loop that never ends, or for a message that nobody sends or receives."
        return "hangs", _with_place(f"{told}. {advice}", _stack(culprit))
    if is_own and culprit.state == "died":
        return "died", _with_place(headline, _stack(culprit))
    if is_own and culprit.state == "exited":
        advice = "Return from the function instead."
        return "died", _with_place(f"{headline}. {advice}", _stack(culprit))
    if is_own and isinstance(raised, StudentError):
        if raised.type_name == "NotImplementedError" and not raised.text:
            return (
                "not-written",
                "not written yet: the stub's `raise NotImplementedError()` is reached",
            )
        return "raised", _with_place(headline + _hint(raised), raised.place)
    if is_own and culprit.state == "raised":
        return "raised", _with_place(headline, _stack(culprit))
    if " printed more than " in summary:
        return "hangs", f"{summary}: it prints without end"
    return "collectives-mismatch", _with_place(summary, _stack(culprit))


def _hint(raised: StudentError) -> str:
    """What to do, for errors whose text does not say it."""
    if raised.type_name == "EOFError" and "reading a line" in raised.text:
        return (
            ". It asked for input, and nobody can type on a rank: all that the function needs "
            "comes in its arguments"
        )
    if raised.type_name == "NameError" and "'torch'" in raised.text:
        return ". The cell that imports torch is missing or was not run"
    return ""


def _headline(report: RankReport, is_plain: bool) -> str:
    text = report.headline()
    return text.replace(f"rank {report.rank}", "the function", 1) if is_plain else text


def _stack(report: RankReport) -> str:
    """Where the rank was, without the frames of this package."""
    lines: list[str] = []
    skipping = False
    for line in report.stack.splitlines():
        if line.startswith('File "'):
            skipping = "course/grading/" in line.replace("\\", "/")
        if not skipping:
            lines.append(line)
    return "\n".join(lines)


def _with_place(text: str, place: str) -> str:
    lines = _CELL.sub("your cell", readable_paths(place)).splitlines()
    if len(lines) > _MAX_LINES:
        lines = ["...", *lines[-_MAX_LINES:]]
    return "\n".join([text, *(f"    {line}" for line in lines)])
