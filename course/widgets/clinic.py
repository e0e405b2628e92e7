"""The deadlock clinic: read a program and what the pool said about it, and name the fault."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from course.labels import Label
from course.lessons.collectives_clinic import CASES
from course.shell import static
from course.shell.section import quiz_for_browser
from course.widgets.twin import Twinned

if TYPE_CHECKING:
    from course.widgets.clinic_widget import ClinicWidget
    from labkit.experiments.deadlock_clinic import Diagnosis


class DeadlockClinic(Twinned):
    """Three programs that hung, one after the other: source, diagnosis, and a question.

    diagnoses: what `labkit.experiments.deadlock_clinic.diagnose_all` returned. In the saved page
    each answer is in a fold of its own; the widget checks the answers and counts them.
    """

    title = "The clinic as text, with its answers"

    def __init__(self, diagnoses: Sequence[Diagnosis]) -> None:
        self.diagnoses = tuple(diagnoses)

    def static(self) -> tuple[str, str]:
        parts = []
        for number, diagnosis in enumerate(self.diagnoses, 1):
            body, text = static.quiz(number, CASES[diagnosis.name])
            parts.append((exhibit(diagnosis) + body, f"{_as_text(diagnosis)}\n\n{text}"))
        return "".join(body for body, _ in parts), "\n\n".join(text for _, text in parts)

    def make_widget(self) -> ClinicWidget:
        from course.widgets.clinic_widget import ClinicWidget

        return ClinicWidget(
            quizzes=[
                quiz_for_browser(CASES[diagnosis.name]) | {"exhibit": exhibit(diagnosis)}
                for diagnosis in self.diagnoses
            ]
        )


def exhibit(diagnosis: Diagnosis) -> str:
    """The program and its diagnosis as HTML."""
    return (
        f"<p>The program:</p><pre>{html.escape(diagnosis.source)}</pre>"
        f"<p>What the pool said ({Label.MEASURED}):</p>"
        f"<pre>{html.escape(diagnosis.message)}</pre>"
    )


def _as_text(diagnosis: Diagnosis) -> str:
    said = f"What the pool said ({Label.MEASURED}):"
    return f"{diagnosis.source}\n\n{said}\n{diagnosis.message}"
