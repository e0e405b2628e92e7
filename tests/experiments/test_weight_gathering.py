"""Fact F2: gathered layers give the same logits, and their bytes are those of the plan."""

import gc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from labkit.experiments import tensor_parallel
from labkit.experiments.weight_gathering import (
    GatheredLayer,
    contrast,
    kept_layer_bytes,
    load_gathered,
)
from labkit.layers.kv_cache import KVCache
from labkit.layers.rope import RotaryEmbedding
from labkit.layers.source import DictSource
from labkit.models.llama import DecoderLayer
from labkit.models.parameters import parameter_shapes
from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import partition_heads
from labkit.plan.traffic import decode_traffic, gathered_weight_bytes, layer_parameters
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import Trace

Pools = Callable[[int], RankPool]
TEXT = list(range(5, 25))

ODD = DecoderSpec(
    model_type="llama",
    num_layers=1,
    hidden_size=10,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    intermediate_size=7,
    vocab_size=16,
    qkv_bias=True,
)
"""611 parameters a layer: a prime number, so flat shards need padding on any number of ranks."""


@pytest.mark.parametrize("size", [1, 2, 4])
def test_gathered_layers_give_the_logits_of_the_whole_model(pool: Pools, tiny: Path, size: int):
    whole = pool(1).put(tensor_parallel.load_traced, tiny)
    gathered = pool(size).put(load_gathered, tiny)
    [one] = pool(1).run(tensor_parallel.read, whole, TEXT, TEXT[:3], 4)
    other = pool(size).run(tensor_parallel.read, gathered, TEXT, TEXT[:3], 4)[0]
    agreement = tensor_parallel.compare(one, other)
    assert agreement.max_abs_difference < 1e-3
    assert agreement.same_argmax == len(TEXT)
    assert agreement.is_same_text


@pytest.mark.parametrize("size", [2, 4])
def test_bytes_of_a_step_are_those_of_the_plan(pool: Pools, tiny: Path, size: int):
    spec = DecoderSpec.from_hf(tiny)
    gathered = pool(size).put(load_gathered, tiny)
    traces: list[Trace] = pool(size).run(tensor_parallel.trace_decode_step, gathered, TEXT)
    for trace in traces:
        assert trace.count_by_op() == {"all_gather": spec.num_layers}
        assert trace.total_wire_bytes() == gathered_weight_bytes(spec, size, 4)


@pytest.mark.parametrize("size", [2, 4])
def test_tensor_parallel_bytes_of_a_step_are_those_of_the_plan(pool: Pools, tiny: Path, size: int):
    model = pool(size).put(tensor_parallel.load_traced, tiny)
    trace = pool(size).run(tensor_parallel.trace_decode_step, model, TEXT)[0]
    planned = decode_traffic(DecoderSpec.from_hf(tiny), size, 1, 4)
    reduced = [event for event in trace if event.op == "all_reduce"]
    assert trace.count() == planned.all_reduces + planned.all_gathers
    assert trace.total_bytes() == planned.payload_bytes + planned.gather_bytes
    assert sum(e.wire_bytes for e in reduced) == pytest.approx(planned.wire_bytes_per_rank, abs=99)


def test_gathering_sends_far_more_than_reducing(pool: Pools, tiny: Path):
    ours = pool(2).put(tensor_parallel.load_traced, tiny)
    theirs = pool(2).put(load_gathered, tiny)
    reduced, gathered = (
        pool(2).run(tensor_parallel.trace_decode_step, model, TEXT)[0] for model in (ours, theirs)
    )
    result = contrast(reduced, gathered, 2)
    assert (result.activation_bytes, result.weight_bytes) == (
        reduced.total_wire_bytes(),
        gathered.total_wire_bytes(),
    )
    assert result.times_as_many > 100


def test_contrast_needs_ranks_that_send():
    with pytest.raises(ValueError, match="at least 2 ranks"):
        contrast(Trace(0), Trace(0), 1)


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_keeps_its_share_of_every_layer(pool: Pools, tiny: Path, size: int):
    spec = DecoderSpec.from_hf(tiny)
    kept = pool(size).run(kept_layer_bytes, pool(size).put(load_gathered, tiny))
    assert sum(kept) == spec.num_layers * layer_parameters(spec) * 4
    assert len(set(kept)) == 1


def test_no_whole_layer_outlives_its_use(tiny: Path):
    def layers() -> int:
        gc.collect()
        return sum(type(thing) is DecoderLayer for thing in gc.get_objects())

    before = layers()
    model = load_gathered(Comm.solo(), tiny)
    model(torch.tensor([TEXT]), model.new_cache(1, len(TEXT)))
    assert layers() == before


def odd_weights() -> DictSource:
    generator = torch.Generator().manual_seed(0)
    shapes = parameter_shapes(ODD).items()
    return DictSource({name: torch.randn(shape, generator=generator) for name, shape in shapes})


def odd_output(layer: torch.nn.Module) -> Tensor:
    x_BTD = torch.ones(1, 3, ODD.hidden_size)
    cache = KVCache(1, 1, ODD.num_kv_heads, 3, ODD.head_dim)
    step = cache.step(3)
    output: Tensor = layer(x_BTD, RotaryEmbedding(ODD)(step.positions_BT), cache.layers[0], step)
    return output


def run_odd_layer(comm: Comm) -> tuple[int, Tensor]:
    layer = GatheredLayer(ODD, comm).load(odd_weights(), "model.layers.0")
    return layer.flat.numel(), odd_output(layer)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_padding_of_a_flat_layer_changes_nothing(pool: Pools, size: int):
    heads = partition_heads(ODD.num_heads, ODD.num_kv_heads, 1)
    whole = DecoderLayer(ODD, Comm.solo(), heads, dtype=torch.float32)
    whole.load(odd_weights(), "model.layers.0")
    for kept, output in pool(size).run(run_odd_layer):
        assert kept * size >= layer_parameters(ODD)
        torch.testing.assert_close(output, odd_output(whole))
