"""Case A9: padding depends on TP, so a checkpoint's table changes size when its degree changes
(Megatron-DeepSpeed pull request 255, Megatron-LM issue 1754)."""

import pytest
import torch

from labkit.plan.shard import VocabPartition, pad_vocab, partition_vocab, vocab_moves

VOCAB = 50257
HIDDEN = 3
GARBAGE = -7777.0


def megatron(tp: int) -> VocabPartition:
    return partition_vocab(VOCAB, tp, multiple=128, rule="product")


def table() -> torch.Tensor:
    return torch.arange(VOCAB * HIDDEN, dtype=torch.float64).reshape(VOCAB, HIDDEN)


def shards(vocab: VocabPartition) -> list[torch.Tensor]:
    """What each rank's file holds; padding rows have been trained into something."""
    padded = torch.full((vocab.padded_size, HIDDEN), GARBAGE, dtype=torch.float64)
    padded[:VOCAB] = table()
    return [padded[list(vocab.rows(rank))] for rank in range(vocab.tp)]


def moved(old: VocabPartition, new: VocabPartition, held: list[torch.Tensor]) -> list[torch.Tensor]:
    """The new ranks' shards, copied move by move; padding starts from zero."""
    wanted = [torch.zeros(new.rows_per_rank, HIDDEN, dtype=torch.float64) for _ in range(new.tp)]
    for source, target, rows in vocab_moves(old, new):
        taken, given = rows.start - old.rows(source).start, rows.start - new.rows(target).start
        wanted[target][given : given + len(rows)] = held[source][taken : taken + len(rows)]
    return wanted


@pytest.mark.parametrize(("tp", "padded"), [(1, 50304), (2, 50432), (4, 50688), (8, 51200)])
def test_megatron_pads_to_a_multiple_times_tp(tp, padded):
    assert pad_vocab(VOCAB, tp, multiple=128, rule="product") == padded


@pytest.mark.parametrize(("old_tp", "new_tp"), [(8, 1), (1, 8), (8, 4), (2, 3)])
def test_real_rows_survive_a_move_and_padding_does_not(old_tp, new_tp):
    old, new = megatron(old_tp), megatron(new_tp)
    whole = torch.cat(moved(old, new, shards(old)))
    assert len(whole) == new.padded_size
    assert torch.equal(whole[:VOCAB], table())
    assert whole[VOCAB:].eq(0).all()


def test_copying_the_padded_table_would_keep_too_many_rows():
    """51200 rows do not fit 50304, and cutting the tail still leaves trained padding behind."""
    eight, one = torch.cat(shards(megatron(8))), megatron(1)
    assert len(eight) - one.padded_size == 896
    assert eight[: one.padded_size][VOCAB:].eq(GARBAGE).all()
