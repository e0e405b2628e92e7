"""Vocabulary-parallel embedding and head equal the whole tables."""

import pytest
import torch
from layer_inputs import RANKS, NotedSource, named, real_numbers, total_read, whole_numbers
from torch.nn import functional as F

from labkit.layers.embedding import ParallelLMHead, VocabParallelEmbedding
from labkit.layers.source import DictSource
from labkit.plan.shard import partition_vocab
from labkit.ranks.comm import Comm

VOCAB, HIDDEN = 37, 6  # divides by none of 2, 3, 4
TABLE = whole_numbers(VOCAB, HIDDEN, seed=1)
ALL_IDS = torch.arange(VOCAB)
ID_BATCHES = [ALL_IDS, ALL_IDS[:1], ALL_IDS.reshape(1, -1), ALL_IDS[:0], ALL_IDS[:0].reshape(0, 3)]
MULTIPLES = [1, 8, 64]  # 64: with 2 or more ranks some hold nothing but padding


def head_on(comm, multiple=1, table=TABLE, dtype=torch.float64):
    vocab = partition_vocab(len(table), comm.size, multiple=multiple)
    head = ParallelLMHead(vocab, table.shape[1], comm, dtype=dtype)
    head.load(DictSource(named("lm_head", table)), "lm_head")
    return head


def local_part(logits, comm, vocab):
    """This rank's columns of given logits, padding as -inf, as the head would make them."""
    padded = F.pad(logits, (0, vocab.padded_size - vocab.vocab_size), value=-torch.inf)
    rows = vocab.rows(comm.rank)
    return padded[..., rows.start : rows.stop].clone()


def answers(comm, ask, logits, multiple=1):
    """`ask(head, local logits)` on ranks that share `logits`."""
    vocab = partition_vocab(logits.shape[-1], comm.size, multiple=multiple)
    head = ParallelLMHead(vocab, HIDDEN, comm)
    return ask(head, local_part(logits, comm, vocab))


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("n", RANKS)
def test_every_id_is_looked_up_on_exactly_one_rank(pool, n, multiple):
    def embed(comm):
        vocab = partition_vocab(VOCAB, comm.size, multiple=multiple)
        layer = VocabParallelEmbedding(vocab, HIDDEN, comm, dtype=torch.float64)
        layer.load(DictSource(named("embed", TABLE)), "embed")
        return [layer(ids) for ids in ID_BATCHES]

    for outputs in pool(n).run(embed):
        for ids, x in zip(ID_BATCHES, outputs, strict=True):
            assert torch.equal(x, F.embedding(ids, TABLE))


@pytest.mark.parametrize("token_id", [-1, VOCAB, 63])
@pytest.mark.parametrize("n", [1, 3])
def test_ids_outside_the_vocabulary_are_refused_even_inside_the_padding(pool, n, token_id):
    def embed(comm):
        vocab = partition_vocab(VOCAB, comm.size, multiple=64)
        layer = VocabParallelEmbedding(vocab, HIDDEN, comm)
        layer.load(DictSource(named("embed", TABLE)), "embed")
        with pytest.raises(IndexError, match=f"token id {token_id} is outside a vocabulary of 37"):
            layer(torch.tensor([3, token_id]))

    pool(n).run(embed)


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("n", RANKS)
def test_gathered_logits_equal_the_whole_head_without_padding(pool, n, multiple):
    inputs = [whole_numbers(*batch, HIDDEN, seed=2) for batch in [(1,), (4,), (2, 3), (0,)]]

    def logits(comm):
        head = head_on(comm, multiple)
        return [head.gather(head(x)) for x in inputs]

    for outputs in pool(n).run(logits):
        for x, y in zip(inputs, outputs, strict=True):
            assert torch.equal(y, F.linear(x, TABLE))


@pytest.mark.parametrize("n", RANKS)
def test_a_rank_reads_only_its_own_rows(pool, n):
    def load(comm):
        source = NotedSource(named("table", TABLE))
        vocab = partition_vocab(VOCAB, comm.size, multiple=8)
        VocabParallelEmbedding(vocab, HIDDEN, comm).load(source, "table")
        return source.elements_read

    assert total_read(pool(n).run(load)) == {"table.weight": TABLE.numel()}


