"""Tables of lessons 02 and 03 about what one step moves, and how long that takes; no torch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from course.labels import Label, quantity
from course.table import Table
from labkit.plan.collectives import ring_all_reduce_seconds, ring_latency_seconds
from labkit.plan.decoder import DecoderSpec
from labkit.plan.traffic import decode_traffic


@dataclass(frozen=True)
class Link:
    """What connects the ranks. bandwidth: bytes per second and rank. hop_latency: seconds."""

    name: str
    bandwidth: float
    hop_latency: float


def bytes_and_hops_table(spec: DecoderSpec, batches: Iterable[int], tp: int, link: Link) -> Table:
    """The two terms of one all-reduce in 16 bits for each batch: the bytes grow, hops do not."""
    hops = ring_latency_seconds(tp, hop_latency=link.hop_latency)
    rows = []
    for batch in batches:
        payload = decode_traffic(spec, tp, batch, 2).payload_bytes_each
        moving = ring_all_reduce_seconds(payload, tp, bandwidth=link.bandwidth)
        times = (quantity(moving, "s"), quantity(hops, "s"))
        longer = "bytes" if moving > hops else "hops"
        rows.append((batch, quantity(payload, "B", short=True), *times, longer))
    return Table(
        ("tokens", "payload", "its bytes", "its hops", "what takes longer"),
        rows,
        caption=f"One all-reduce over {tp} ranks, {link.name} ({Label.MODELLED}; link "
        f"{Label.ASSUMED})",
    )


def step_traffic_table(
    spec: DecoderSpec, hidden_sizes: Iterable[int], tp: int, batch: int, links: Sequence[Link]
) -> Table:
    """What the layers' all-reduces of one decode step take, term by term, in 16 bits.

    `hidden_sizes` take the place of the model's own: its layers stay.
    """
    rows = []
    for hidden_size in hidden_sizes:
        traffic = decode_traffic(replace(spec, hidden_size=hidden_size), tp, batch, 2)
        payload, calls = traffic.layer_payload_bytes, 2 * spec.num_layers
        for link in links:
            ring = ring_all_reduce_seconds(payload, tp, bandwidth=link.bandwidth)
            hops = calls * ring_latency_seconds(tp, hop_latency=link.hop_latency)
            seconds = (payload / link.bandwidth, ring, ring + hops)
            moved = quantity(payload, "B", short=True)
            rows.append((hidden_size, moved, link.name, *(quantity(s, "s") for s in seconds)))
    return Table(
        ("hidden size", "payload", "link", "payload alone", "as a ring", "with hops"),
        rows,
        caption=f"The layers' all-reduces of one step: {2 * spec.num_layers} over {tp} ranks, "
        f"{batch} tokens, 16 bits ({Label.MODELLED}; links {Label.ASSUMED})",
    )
