"""The partition arithmetic: every index lands on exactly one rank, or the choice is refused."""

import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.plan import shard
from labkit.plan.shard import PartitionError

SIZES = st.integers(0, 64)
DEGREES = st.integers(1, 64)


def tiles(ranges: list[range], size: int) -> bool:
    """Whether the ranges, in rank order, contain 0 ... size - 1 once each."""
    return [index for part in ranges for index in part] == list(range(size))


@given(SIZES, DEGREES)
def test_even_ranges_tile_exactly_once_or_are_refused(size, parts):
    if size % parts == 0:
        ranges = [shard.even_range(size, parts, rank) for rank in range(parts)]
        assert tiles(ranges, size)
        assert len({len(part) for part in ranges}) == 1
        assert tuple(ranges) == shard.partition_columns(size, parts)
    else:
        with pytest.raises(PartitionError) as refused:
            shard.even_range(size, parts, 0, "MLP")
        assert f"MLP {size} does not divide over TP {parts}" in str(refused.value)
        assert all(size % degree == 0 for degree in refused.value.legal)
        assert max(refused.value.legal) == size


@given(SIZES, DEGREES)
def test_balanced_ranges_tile_and_differ_by_at_most_one(size, parts):
    ranges = shard.balanced_ranges(size, parts)
    lengths = [len(part) for part in ranges]
    assert len(ranges) == parts
    assert tiles(list(ranges), size)
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)


@given(st.integers(1, 64), DEGREES)
def test_pipeline_stages_all_hold_layers_or_are_refused(num_layers, pp):
    if pp <= num_layers:
        stages = shard.pipeline_ranges(num_layers, pp)
        assert tiles(list(stages), num_layers)
        assert all(len(stage) >= 1 for stage in stages)
    else:
        with pytest.raises(PartitionError, match=f"PP {pp} leaves stages empty"):
            shard.pipeline_ranges(num_layers, pp)


def head_shapes(largest: int) -> list[tuple[int, int, bool]]:
    """Every number of heads, every number of KV heads that shares them evenly, both modes."""
    return [
        (num_heads, num_kv_heads, uneven)
        for num_heads in range(1, largest + 1)
        for num_kv_heads in shard.divisors(num_heads)
        for uneven in (False, True)
    ]


def is_legal(num_heads: int, num_kv_heads: int, tp: int, uneven: bool) -> bool:
    strict = num_heads % tp == 0 and (num_kv_heads % tp == 0 or tp % num_kv_heads == 0)
    return strict or (uneven and tp <= num_kv_heads)


@pytest.mark.parametrize("uneven", [False, True])
def test_head_partitions_tile_and_keep_every_query_beside_its_keys(uneven):
    for num_heads, num_kv_heads, mode in head_shapes(64):
        for tp in range(1, num_heads + 1):
            if mode == uneven and is_legal(num_heads, num_kv_heads, tp, uneven):
                check_heads(num_heads, num_kv_heads, tp, uneven)


