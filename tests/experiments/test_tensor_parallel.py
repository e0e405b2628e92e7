"""What notebook 02 claims: sizes agree, shares add up, one decode step is counted to the call."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from labkit.experiments import tensor_parallel as experiment
from labkit.experiments.tensor_parallel import Agreement, Reading, compare, verdicts
from labkit.models.checkpoint import open_checkpoint
from labkit.models.llama import load_model
from labkit.plan.decoder import DecoderSpec
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import Trace, diff_traces

Pools = Callable[[int], RankPool]
TEXT = list(range(5, 25))


def reading(logits: list[list[float]], new_ids: tuple[int, ...], size: int = 1) -> Reading:
    return Reading(size, torch.tensor(logits), new_ids)


def test_compare_counts_positions_and_the_common_beginning():
    one = reading([[0.0, 1.0], [3.0, 1.0]], (7, 8, 9))
    other = reading([[0.5, 1.0], [3.0, 3.25]], (7, 8, 5), size=3)
    agreement = compare(one, other)
    assert agreement == Agreement((1, 3), 2, 2.25, 1, 3, 2)
    assert not agreement.is_same_text
    assert compare(one, one).is_same_text


def test_compare_of_continuations_of_different_length_is_no_same_text():
    one = reading([[0.0]], (7, 8))
    assert not compare(one, replace(one, new_ids=(7,))).is_same_text


def test_compare_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"\(1, 2\) and \(1, 1\)"):
        compare(reading([[0.0, 1.0]], ()), reading([[0.0]], ()))


@pytest.mark.parametrize("size", [2, 4])
def test_tiny_reads_the_same_over_several_ranks(pool: Pools, tiny: Path, size: int):
    whole = pool(1).put(experiment.load_traced, tiny)
    parts = pool(size).put(experiment.load_traced, tiny)
    [one] = pool(1).run(experiment.read, whole, TEXT, TEXT[:3], 8)
    cut = pool(size).run(experiment.read, parts, TEXT, TEXT[:3], 8)
    assert cut[1:] == [None] * (size - 1)
    agreement = compare(one, cut[0])
    assert agreement.positions == agreement.same_argmax == len(TEXT)
    assert agreement.max_abs_difference < 1e-3
    assert agreement.is_same_text


@pytest.mark.parametrize("size", [2, 4])
def test_one_decode_step_makes_the_collectives_the_layers_promise(
    pool: Pools, tiny: Path, size: int
):
    spec = DecoderSpec.from_hf(tiny)
    model = pool(size).put(experiment.load_traced, tiny)
    traces: list[Trace] = pool(size).run(experiment.trace_decode_step, model, TEXT)
    for trace in traces:
        assert trace.count_by_op() == {"all_reduce": 2 * spec.num_layers + 1, "all_gather": 1}
        reduced = {event.payload_bytes for event in trace if event.op == "all_reduce"}
        assert reduced == {spec.hidden_size * 4}
        assert diff_traces(traces[0], trace) is None


def test_untraced_model_is_refused(tiny: Path):
    comm = Comm.solo()
    model = load_model(tiny, comm)
    with pytest.raises(TypeError, match="load_traced"):
        experiment.trace_decode_step(comm, model, TEXT)


@pytest.mark.parametrize("size", [2, 4])
def test_shares_tile_the_model_but_for_norms_and_kv_replicas(pool: Pools, tiny: Path, size: int):
    spec = DecoderSpec.from_hf(tiny)
    [whole] = pool(1).run(experiment.share, pool(1).put(experiment.load_traced, tiny))
    shares = pool(size).run(experiment.share, pool(size).put(experiment.load_traced, tiny))
    assert whole.total_bytes == 4 * spec.num_parameters
    parts = experiment.bytes_by_part(shares)
    assert sum(parts["MLP"]) == whole.weight_bytes["MLP"]
    assert set(parts["norms"]) == {whole.weight_bytes["norms"]}
    assert sum(s.q_heads for s in shares) == spec.num_heads
    if size <= spec.num_kv_heads:
        assert sum(parts["attention"]) == whole.weight_bytes["attention"]
    else:
        assert sum(parts["attention"]) > whole.weight_bytes["attention"]


def test_verdicts_give_every_reason_and_the_uneven_way(smollm2: Path):
    legal, uneven, even, impossible = verdicts(DecoderSpec.from_hf(smollm2), range(1, 5))
    assert (legal.refusal, even.refusal) == (None, None)
    assert uneven.refusal is not None
    assert "9 attention heads" in uneven.refusal
    assert "3 KV heads" in uneven.refusal
    assert uneven.refusal_uneven is None
    assert uneven.q_heads == (6, 3)
    assert impossible.refusal_uneven is not None
    assert impossible.q_heads is None


def test_question_takes_the_conversation_format_where_there_is_one(smollm2: Path, tiny: Path):
    asked = experiment.question_ids(open_checkpoint(smollm2), "Why?")
    assert open_checkpoint(smollm2).load_tokenizer().token_id("<|im_start|>") in asked
    plain = open_checkpoint(tiny)
    if plain.chat_format() is None:
        assert experiment.question_ids(plain, "Why?") == plain.load_tokenizer().encode("Why?")
