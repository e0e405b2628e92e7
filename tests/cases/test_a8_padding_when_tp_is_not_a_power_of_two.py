"""Case A8: a vocabulary that is a multiple of 64, over 24 ranks (sglang issue 31799)."""

from labkit.plan.shard import pad_vocab, partition_vocab


def test_a_multiple_of_64_is_padded_again_for_24_ranks():
    vocab = partition_vocab(129280, 24, multiple=64)
    assert vocab.padded_size == 129408
    assert {len(vocab.rows(rank)) for rank in range(24)} == {5392}


def test_all_padding_is_in_the_last_rank():
    vocab = partition_vocab(129280, 24, multiple=64)
    padding = [len(vocab.rows(rank)) - len(vocab.real_rows(rank)) for rank in range(24)]
    assert padding == [0] * 23 + [128]


def test_padding_wider_than_a_shard_empties_the_last_ranks():
    vocab = partition_vocab(100, 8, multiple=64)
    assert [len(vocab.real_rows(rank)) for rank in range(8)] == [16] * 6 + [4, 0]


def test_without_a_multiple_the_padding_is_minimal():
    assert pad_vocab(129280, 24, multiple=1) == 129288
