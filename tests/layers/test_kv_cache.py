"""The cache keeps each sequence's tokens in their places and says when it is full."""

import numpy as np
import pytest
import torch
from layer_inputs import real_numbers

from labkit.layers.kv_cache import KVCache


def cache_of(batch_size=3, max_len=8, **options) -> KVCache:
    return KVCache(1, batch_size, 2, max_len, 4, dtype=torch.float64, **options)


def write(cache: KVCache, k, counts=None):
    """Write `k` as keys and its negative as values."""
    step = cache.step(k.shape[1], counts)
    cache.layers[0].write(k, -k, step)
    cache.advance(step)
    return step


def held(cache: KVCache, sequence: int) -> torch.Tensor:
    """The keys of one sequence, `[tokens, K, d]`."""
    return cache.layers[0].keys[sequence, :, : cache.lengths[sequence]].transpose(0, 1)


@pytest.mark.parametrize("chunks", [[(3, 1, 2), (1, 1, 1), (2, 0, 3)], [(2, 2, 2), (1, 1, 1)]])
def test_tokens_are_kept_in_order_whatever_the_raggedness(chunks):
    cache = cache_of()
    expected = [[], [], []]
    for seed, counts in enumerate(chunks):
        k = real_numbers(3, max(counts), 2, 4, seed=seed)
        write(cache, k, counts)
        for sequence, count in enumerate(counts):
            expected[sequence] += list(k[sequence, :count])
    for sequence in range(3):
        assert cache.lengths[sequence] == len(expected[sequence])
        assert torch.equal(held(cache, sequence), torch.stack(expected[sequence]))
    assert torch.equal(cache.layers[0].values, -cache.layers[0].keys)


def test_padding_is_never_written():
    cache = cache_of(batch_size=2, max_len=4)
    write(cache, torch.ones(2, 4, 2, 4, dtype=torch.float64), (4, 1))
    assert cache.layers[0].keys[1, :, 1:].eq(0).all()


def test_a_full_row_does_not_stop_another_from_padding_beyond_it():
    cache = cache_of(batch_size=2, max_len=4)
    write(cache, real_numbers(2, 4, 2, 4, seed=1), (4, 1))
    step = write(cache, real_numbers(2, 3, 2, 4, seed=2), (0, 3))
    assert cache.lengths == (4, 4)
    assert step.positions_BT.tolist() == [[3, 3, 3], [1, 2, 3]]


@pytest.mark.parametrize(("columns", "counts"), [(6, None), (6, (1, 6, 1)), (7, (0, 0, 7))])
def test_overflow_names_the_sequence_and_changes_nothing(columns, counts):
    cache = cache_of()
    write(cache, real_numbers(3, 3, 2, 4, seed=1))
    kept = cache.layers[0].keys.clone()
    sequence = 0 if counts is None else max(range(3), key=lambda s: counts[s])
    end = 3 + (columns if counts is None else counts[sequence])
    with pytest.raises(
        ValueError,
        match=f"sequence {sequence} would hold {end} tokens, the KV cache has room for 8",
    ):
        cache.step(columns, counts)
    assert cache.lengths == (3, 3, 3)
    assert torch.equal(cache.layers[0].keys, kept)


def test_the_last_position_can_be_used():
    cache = cache_of()
    write(cache, real_numbers(3, 8, 2, 4, seed=1))
    assert cache.lengths == (8, 8, 8)


@pytest.mark.parametrize("counts", [(1, 2), (1, 2, 3, 4), (1, -1, 1), (1, 4, 1)])
def test_counts_must_fit_the_batch_and_the_columns(counts):
    with pytest.raises(ValueError, match="must be 3 numbers from 0 to 3"):
        cache_of().step(3, counts)


@pytest.mark.parametrize("counts", [(1.0, 1, 1), ("1", 1, 1), (None, 1, 1)])
def test_counts_are_whole_numbers(counts):
    with pytest.raises(ValueError, match="must be a whole number"):
        cache_of().step(3, counts)
    assert cache_of().step(3, np.array([1, 2, 3])).counts == (1, 2, 3)


def test_a_pass_without_a_column_is_refused():
    for counts in (None, (0, 0, 0)):
        with pytest.raises(ValueError, match="no tokens were given"):
            cache_of().step(0, counts)


@pytest.mark.parametrize("max_len", [0, -1, 8.0, None])
def test_room_is_a_positive_whole_number(max_len):
    with pytest.raises(ValueError, match=f"max_len {max_len} must be"):
        cache_of(max_len=max_len)


def test_lengths_are_whole_numbers():
    cache = cache_of()
    write(cache, real_numbers(3, 5, 2, 4, seed=1))
    with pytest.raises(ValueError, match=r"length 1\.5 must be a whole number"):
        cache.truncate([1.5, 1, 1])
    cache.truncate(np.int64(2))
    assert cache.lengths == (2, 2, 2)


def test_a_step_counts_only_once_and_only_when_advanced():
    cache = cache_of()
    step = cache.step(2)
    assert cache.lengths == (0, 0, 0)
    cache.advance(step)
    assert cache.lengths == (2, 2, 2)
    with pytest.raises(ValueError, match=r"planned for lengths \[0, 0, 0\]"):
        cache.advance(step)


def test_truncated_tokens_are_overwritten():
    cache = cache_of()
    first, second = real_numbers(3, 5, 2, 4, seed=1), real_numbers(3, 1, 2, 4, seed=2)
    write(cache, first)
    cache.truncate([1, 5, 0])
    write(cache, second)
    assert cache.lengths == (2, 6, 1)
    assert torch.equal(held(cache, 0), torch.stack([first[0, 0], second[0, 0]]))
    assert torch.equal(held(cache, 2), second[2])
    cache.reset()
    assert cache.lengths == (0, 0, 0)


@pytest.mark.parametrize("lengths", [6, [5, 5, 6], [5, 5], [-1, 0, 0], [5, 5, 5, 5]])
def test_truncating_cannot_invent_tokens(lengths):
    cache = cache_of()
    write(cache, real_numbers(3, 5, 2, 4, seed=1))
    with pytest.raises(ValueError, match=r"cannot truncate lengths \[5, 5, 5\]"):
        cache.truncate(lengths)


def test_one_token_at_equal_lengths_needs_no_mask_with_or_without_a_window():
    for window, first in ((None, 0), (4, 3), (100, 0)):
        cache = cache_of(sliding_window=window)
        write(cache, real_numbers(3, 6, 2, 4, seed=1))
        step = cache.step(1)
        assert step.visible is None
        assert (step.first, step.stop) == (first, 7)


def test_the_mask_is_causal_within_the_window():
    cache = cache_of(batch_size=2, sliding_window=3)
    write(cache, real_numbers(2, 4, 2, 4, seed=1), (4, 2))
    step = cache.step(2, (2, 1))
    for sequence, columns in ((0, (4, 5)), (1, (2, 2))):
        for column, position in enumerate(columns):
            visible = step.visible[sequence, 0, column].nonzero().flatten().tolist()
            assert visible == [s for s in range(step.stop) if position - 3 < s <= position]


def test_memory_is_what_the_shape_says():
    assert KVCache(3, 2, 4, 10, 16, dtype=torch.bfloat16).num_bytes == 2 * 3 * 2 * 4 * 10 * 16 * 2
