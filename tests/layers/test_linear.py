"""Linear layers cut over ranks equal the whole layer."""

import pytest
import torch
from layer_inputs import (
    BATCHES,
    RANKS,
    NotedSource,
    named,
    real_numbers,
    total_read,
    whole_numbers,
)
from torch.nn import functional as F

from labkit.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from labkit.layers.source import DictSource
from labkit.plan.shard import PartitionError, partition_heads
from labkit.ranks.comm import Comm

WEIGHT = whole_numbers(24, 12, seed=1)
BIAS = whole_numbers(24, seed=2)
INPUTS = [whole_numbers(*batch, 12, seed=3) for batch in BATCHES]


def on_this_rank(x, comm):
    return x.chunk(comm.size, dim=-1)[comm.rank]


@pytest.mark.parametrize("bias", [None, BIAS], ids=["no-bias", "bias"])
@pytest.mark.parametrize("n", RANKS)
def test_column_parallel_output_is_this_ranks_columns(pool, n, bias):
    def columns(comm):
        layer = ColumnParallelLinear(12, 24, comm, bias=bias is not None, dtype=torch.float64)
        layer.load(DictSource(named("layer", WEIGHT, bias)), "layer")
        return [layer(x) for x in INPUTS]

    for rank, outputs in enumerate(pool(n).run(columns)):
        for x, y in zip(INPUTS, outputs, strict=True):
            assert torch.equal(y, F.linear(x, WEIGHT, bias).chunk(n, dim=-1)[rank])


@pytest.mark.parametrize("bias", [None, BIAS], ids=["no-bias", "bias"])
@pytest.mark.parametrize("n", RANKS)
def test_gather_output_gives_every_rank_the_whole_layer(pool, n, bias):
    def gathered(comm):
        layer = ColumnParallelLinear(
            12, 24, comm, bias=bias is not None, gather_output=True, dtype=torch.float64
        )
        layer.load(DictSource(named("layer", WEIGHT, bias)), "layer")
        return [layer(x) for x in INPUTS]

    for outputs in pool(n).run(gathered):
        for x, y in zip(INPUTS, outputs, strict=True):
            assert torch.equal(y, F.linear(x, WEIGHT, bias))


@pytest.mark.parametrize("input_is_parallel", [True, False])
@pytest.mark.parametrize("bias", [None, BIAS], ids=["no-bias", "bias"])
@pytest.mark.parametrize("n", RANKS)
def test_row_parallel_equals_the_whole_layer(pool, n, bias, input_is_parallel):
    def rows(comm):
        layer = RowParallelLinear(
            12,
            24,
            comm,
            bias=bias is not None,
            input_is_parallel=input_is_parallel,
            dtype=torch.float64,
        )
        layer.load(DictSource(named("layer", WEIGHT, bias)), "layer")
        return [layer(on_this_rank(x, comm) if input_is_parallel else x) for x in INPUTS]

    for outputs in pool(n).run(rows):
        for x, y in zip(INPUTS, outputs, strict=True):
            assert torch.equal(y, F.linear(x, WEIGHT, bias))