def check_heads(num_heads: int, num_kv_heads: int, tp: int, uneven: bool) -> None:
    heads = shard.partition_heads(num_heads, num_kv_heads, tp, allow_uneven_heads=uneven)
    ranks = range(tp)
    assert tiles([heads.q_heads(rank) for rank in ranks], num_heads)
    holders = dict.fromkeys(range(num_kv_heads), 0)
    for rank in ranks:
        needed = {head * num_kv_heads // num_heads for head in heads.q_heads(rank)}
        assert needed == set(heads.kv_heads(rank))
        assert heads.kv_owner(rank) == heads.kv_heads(rank).start
        if is_legal(num_heads, num_kv_heads, tp, uneven=False):
            assert heads.kv_owner(rank) == rank * num_kv_heads // tp
        for kv_head in heads.kv_heads(rank):
            holders[kv_head] += 1
    assert set(holders.values()) == {heads.num_kv_head_replicas}
    assert heads.is_even == (len({len(heads.q_heads(rank)) for rank in ranks}) == 1)


def test_all_other_head_partitions_are_refused_with_the_legal_degrees():
    for num_heads, num_kv_heads, uneven in head_shapes(24):
        degrees = range(1, num_heads + 3)
        legal = tuple(tp for tp in degrees if is_legal(num_heads, num_kv_heads, tp, uneven))
        assert legal[0] == 1
        for tp in set(degrees) - set(legal):
            with pytest.raises(PartitionError) as refused:
                shard.partition_heads(num_heads, num_kv_heads, tp, allow_uneven_heads=uneven)
            assert refused.value.legal == legal
            assert refused.value.reasons


def test_uneven_heads_go_by_whole_kv_groups():
    heads = shard.partition_heads(9, 3, 2, allow_uneven_heads=True)
    assert [len(heads.q_heads(rank)) for rank in range(2)] == [6, 3]
    assert [list(heads.kv_heads(rank)) for rank in range(2)] == [[0, 1], [2]]


def test_uneven_heads_are_off_by_default():
    with pytest.raises(PartitionError) as refused:
        shard.partition_heads(9, 3, 2)
    assert refused.value.legal == (1, 3, 9)
    assert "9 attention heads do not divide over TP 2" in str(refused.value)


def test_tp_above_the_kv_heads_replicates_in_neighbouring_ranks():
    heads = shard.partition_heads(32, 4, 8)
    assert heads.num_kv_head_replicas == 2
    assert [heads.kv_owner(rank) for rank in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_tp_above_the_kv_heads_must_be_a_multiple_of_them():
    with pytest.raises(PartitionError) as refused:
        shard.partition_heads(24, 4, 6)
    assert refused.value.reasons == (
        "4 KV heads neither divide over TP 6 nor replicate evenly on it",
    )
    assert refused.value.legal == (1, 2, 4, 8, 12, 24)


def test_every_broken_rule_is_named():
    with pytest.raises(PartitionError) as refused:
        shard.partition_heads(14, 2, 15)
    assert len(refused.value.reasons) == 3
    assert "TP 15 leaves 1 ranks without an attention head" in refused.value.reasons
    assert refused.value.legal == (1, 2, 14)


@pytest.mark.parametrize("tp", [0, -1])
def test_degrees_start_at_one(tp):
    for refuse in (
        lambda: shard.partition_heads(8, 2, tp),
        lambda: shard.partition_columns(8, tp),
        lambda: shard.partition_vocab(8, tp),
        lambda: shard.pipeline_ranges(8, tp),
        lambda: shard.balanced_ranges(8, tp),
    ):
        with pytest.raises(PartitionError, match=f"must be at least 1, not {tp}"):
            refuse()


def test_heads_must_share_their_kv_heads_evenly():
    with pytest.raises(PartitionError, match="10 attention heads do not share 4 KV heads evenly"):
        shard.partition_heads(10, 4, 1)


@pytest.mark.parametrize("rank", [-1, 4])
def test_a_rank_outside_the_group_is_refused(rank):
    heads, vocab = shard.partition_heads(8, 2, 4), shard.partition_vocab(100, 4)
    for ask in (heads.q_heads, heads.kv_heads, heads.kv_owner, vocab.rows, vocab.real_rows):
        with pytest.raises(IndexError, match=f"rank {rank} is outside a group of 4"):
            ask(rank)


@given(
    st.integers(1, 300), st.integers(1, 16), st.integers(1, 70), st.sampled_from(["lcm", "product"])
)
def test_padded_vocabularies_tile_and_keep_every_token(vocab_size, tp, multiple, rule):
    vocab = shard.partition_vocab(vocab_size, tp, multiple=multiple, rule=rule)
    ranks = range(tp)
    assert tiles([vocab.rows(rank) for rank in ranks], vocab.padded_size)
    assert {len(vocab.rows(rank)) for rank in ranks} == {vocab.rows_per_rank}
    assert [i for rank in ranks for i in vocab.real_rows(rank)] == list(range(vocab_size))
    for rank in ranks:
        assert set(vocab.real_rows(rank)) <= set(vocab.rows(rank))
    for token_id in {0, vocab_size // 2, vocab_size - 1}:
        assert token_id in vocab.real_rows(vocab.owner(token_id))
    unit = math.lcm(multiple, tp) if rule == "lcm" else multiple * tp
    assert vocab.padded_size % unit == 0
    assert 0 <= vocab.padded_size - vocab_size < unit


@pytest.mark.parametrize("token_id", [-1, 100, 127])
def test_padding_rows_have_no_owner(token_id):
    with pytest.raises(IndexError, match="outside a vocabulary of 100"):
        shard.partition_vocab(100, 2).owner(token_id)


def test_a_refusal_survives_the_way_back_from_a_rank():
    with pytest.raises(PartitionError) as refused:
        shard.partition_heads(14, 2, 4)
    copy = pickle.loads(pickle.dumps(refused.value))
    assert str(copy) == str(refused.value)
    assert (copy.reasons, copy.legal) == (refused.value.reasons, refused.value.legal)


def test_long_lists_of_legal_degrees_stay_readable():
    with pytest.raises(PartitionError) as refused:
        shard.partition_columns(29568, 5, "MLP")
    assert len(refused.value.legal) > 12
    assert "1, 2, 3, 4, 6, 7, 8, 11" in str(refused.value)
    assert str(refused.value).endswith("... 29568")


@given(st.integers(1, 200), st.integers(1, 9), st.integers(1, 9), st.integers(1, 40))
def test_moving_a_vocabulary_moves_every_token_once(vocab_size, old_tp, new_tp, multiple):
    old = shard.partition_vocab(vocab_size, old_tp, multiple=multiple, rule="product")
    new = shard.partition_vocab(vocab_size, new_tp, multiple=1)
    moved = []
    for source, target, rows in shard.vocab_moves(old, new):
        assert {old.owner(row) for row in rows} == {source}
        assert {new.owner(row) for row in rows} == {target}
        moved += rows
    assert sorted(moved) == list(range(vocab_size))


def test_different_vocabularies_are_not_moved_into_each_other():
    with pytest.raises(PartitionError, match="100 and 101 tokens"):
        shard.vocab_moves(shard.partition_vocab(100, 2), shard.partition_vocab(101, 2))
