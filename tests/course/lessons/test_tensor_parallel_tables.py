"""The tables of lesson 02 say what labkit.plan computes, term by term."""

from collections.abc import Callable

import pytest

from course.labels import quantity
from course.lessons.tensor_parallel_tables import (
    Link,
    bytes_and_hops_table,
    collectives_table,
    holdings_table,
    placements_table,
    prediction_table,
    split_steps,
    step_traffic_table,
    trade_off_table,
)
from labkit.experiments.decode_time import DecodeTime
from labkit.experiments.parallel_block import try_block_placements
from labkit.experiments.provenance import Provenance
from labkit.plan.collectives import ring_wire_bytes
from labkit.plan.holdings import holdings
from labkit.plan.presets import PRESETS
from labkit.plan.tradeoff import Regime, trade_off
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import Trace, TraceEvent

LLAMA = PRESETS["llama-3.1-70b"].spec


def test_t10_a_step_moves_40_mib_at_width_4096_and_80_at_8192():
    fast, slow = Link("fast", 900e9, 0.0), Link("slow", 50e9, 0.0)
    rows = step_traffic_table(LLAMA, (4096, 8192), 8, 32, (fast, slow)).rows
    assert [row[1] for row in rows] == ["40 MiB", "40 MiB", "80 MiB", "80 MiB"]
    assert [row[3] for row in rows[:2]] == ["46.6 us", "839 us"]


def test_hops_are_added_once_for_every_all_reduce():
    [row] = step_traffic_table(LLAMA, [8192], 8, 32, [Link("hops only", 1e30, 1e-6)]).rows
    assert row[5] == quantity(160 * 14 * 1e-6, "s")


def test_a_row_names_its_degree_and_the_cache_of_rank_0():
    rows = holdings_table(holdings(LLAMA, tp) for tp in (8, 16)).rows
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        (8, 1, "40 KiB", "320 KiB"),
        (16, 2, "40 KiB", "640 KiB"),
    ]


def test_a_split_is_shown_with_its_regime():
    split = trade_off(5e-3, 8, 2**20, 25e9, compute_scaling=0.0)
    [row] = trade_off_table({"no gain": split}, "slow", "fast").rows
    assert row[0] == "no gain"
    assert row[-1] == Regime.NO_LINK_PAYS.value


CASES = {
    "large": (40e-3, 1.0),
    "middle": (10e-3, 1.0),
    "small": (3e-3, 1.0),
    "hardly": (3e-3, 0.05),
}


def regimes(slow: Link, fast: Link) -> list[Regime]:
    return [split.regime for split in split_steps(LLAMA, CASES, 8, 32, slow, fast).values()]


def test_hops_move_the_bounds_between_regimes_and_keep_their_order():
    slow, fast, none = Regime.SLOW_LINK_PAYS, Regime.ONLY_FAST_LINK_PAYS, Regime.NO_LINK_PAYS
    without = regimes(Link("slow", 50e9, 0.0), Link("fast", 450e9, 0.0))
    with_hops = regimes(Link("slow", 50e9, 5e-6), Link("fast", 450e9, 2e-6))
    assert without == [slow, slow, fast, none]
    assert with_hops == [slow, fast, none, none]


def test_a_split_step_has_the_hops_of_all_its_all_reduces():
    links = Link("slow", 1e30, 5e-6), Link("fast", 1e30, 2e-6)
    split = split_steps(LLAMA, {"large": (40e-3, 1.0)}, 8, 32, *links)["large"]
    assert split.collective_seconds == pytest.approx(160 * 14 * 5e-6)
    assert split.fast_collective_seconds == pytest.approx(160 * 14 * 2e-6)


def test_bytes_overtake_hops_in_large_batches():
    rows = bytes_and_hops_table(LLAMA, (1, 64, 4096), 8, Link("fast", 450e9, 2e-6)).rows
    assert [row[4] for row in rows] == ["hops", "hops", "bytes"]
    assert {row[3] for row in rows} == {quantity(14 * 2e-6, "s")}


def test_placements_name_the_sizes_that_their_bytes_follow_from(pool: Callable[[int], RankPool]):
    """An all-reduce of 4 x 24 numbers of 8 bytes, as a ring over 2 ranks."""
    table = placements_table(pool(2).run(try_block_placements)[0])
    assert "4 tokens, 24 wide outside and 96 inside, 8 bytes" in table.caption
    assert table.rows[0][3] == ring_wire_bytes(4 * 24 * 8, 2)


def test_the_first_collectives_come_with_their_line_of_code():
    events = [
        TraceEvent("all_reduce", "world", (2,), "float32", 8, 8, 0.001, f"a.py:{n} f", 1, 0.0)
        for n in range(3)
    ]
    table = collectives_table(Trace(1, events), 2)
    assert table.rows == [
        ("all_reduce", (2,), 8, "1.00", "a.py:0 f"),
        ("all_reduce", (2,), 8, "1.00", "a.py:1 f"),
    ]
    assert table.caption == "The first collectives of rank 1 (measured)"


def test_rounding_is_no_gap():
    """Bytes over bytes over 7 ms are not quite 7 ms in floating point."""
    assert prediction_table([decode_time(1, 0.007)]).rows[0][-1] == "0 s"


def decode_time(ranks: int, seconds: float) -> DecodeTime:
    return DecodeTime(
        ranks=ranks,
        steps=1,
        step_seconds=seconds,
        traced_step_seconds=seconds,
        collective_seconds=0.0,
        lone_collective_seconds=0.001 if ranks > 1 else 0.0,
        num_collectives=10 if ranks > 1 else 0,
        weight_bytes=1_000_000 // ranks,
        provenance=Provenance.here(),
    )


def test_the_gap_is_the_measured_step_without_the_modelled_one():
    rows = prediction_table([decode_time(1, 0.1), decode_time(2, 0.08)]).rows
    assert rows[0][1:] == ("100 ms", "0 s", "100 ms", "100 ms", "0 s")
    assert rows[1][1:] == ("50 ms", "10 ms", "60 ms", "80 ms", "20 ms")


def test_the_first_time_must_be_of_one_rank():
    with pytest.raises(ValueError, match="1 rank"):
        prediction_table([decode_time(2, 0.1)])