@pytest.mark.parametrize("n", RANKS)
def test_row_parallel_adds_bias_once(pool, n):
    def only_the_bias(comm):
        layer = RowParallelLinear(12, 24, comm, bias=True, dtype=torch.float64)
        layer.load(DictSource(named("layer", torch.zeros_like(WEIGHT), BIAS)), "layer")
        return layer(torch.ones(2, 12 // comm.size, dtype=torch.float64))

    for y in pool(n).run(only_the_bias):
        assert torch.equal(y, BIAS.expand(2, -1))


def test_row_parallel_takes_uneven_ranges(pool):
    ranges = [range(0, 8), range(8, 12)]

    def uneven(comm):
        layer = RowParallelLinear(12, 24, comm, in_ranges=ranges, dtype=torch.float64)
        layer.load(DictSource(named("layer", WEIGHT)), "layer")
        return layer(INPUTS[1][:, ranges[comm.rank].start : ranges[comm.rank].stop])

    for y in pool(2).run(uneven):
        assert torch.equal(y, F.linear(INPUTS[1], WEIGHT))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("n", RANKS)
def test_merged_parts_are_cut_before_they_are_joined(pool, n, bias):
    gate, up = whole_numbers(24, 12, seed=4), whole_numbers(12, 12, seed=5)
    biases = {"gate.bias": BIAS, "up.bias": BIAS[:12]}
    weights = {"gate.weight": gate, "up.weight": up} | (biases if bias else {})

    def merged(comm):
        layer = MergedColumnParallelLinear(12, [24, 12], comm, bias=bias, dtype=torch.float64)
        layer.load(DictSource(weights), "gate", "up")
        return layer.local_sizes, [layer(x) for x in INPUTS]

    for rank, (sizes, outputs) in enumerate(pool(n).run(merged)):
        assert sizes == (24 // n, 12 // n)
        for x, y in zip(INPUTS, outputs, strict=True):
            parts = [
                F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
                for name in ("gate", "up")
            ]
            expected = torch.cat([part.chunk(n, dim=-1)[rank] for part in parts], dim=-1)
            assert torch.equal(y, expected)


HEAD_CASES = [
    (1, 9, 3, False),
    (2, 8, 4, False),
    (3, 9, 3, False),
    (4, 8, 4, False),
    (4, 8, 2, False),  # TP above the KV heads
    (3, 6, 1, False),  # one KV head on every rank
    (2, 9, 3, True),  # uneven: 6 + 3
    (3, 10, 5, True),  # uneven: 4 + 4 + 2
]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("n", "num_heads", "num_kv_heads", "uneven"), HEAD_CASES)
def test_qkv_gives_each_rank_its_own_whole_heads(pool, n, num_heads, num_kv_heads, uneven, bias):
    head_dim, hidden = 4, 12
    heads = partition_heads(num_heads, num_kv_heads, n, allow_uneven_heads=uneven)
    sizes = {"q": num_heads * head_dim, "k": num_kv_heads * head_dim, "v": num_kv_heads * head_dim}
    weights = {}
    for seed, (name, size) in enumerate(sizes.items()):
        part_bias = whole_numbers(size, seed=seed + 10) if bias else None
        weights |= named(name, whole_numbers(size, hidden, seed=seed), part_bias)

    def project(comm):
        layer = QKVParallelLinear(hidden, head_dim, heads, comm, bias=bias, dtype=torch.float64)
        layer.load(DictSource(weights), "q", "k", "v")
        return [layer(x) for x in INPUTS]

    for rank, outputs in enumerate(pool(n).run(project)):
        for x, y in zip(INPUTS, outputs, strict=True):
            expected = []
            for name, held in (
                ("q", heads.q_heads(rank)),
                ("k", heads.kv_heads(rank)),
                ("v", heads.kv_heads(rank)),
            ):
                whole = F.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))
                by_head = whole.unflatten(-1, (-1, head_dim))
                expected.append(by_head[..., list(held), :].flatten(-2))
            assert torch.equal(y, torch.cat(expected, dim=-1))


