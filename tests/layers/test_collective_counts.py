"""What each layer sends: one collective or none, and nothing as large as the logits."""

import pytest
import torch

from labkit.layers.attention import GQAttention
from labkit.layers.embedding import ParallelLMHead, VocabParallelEmbedding
from labkit.layers.kv_cache import KVCache
from labkit.layers.linear import (
    ColumnParallelLinear,
    MergedColumnParallelLinear,
    QKVParallelLinear,
    RowParallelLinear,
)
from labkit.layers.mlp import SwiGLU
from labkit.layers.rope import RotaryEmbedding
from labkit.layers.sampling import Sampler
from labkit.layers.source import DictSource
from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import partition_heads, partition_vocab
from labkit.ranks.trace import TracedComm

SPEC = DecoderSpec(
    model_type="llama",
    num_layers=1,
    hidden_size=12,
    num_heads=6,
    num_kv_heads=3,
    head_dim=4,
    intermediate_size=24,
    vocab_size=500,
)
HEADS = partition_heads(6, 3, 3)
VOCAB = partition_vocab(500, 3)
ROWS = torch.ones(2, 5, 12)
WEIGHTS = {
    f"{name}.weight": torch.ones(shape)
    for name, shape in {
        "wide": (24, 12),
        "q_proj": (24, 12),
        "k_proj": (12, 12),
        "v_proj": (12, 12),
        "o_proj": (12, 24),
        "gate_proj": (24, 12),
        "up_proj": (24, 12),
        "down_proj": (12, 24),
        "table": (500, 12),
    }.items()
} | {"wide.bias": torch.ones(24)}
SOURCE = DictSource(WEIGHTS | {f"layer.{name}": tensor for name, tensor in WEIGHTS.items()})


def column(comm, **options):
    layer = ColumnParallelLinear(12, 24, comm, bias=True, **options)
    layer.load(SOURCE, "wide")
    return layer(ROWS)


def merged(comm):
    layer = MergedColumnParallelLinear(12, [24, 24], comm)
    layer.load(SOURCE, "gate_proj", "up_proj")
    return layer(ROWS)


def qkv(comm):
    layer = QKVParallelLinear(12, 4, HEADS, comm)
    layer.load(SOURCE, "q_proj", "k_proj", "v_proj")
    return layer(ROWS)


def row(comm, **options):
    layer = RowParallelLinear(12, 24, comm, bias=True, **options)
    layer.load(SOURCE, "wide")
    return layer(ROWS if options else ROWS[..., :4])


def mlp(comm):
    layer = SwiGLU(12, 24, comm)
    layer.load(SOURCE, "layer")
    return layer(ROWS)


def attention(comm):
    layer = GQAttention(SPEC, comm, HEADS)
    layer.load(SOURCE, "layer")
    cache = KVCache(1, 2, 1, 8, 4)
    step = cache.step(5)
    return layer(ROWS, RotaryEmbedding(SPEC)(step.positions_BT), cache.layers[0], step)


def embedding(comm):
    layer = VocabParallelEmbedding(VOCAB, 12, comm)
    layer.load(SOURCE, "table")
    return layer(torch.tensor([[1, 400], [3, 4]]))


def head(comm):
    layer = ParallelLMHead(VOCAB, 12, comm)
    layer.load(SOURCE, "table")
    return layer, layer(ROWS[:, -1])


def greedy(comm):
    layer, logits = head(comm)
    return Sampler()(logits, layer)


def sampled(comm):
    layer, logits = head(comm)
    return Sampler(temperature=1.0)(logits, layer)


def log_softmax(comm):
    layer, logits = head(comm)
    return layer.log_softmax_at(logits, torch.tensor([1, 400]))


@pytest.mark.parametrize(
    ("layer", "options", "expected"),
    [
        (column, {}, {}),
        (column, {"gather_output": True}, {"all_gather": 1}),
        (merged, {}, {}),
        (qkv, {}, {}),
        (row, {}, {"all_reduce": 1}),
        (row, {"input_is_parallel": False}, {"all_reduce": 1}),
        (mlp, {}, {"all_reduce": 1}),
        (attention, {}, {"all_reduce": 1}),
        (embedding, {}, {"all_reduce": 1}),
        (head, {}, {}),
        (greedy, {}, {"all_gather": 1}),
        (sampled, {}, {"all_gather": 1}),
        (log_softmax, {}, {"all_reduce": 2}),
    ],
)
def test_each_layer_costs_its_collectives_and_no_more(pool, layer, options, expected):
    def traced(comm):
        comm = TracedComm(comm)
        layer(comm, **options)
        return comm.trace

    for trace in pool(3).run(traced):
        assert trace.count_by_op() == expected


def test_greedy_choice_sends_two_numbers_a_row_and_not_the_logits(pool):
    def traced(comm):
        comm = TracedComm(comm)
        greedy(comm)
        return comm.trace

    for trace in pool(3).run(traced):
        (event,) = trace.events
        assert event.payload_bytes == 2 * 2 * 8  # two rows, a value and an id in float64
