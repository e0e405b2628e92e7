"""What a check shows under its cell: the cases, and what to look at, as text and HTML."""

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
            lines.append(f"  {_state(verdict)}  {verdict.case}")
            message = _message(verdict, told) + _tag(verdict)
            lines += [f"      {line}" for line in message.splitlines()]
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
        """Points only where the hidden checks took part: without them they are not the grade."""
        passed = sum(verdict.passed for verdict in self.verdicts)
        untried = sum(verdict.is_untried for verdict in self.verdicts)
        with_hidden = any(verdict.hidden for verdict in self.verdicts)
        kind = "visible and hidden checks" if with_hidden else "visible checks"
        text = f"{self.title}: {passed} of {len(self.verdicts)} {kind} passed"
        if untried:
            text += f", {untried} not tried"
        if with_hidden:
            return f"{text}, {self.points:g} of {self.max_points} points"
        return f"{text}; grading runs more checks, with other seeds and sizes"

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
    return "passed" if verdict.passed else "not tried" if verdict.is_untried else "FAILED"


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
    told = _state(verdict)
    state = cell.format("white-space:nowrap", told if verdict.passed else f"<b>{told}</b>")
    name = cell.format("", html.escape(verdict.case))
    key = f" <small><code>{html.escape(verdict.key)}</code></small>" if verdict.key else ""
    text = cell.format("white-space:pre-wrap", html.escape(message) + key)
    return f"<tr>{state}{name}{text}</tr>"
