"""A Pareto set has every point that nothing beats, and no other."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from labkit.plan.device_presets import device
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.pareto import ParetoPoint, pareto_set
from labkit.plan.search import SLO, Objective, Question, search

POINTS = st.builds(
    ParetoPoint,
    st.just(Layout()),
    st.integers(1, 64),
    st.sampled_from([0.01, 0.02, 0.03, 0.05]),
    st.sampled_from([10.0, 20.0, 40.0, 80.0]),
)


@given(st.lists(POINTS, max_size=20))
def test_what_is_kept_is_beaten_by_nothing_and_what_is_not_is_beaten_or_equal(points):
    kept = pareto_set(points)
    for point in kept:
        assert not any(other.beats(point) for other in points)
    for point in points:
        assert point in kept or any(
            other.beats(point)
            or (other.tpot, other.tokens_per_second_per_gpu)
            == (point.tpot, point.tokens_per_second_per_gpu)
            for other in kept
        )


def test_a_search_trades_the_speed_of_one_user_against_the_gpus():
    model = resolve_model("llama-3.1-8b")
    question = Question(model, device("h100"), 8, Objective.THROUGHPUT_PER_GPU, slo=SLO(tpot=0.02))
    answer = search(question)
    speeds = [point.user_tokens_per_second for point in answer.pareto]
    rates = [point.tokens_per_second_per_gpu for point in answer.pareto]
    assert speeds == sorted(speeds, reverse=True)
    assert rates == sorted(rates)
    assert len({point.layout for point in answer.pareto}) > 1
    assert answer.pareto[0].layout.tp > answer.pareto[-1].layout.tp
    assert not any(point.beats(answer.best.pareto_point) for point in answer.pareto)
    given = search(replace(question, batch=4))
    assert {point.batch for point in given.pareto} == {4}