@pytest.mark.parametrize("n", RANKS)
def test_a_tied_head_uses_the_embedding_table(pool, n):
    x = whole_numbers(3, HIDDEN, seed=2)

    def tied(comm):
        vocab = partition_vocab(VOCAB, comm.size)
        embedding = VocabParallelEmbedding(vocab, HIDDEN, comm, dtype=torch.float64)
        embedding.load(DictSource(named("embed", TABLE)), "embed")
        head = ParallelLMHead(vocab, HIDDEN, comm, dtype=torch.float64)
        head.tie(embedding)
        return head.gather(head(x))

    for y in pool(n).run(tied):
        assert torch.equal(y, F.linear(x, TABLE))


def adversarial_logits() -> torch.Tensor:
    """Rows on which a careless argmax over ranks goes wrong."""
    rows = [whole_numbers(VOCAB, seed=seed) for seed in range(20)]  # many ties
    rows += [-row.abs() - 1 for row in rows[:5]]  # all negative: zeros would win
    rows += [torch.zeros(VOCAB).double(), torch.full((VOCAB,), -torch.inf).double()]
    for position in (0, 12, 13, 36):
        nan, infinite, minus = (torch.zeros(VOCAB).double() for _ in range(3))
        nan[position], infinite[position], minus[position] = torch.nan, torch.inf, -torch.inf
        nan[(position + 20) % VOCAB] = torch.nan
        nan[(position + 7) % VOCAB] = torch.inf
        rows += [nan, infinite, minus]
    return torch.stack(rows)


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("n", RANKS)
def test_argmax_equals_that_of_the_whole_row_ties_and_nan_included(pool, n, multiple):
    logits = adversarial_logits()
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        rows = logits.to(dtype)
        results = pool(n).run(answers, lambda head, local: head.argmax(local), rows, multiple)
        for ids in results:
            assert torch.equal(ids, rows.argmax(dim=-1))


@pytest.mark.parametrize("shape", [(VOCAB,), (2, 3, VOCAB), (0, VOCAB), (2, 0, VOCAB)])
def test_argmax_takes_any_batch_shape(pool, shape):
    logits = real_numbers(*shape, seed=3)
    for ids in pool(3).run(answers, lambda head, local: head.argmax(local), logits):
        assert torch.equal(ids, logits.argmax(dim=-1))


@pytest.mark.parametrize("multiple", MULTIPLES)
@pytest.mark.parametrize("n", RANKS)
def test_log_softmax_equals_that_of_the_whole_row(pool, n, multiple):
    logits = real_numbers(VOCAB, VOCAB, seed=4) * 30 - 500  # exp() of these underflows unshifted
    logits[3, :20] = -torch.inf

    def log_probability(head, local):
        return head.log_softmax_at(local, ALL_IDS), head.log_softmax_at(local[:0], ALL_IDS[:0])

    expected = logits.log_softmax(dim=-1)[ALL_IDS, ALL_IDS]
    for at_ids, empty in pool(n).run(answers, log_probability, logits, multiple):
        torch.testing.assert_close(at_ids, expected, rtol=1e-13, atol=1e-13)
        assert empty.shape == (0,)


@pytest.mark.parametrize("n", RANKS)
def test_log_softmax_takes_maximum_and_sum_over_all_ranks(pool, n):
    """The six logits of RL-Kernel issue 102; the owner's maximum and sum alone give -0.46326."""
    logits = torch.tensor([[0.1, -0.2, 1.7, 0.3, 1.2, -0.5]], dtype=torch.float64)

    def log_probability(head, local):
        return head.log_softmax_at(local, torch.tensor([4]))

    for value in pool(n).run(answers, log_probability, logits):  # on 4 ranks: two rows of padding
        assert value.item() == pytest.approx(-1.3395806963, abs=1e-10)


def test_log_softmax_of_bf16_is_taken_in_single_precision():
    logits = real_numbers(5, VOCAB, seed=5, dtype=torch.bfloat16)
    head = head_on(Comm.solo())
    ids = torch.tensor([0, 9, 18, 27, 36])
    value = head.log_softmax_at(logits, ids)
    assert value.dtype == torch.float32
    expected = logits.double().log_softmax(-1)[torch.arange(5), ids].float()
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)


def test_log_softmax_refuses_the_id_of_a_padding_row():
    head = head_on(Comm.solo(), multiple=64)
    with pytest.raises(IndexError, match="token id 40 is outside a vocabulary of 37"):
        head.log_softmax_at(torch.zeros(1, 64), torch.tensor([40]))


def test_tables_of_another_size_are_refused():
    layer = VocabParallelEmbedding(partition_vocab(40, 1), HIDDEN, Comm.solo())
    with pytest.raises(ValueError, match=r"embed.weight has shape \[37, 6\].*needs \[40, 6\]"):
        layer.load(DictSource(named("embed", TABLE)), "embed")
