"""Case A7: vocabulary padding must never be generated nor counted (TensorRT-LLM issue 98,
vllm issue 440, Megatron-Bridge issue 1331)."""

import pytest
import torch
from torch.nn import functional as F

from labkit.layers.embedding import ParallelLMHead
from labkit.layers.sampling import Sampler
from labkit.layers.source import DictSource
from labkit.plan.shard import pad_vocab, partition_vocab

VOCAB, HIDDEN = 33, 5
TABLE = torch.rand(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(1)) + 0.5
STATE = -torch.ones(3, HIDDEN)  # every real logit is negative, a zero row's would be 0


def ask(comm, question):
    vocab = partition_vocab(VOCAB, comm.size, multiple=64)
    head = ParallelLMHead(vocab, HIDDEN, comm)
    head.load(DictSource({"lm_head.weight": TABLE}), "lm_head")
    return question(head, head(STATE))


@pytest.mark.parametrize(
    ("vocab_size", "tp", "padded"), [(32001, 2, 32002), (250682, 8, 250688), (151669, 4, 151672)]
)
def test_minimal_padding(vocab_size, tp, padded):
    assert pad_vocab(vocab_size, tp, multiple=1) == padded


def test_zero_rows_would_win():
    """The trap is real: with the padding as plain zeros the argmax is a token that is none."""
    padded = F.pad(TABLE, (0, 0, 0, 64 - VOCAB))
    assert (F.linear(STATE, padded).argmax(dim=-1) >= VOCAB).all()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_winner_is_a_real_token(pool, n):
    expected = F.linear(STATE, TABLE).argmax(dim=-1)
    for ids, gathered in pool(n).run(ask, lambda head, x: (head.argmax(x), head.gather(x))):
        assert torch.equal(ids, expected)
        assert gathered.shape == (3, VOCAB)
        assert torch.equal(gathered.argmax(dim=-1), expected)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_padding_is_never_sampled_even_when_hot(pool, n):
    def draw(head, local):
        sampler = Sampler(temperature=50.0, seed=1)
        return torch.cat([sampler(local, head) for _ in range(200)])

    for ids in pool(n).run(ask, draw):
        assert ids.max() < VOCAB
        assert len(ids.unique()) > VOCAB // 2


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_denominator_leaves_padding_out(pool, n):
    ids = torch.tensor([0, 16, 32])
    expected = F.linear(STATE, TABLE).log_softmax(dim=-1)[torch.arange(3), ids]
    for value in pool(n).run(ask, lambda head, local: head.log_softmax_at(local, ids)):
        torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)