@pytest.mark.parametrize("n", RANKS)
def test_a_rank_reads_only_its_own_shard(pool, n):
    weights = named("column", WEIGHT, BIAS) | named("row", WEIGHT, BIAS)

    def load(comm):
        source = NotedSource(weights)
        ColumnParallelLinear(12, 24, comm, bias=True).load(source, "column")
        RowParallelLinear(12, 24, comm, bias=True).load(source, "row")
        return source.elements_read

    reads = pool(n).run(load)
    assert [read["column.weight"] for read in reads] == [WEIGHT.numel() // n] * n
    assert total_read(reads) == {name: tensor.numel() for name, tensor in weights.items()}
    assert [rank for rank, read in enumerate(reads) if "row.bias" in read] == [0]


@pytest.mark.parametrize("n", RANKS)
def test_replicated_kv_heads_are_read_by_each_holder(pool, n):
    heads = partition_heads(12, 1, n)
    weights = named("q", whole_numbers(24, 6, seed=1))
    weights |= named("k", whole_numbers(2, 6, seed=2)) | named("v", whole_numbers(2, 6, seed=3))

    def load(comm):
        source = NotedSource(weights)
        QKVParallelLinear(6, 2, heads, comm).load(source, "q", "k", "v")
        return source.elements_read

    expected = {"q.weight": 144, "k.weight": 12 * n, "v.weight": 12 * n}
    assert total_read(pool(n).run(load)) == expected


TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2e-2}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("n", RANKS)
def test_a_column_row_pair_equals_the_whole_to_rounding(pool, n, dtype):
    """Wide enough for packed weight layouts; errors are relative to the largest output."""
    up, down = real_numbers(480, 312, seed=1), real_numbers(312, 480, seed=2) / 480**0.5
    up_bias, down_bias = real_numbers(480, seed=3), real_numbers(312, seed=4)
    inputs = [real_numbers(*batch, 312, seed=5) / 312**0.5 for batch in BATCHES]
    weights = named("up", up, up_bias) | named("down", down, down_bias)

    def pair(comm):
        first = ColumnParallelLinear(312, 480, comm, bias=True, dtype=dtype)
        second = RowParallelLinear(480, 312, comm, bias=True, dtype=dtype)
        first.load(DictSource(weights), "up")
        second.load(DictSource(weights), "down")
        return [second(first(x.to(dtype))) for x in inputs]

    results = pool(n).run(pair)
    for outputs in results:
        for x, y in zip(inputs, outputs, strict=True):
            expected = F.linear(F.linear(x, up, up_bias), down, down_bias)
            assert y.dtype == dtype
            assert y.shape == expected.shape
            if expected.numel():
                error = (y.double() - expected).abs().max() / expected.abs().max()
                assert error < TOLERANCE[dtype]
    assert all(torch.equal(y, z) for ys in results for y, z in zip(ys, results[0], strict=True))


@pytest.mark.parametrize("bias", [False, True])
def test_on_one_rank_the_layer_is_f_linear_to_the_bit(bias):
    weight, b = real_numbers(24, 12, seed=1).float(), real_numbers(24, seed=2).float()
    x = real_numbers(5, 12, seed=3).float()
    for kind in (ColumnParallelLinear, RowParallelLinear):
        layer = kind(12, 24, Comm.solo(), bias=bias)
        layer.load(DictSource(named("layer", weight, b)), "layer")
        assert torch.equal(layer(x), F.linear(x, weight, b if bias else None))


def test_indivisible_features_are_refused_before_anything_is_read(pool):
    def build(comm):
        refusals = []
        for layer in (
            lambda: ColumnParallelLinear(12, 25, comm),
            lambda: MergedColumnParallelLinear(12, [24, 26], comm),
            lambda: RowParallelLinear(14, 24, comm),
        ):
            try:
                layer()
            except PartitionError as refused:
                refusals.append(str(refused))
        return refusals

    assert pool(4).run(build)[0] == [
        "output features 25 does not divide over TP 4; legal here: 1, 5, 25",
        "output features 26 does not divide over TP 4; legal here: 1, 2, 13, 26",
        "input features 14 does not divide over TP 4; legal here: 1, 2, 7, 14",
    ]


@pytest.mark.parametrize("kind", [ColumnParallelLinear, RowParallelLinear])
def test_nothing_is_allocated_before_load(kind):
    layer = kind(1 << 20, 1 << 20, Comm.solo(), bias=True)
    assert not hasattr(layer, "weight")
    assert not list(layer.parameters())
    assert not list(layer.buffers())


@pytest.mark.parametrize("kind", [ColumnParallelLinear, RowParallelLinear])
def test_wrong_weights_are_named(kind):
    layer = kind(12, 24, Comm.solo(), bias=True)
    with pytest.raises(KeyError, match=r"no tensor layer\.weight"):
        layer.load(DictSource({}), "layer")
    with pytest.raises(ValueError, match=r"layer.weight has shape \[12, 24\].*needs \[24, 12\]"):
        layer.load(DictSource(named("layer", WEIGHT.T, BIAS)), "layer")
    with pytest.raises(ValueError, match=r"layer.bias has shape \[12\].*needs \[24\]"):
        layer.load(DictSource(named("layer", WEIGHT, BIAS[:12])), "layer")


def test_merged_layers_need_one_name_for_each_part():
    layer = MergedColumnParallelLinear(12, [24, 12], Comm.solo())
    with pytest.raises(ValueError, match=r"2 parts need a name each, got \['gate'\]"):
        layer.load(DictSource(named("gate", WEIGHT)), "gate")
