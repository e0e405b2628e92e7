"""A decode step timed: what is counted, what is modelled, and that recording can be left out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from labkit.experiments.decode_time import (
    DecodeTime,
    decode_step,
    median_step_seconds,
    predict_step,
    talking_through,
    time_decode_steps,
)
from labkit.experiments.provenance import Provenance
from labkit.experiments.tensor_parallel import load_traced
from labkit.experiments.weight_gathering import load_gathered
from labkit.models.llama import load_model
from labkit.plan.decoder import DecoderSpec
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import TracedComm

Pools = Callable[[int], RankPool]
PROMPT = [5, 6, 7]


def decode_time(ranks: int, step_seconds: float, weight_bytes: int) -> DecodeTime:
    return DecodeTime(
        ranks=ranks,
        steps=1,
        step_seconds=step_seconds,
        traced_step_seconds=step_seconds * 1.25,
        collective_seconds=step_seconds / 2,
        lone_collective_seconds=1e-3,
        num_collectives=10,
        weight_bytes=weight_bytes,
        provenance=Provenance.here(),
    )


@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_rank_returns_the_same_time_of_counted_collectives(
    pool: Pools, tiny: Path, size: int
):
    spec = DecoderSpec.from_hf(tiny)
    model = pool(size).put(load_traced, tiny)
    first, *others = pool(size).run(time_decode_steps, model, PROMPT, steps=2)
    same = [replace(other, provenance=first.provenance) for other in others]
    assert same == [first] * (size - 1)
    assert (first.ranks, first.steps) == (size, 2)
    assert first.num_collectives == (2 + 2 * spec.num_layers if size > 1 else 0)
    assert first.step_seconds > 0
    assert 0 <= first.collective_share < 1
    assert (first.collective_seconds > 0) == (first.lone_collective_seconds > 0) == (size > 1)
    assert first.provenance.label == "measured"


def test_one_rank_reads_all_weights_but_the_embedding_it_only_looks_up(pool: Pools, tiny: Path):
    spec = DecoderSpec.from_hf(tiny)
    [time] = pool(1).run(time_decode_steps, pool(1).put(load_traced, tiny), PROMPT, steps=1)
    looked_up = 0 if spec.tie_word_embeddings else spec.vocab_size * spec.hidden_size
    assert time.weight_bytes == 4 * (spec.num_parameters - looked_up)


def test_step_is_modelled_by_weights_over_bandwidth_plus_collectives():
    one, three = decode_time(1, 0.2, 600), decode_time(3, 0.5, 240)
    prediction = predict_step(one, three)
    assert prediction.bandwidth == pytest.approx(3000)
    assert prediction.weight_seconds == pytest.approx(0.08)
    assert prediction.collective_seconds == pytest.approx(0.01)
    assert prediction.modelled_seconds == pytest.approx(0.09)
    assert prediction.gap_seconds == pytest.approx(0.41)


def test_share_and_cost_of_recording_refer_to_the_traced_step():
    time = decode_time(2, 0.4, 1)
    assert time.collective_share == pytest.approx(0.2 / 0.5)
    assert time.tracing_seconds == pytest.approx(0.1)


def test_prediction_starts_from_one_rank():
    with pytest.raises(ValueError, match="the first time is over 2"):
        predict_step(decode_time(2, 0.1, 1), decode_time(3, 0.1, 1))


def test_untraced_model_is_refused(tiny: Path):
    comm = Comm.solo()
    with pytest.raises(TypeError, match="load_traced"):
        time_decode_steps(comm, load_model(tiny, comm), PROMPT)


def test_nothing_is_recorded_while_layers_talk_through_the_plain_comm(tiny: Path):
    comm = Comm.solo()
    model = load_traced(comm, tiny)
    traced = model.comm
    assert isinstance(traced, TracedComm)
    step = decode_step(comm, model, PROMPT)
    traced.trace.clear()
    with talking_through(comm, model):
        step()
    assert len(traced.trace) == 0
    step()
    assert len(traced.trace) == 2 * model.spec.num_layers + 1


def test_a_step_can_be_repeated_at_the_same_position(tiny: Path):
    step = decode_step(Comm.solo(), load_traced(Comm.solo(), tiny), PROMPT)
    for _ in range(5):  # one more token would not fit
        step()


def test_a_model_that_gathers_its_weights_can_be_timed_too(pool: Pools, tiny: Path):
    model = pool(2).put(load_gathered, tiny)
    assert min(pool(2).run(median_step_seconds, model, PROMPT, steps=1)) > 0


def test_the_fullest_rank_sets_the_bytes_of_uneven_halves(pool: Pools, smollm2: Path):
    model = pool(2).put(load_traced, smollm2, allow_uneven_heads=True)
    time = pool(2).run(time_decode_steps, model, PROMPT, steps=1)[0]
    assert time.num_collectives == 62
    assert time.weight_bytes > 4 * DecoderSpec.from_hf(smollm2).num_parameters / 2
