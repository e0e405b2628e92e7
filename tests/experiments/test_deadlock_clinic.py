"""The clinic's programs hang for the reason they are there for, and their cures end."""

import inspect
import time
from collections.abc import Callable

import pytest

from labkit.experiments import deadlock_clinic as clinic
from labkit.ranks.pool import RankPool


@pytest.fixture(scope="module")
def diagnoses() -> dict[str, clinic.Diagnosis]:
    return {found.name: found for found in clinic.diagnose_all(stall_seconds=0.5)}


def test_every_program_that_cannot_end_is_ended_and_diagnosed(
    diagnoses: dict[str, clinic.Diagnosis],
):
    assert list(diagnoses) == list(clinic.PATIENTS)
    assert all("waits in" in found.message for found in diagnoses.values())


@pytest.mark.parametrize(
    ("name", "culprit", "said"),
    [
        ("pass_around", 0, "the ranks wait for each other: rank 0 in recv float32 (4,) from rank"),
        ("count_words", 2, "rank 2 has returned without calling all_reduce"),
        ("log_and_step", 0, "rank 0 in all_reduce float32 (1,) [logs"),
    ],
)
def test_the_diagnosis_names_the_rank_and_the_call(
    diagnoses: dict[str, clinic.Diagnosis], name: str, culprit: int, said: str
):
    assert diagnoses[name].culprit == culprit
    assert said in diagnoses[name].summary


def test_the_diagnosis_shows_the_program_that_ran(diagnoses: dict[str, clinic.Diagnosis]):
    for name, found in diagnoses.items():
        assert found.source == inspect.getsource(clinic.PATIENTS[name]).rstrip()


def test_every_cured_program_ends_with_the_right_result(pool: Callable[[int], RankPool]):
    assert clinic.run_cured(pool(3)) == {
        "pass_around": [2.0, 0.0, 1.0],
        "count_words": [12.0, 12.0, 12.0],
        "log_and_step": [3.0, 3.0, 3.0],
    }
    assert set(clinic.CURED) == set(clinic.PATIENTS)


def test_a_wrong_name_lists_the_programs(pool: Callable[[int], RankPool]):
    with pytest.raises(LookupError, match="'nobody'; there are pass_around, count_words"):
        clinic.diagnose("nobody", pool(3))


def test_a_patient_that_ends_is_an_error(
    pool: Callable[[int], RankPool], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(clinic, "PATIENTS", {"well": clinic.count_words_cured})
    with pytest.raises(RuntimeError, match="well ended"):
        clinic.diagnose("well", pool(3))


def test_a_standstill_is_watched_for_as_long_as_asked():
    started = time.monotonic()
    with RankPool(2, stall_timeout=0.4) as patient_ward:
        clinic.diagnose("pass_around", patient_ward)
    assert time.monotonic() - started >= 0.4
