"""Ranks shared by the tests of the judge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from course.grading.case_run import JudgePools


@pytest.fixture(scope="session")
def judge_pools() -> Iterator[JudgePools]:
    """The pools that `judge` may use, started once for all tests."""
    with JudgePools() as pools:
        yield pools
