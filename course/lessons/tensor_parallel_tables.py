"""Tables of lesson 02 that take more arithmetic than a notebook cell should show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from course.labels import Label, quantity
from course.lessons.traffic_tables import Link, bytes_and_hops_table, step_traffic_table
from course.table import Table
from labkit.experiments.decode_time import DecodeTime, predict_step
from labkit.experiments.parallel_block import HIDDEN, TOKENS, WIDTH, Outcome
from labkit.plan.collectives import ring_latency_seconds, ring_wire_bytes
from labkit.plan.decoder import DecoderSpec
from labkit.plan.holdings import Holdings
from labkit.plan.tradeoff import TradeOff, trade_off
from labkit.plan.traffic import decode_traffic
from labkit.ranks.trace import Trace

__all__ = [
    "Link",
    "bytes_and_hops_table",
    "collectives_table",
    "holdings_table",
    "placements_table",
    "prediction_table",
    "split_steps",
    "step_traffic_table",
    "trade_off_table",
]

BYTES = 8
"""Of a number in `labkit.experiments.parallel_block`, which computes in fp64."""


def placements_table(outcomes: Iterable[Outcome]) -> Table:
    """What each way to cut a block cost a rank, and whether the block came out right."""
    rows = [
        (o.name, o.all_reduces, o.all_gathers, o.wire_bytes, "yes" if o.is_right else "no")
        for o in outcomes
    ]
    return Table(
        ("W1 cut by, then W2", "all-reduces", "all-gathers", "bytes sent", "right?"),
        rows,
        caption=f"A block of {TOKENS} tokens, {HIDDEN} wide outside and {WIDTH} inside, "
        f"{BYTES} bytes a number; for each rank: calls counted ({Label.MEASURED}), bytes sent as "
        f"rings ({Label.MODELLED})",
    )


def collectives_table(trace: Trace, count: int) -> Table:
    """The first `count` collectives of one rank, with the line of code that each comes from."""
    rows = [
        (event.op, event.shape, event.payload_bytes, f"{1e3 * event.seconds:.2f}", event.call_site)
        for event in trace[:count]
    ]
    return Table(
        ("op", "shape", "payload B", "ms", "line of code"),
        rows,
        caption=f"The first collectives of rank {trace.rank} ({Label.MEASURED})",
    )


def holdings_table(cuts: Iterable[Holdings]) -> Table:
    """What a rank holds at each degree, and the cache of one token on one rank and on all."""
    rows = [
        (
            cut.tp,
            cut.num_kv_head_replicas,
            quantity(cut.ranks[0].total_bytes, "B", short=True),
            quantity(cut.ranks[0].kv_bytes_per_token, "B", short=True),
            quantity(cut.kv_bytes_per_token, "B", short=True),
        )
        for cut in cuts
    ]
    return Table(
        (
            "TP",
            "ranks with the same KV head",
            "weights of a rank",
            "cache of a token on one rank",
            "on all ranks",
        ),
        rows,
        caption=f"Rank 0 at each degree ({Label.MODELLED} from the model's shape)",
    )


def trade_off_table(cases: Mapping[str, TradeOff], slow: str, fast: str) -> Table:
    """One step on one GPU and split, on a slow and on a fast link, with the regime's name."""
    rows = [
        (
            case,
            quantity(split.one_gpu_seconds, "s"),
            quantity(split.step_seconds, "s"),
            quantity(split.fast_step_seconds, "s"),
            split.regime.value,
        )
        for case, split in cases.items()
    ]
    return Table(
        ("case", "one GPU", f"split, {slow}", f"split, {fast}", "regime"),
        rows,
        caption=f"One step ({Label.MODELLED}; computation and links {Label.ASSUMED})",
    )


def split_steps(
    spec: DecoderSpec,
    cases: Mapping[str, tuple[float, float]],
    tp: int,
    batch: int,
    slow: Link,
    fast: Link,
) -> dict[str, TradeOff]:
    """One decode step in 16 bits on one GPU and on `tp`, over a slow and a fast link.

    cases: name -> seconds of the step on one GPU, and the part of them that `tp` divides. Hops are
    counted as the links have them: all-reduces too short to fill a link see less of its bandwidth.
    """
    traffic = decode_traffic(spec, tp, batch, 2)
    payload = traffic.layer_payload_bytes

    def seen(link: Link) -> float:
        hops = 2 * spec.num_layers * ring_latency_seconds(tp, hop_latency=link.hop_latency)
        moved = ring_wire_bytes(payload, tp)
        return moved / (moved / link.bandwidth + hops)

    return {
        case: trade_off(
            seconds, tp, payload, seen(slow), fast_bandwidth=seen(fast), compute_scaling=part
        )
        for case, (seconds, part) in cases.items()
    }


def prediction_table(times: Sequence[DecodeTime]) -> Table:
    """Each step as two terms predict it, beside the measured one; the first is on one rank."""
    predictions = [predict_step(times[0], over_ranks) for over_ranks in times]
    machine = times[0].provenance
    rows = [
        (
            p.ranks,
            quantity(p.weight_seconds, "s"),
            quantity(p.collective_seconds, "s"),
            quantity(p.modelled_seconds, "s"),
            quantity(p.measured_seconds, "s"),
            quantity(round(p.gap_seconds, 9), "s"),
        )
        for p in predictions
    ]
    return Table(
        ("ranks", "weights", "collectives", "modelled step", "measured step", "gap"),
        rows,
        caption=f"Weights (of the fullest rank), collectives and their sum {Label.MODELLED}; the "
        f"plain step, nothing recorded, {Label.MEASURED} on {machine.cores} cores, {machine.cpu}",
    )
