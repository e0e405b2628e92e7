"""What a check shows under its cell: points, each case, and what to look at, as text and HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass

from course.grading.judge import Verdict

_MAX_PRINTED_LINES = 20


@dataclass(frozen=True)
class Report:
    """The verdicts on one exercise. note: shown instead when nothing was judged."""

    exercise: str
    title: str
    verdicts: tuple[Verdict, ...]
    points: float
    max_points: int
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether every case passed. False when nothing was judged."""
        return bool(self.verdicts) and all(verdict.passed for verdict in self.verdicts)

    def __str__(self) -> str:
        if self.note:
            return f"{self.exercise}: {self.note}"
        lines = [self._headline()]
        told: dict[str, str] = {}
        for verdict in self.verdicts:
            lines.append(f"  {_state(verdict)}  {verdict.case}{_tag(verdict)}")
            lines += [f"      {line}" for line in _message(verdict, told).splitlines()]
        lines += [f"  | {line}" for line in self._printed()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if self.note:
            return f"<p><b>{html.escape(self.exercise)}</b>: {html.escape(self.note)}</p>"
        told: dict[str, str] = {}
        rows = "".join(_row(verdict, _message(verdict, told)) for verdict in self.verdicts)
        printed = html.escape("\n".join(self._printed()))
        summary = "<summary>What the function printed</summary>"
        shown = f"<details open>{summary}<pre>{printed}</pre></details>" if printed else ""
        return (
            f'<div class="labkit-check"><p><b>{html.escape(self._headline())}</b></p>'
            f"<table><tbody>{rows}</tbody></table>{shown}</div>"
        )

    def _headline(self) -> str:
        number = sum(verdict.passed for verdict in self.verdicts)
        return (
            f"{self.title}: {self.points:g} of {self.max_points} points, "
            f"{number} of {len(self.verdicts)} cases passed"
        )

    def _printed(self) -> list[str]:
        """What was printed in the first case that failed, or else in the first that printed."""
        ordered = sorted(self.verdicts, key=lambda verdict: verdict.passed)
        text = next((verdict.printed for verdict in ordered if verdict.printed), "")
        lines = text.splitlines()
        if len(lines) > _MAX_PRINTED_LINES:
            more = f"... {len(lines) - _MAX_PRINTED_LINES} more lines"
            lines = [*lines[:_MAX_PRINTED_LINES], more]
        return lines


def _state(verdict: Verdict) -> str:
    return "passed" if verdict.passed else "FAILED"


def _tag(verdict: Verdict) -> str:
    return f" [{verdict.key}]" if verdict.key else ""


def _message(verdict: Verdict, told: dict[str, str]) -> str:
    """The message, or where it stands already."""
    if not verdict.message:
        return ""
    if verdict.message in told:
        return f"as in {told[verdict.message]!r}"
    told[verdict.message] = verdict.case
    return verdict.message


def _row(verdict: Verdict, message: str) -> str:
    cell = '<td style="text-align:left;vertical-align:top;{}">{}</td>'
    state = cell.format("white-space:nowrap", "passed" if verdict.passed else "<b>FAILED</b>")
    key = f"<br><code>{html.escape(verdict.key)}</code>" if verdict.key else ""
    name = cell.format("", html.escape(verdict.case) + key)
    text = cell.format("white-space:pre-wrap", html.escape(message))
    return f"<tr>{state}{name}{text}</tr>"
