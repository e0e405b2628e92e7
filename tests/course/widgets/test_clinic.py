"""The deadlock clinic: a question for every program, and the same on paper as in the widget."""

import html

import pytest

from course.lessons.collectives_clinic import CASES
from course.widgets.clinic import DeadlockClinic
from labkit.experiments.deadlock_clinic import PATIENTS, Diagnosis, source_of

SAID = "rank 2 has returned without calling all_reduce <x>\n\nrank 2 has returned"
DIAGNOSES = [Diagnosis(name, source_of(run), 2, SAID) for name, run in PATIENTS.items()]


def test_every_program_has_its_question():
    assert set(CASES) == set(PATIENTS)


def test_right_answers_are_not_always_at_the_same_place():
    assert len({case.right for case in CASES.values()}) == len(CASES)


def test_paper_has_source_diagnosis_and_answers():
    body, text = DeadlockClinic(DIAGNOSES).static()
    for diagnosis in DIAGNOSES:
        case = CASES[diagnosis.name]
        assert diagnosis.source in text
        assert diagnosis.message in text
        assert case.options[case.right].text in text
    assert body.count("<details>") == len(DIAGNOSES)
    assert "all_reduce &lt;x&gt;" in body


def test_widget_shows_each_exhibit_with_its_options():
    widget = DeadlockClinic(DIAGNOSES).widget
    assert [quiz["id"] for quiz in widget.quizzes] == [case.id for case in CASES.values()]
    for quiz, diagnosis in zip(widget.quizzes, DIAGNOSES, strict=True):
        assert "all_reduce &lt;x&gt;" in quiz["exhibit"]
        assert html.escape(diagnosis.source) in quiz["exhibit"]
        assert sum(option["isRight"] for option in quiz["options"]) == 1


def test_a_program_without_a_question_is_not_passed_over():
    with pytest.raises(KeyError):
        DeadlockClinic([Diagnosis("unknown", "", 0, "")]).static()
