"""What an all-reduce costs when it runs as a ring: bytes on the wire, and seconds (modelled).

A ring all-reduce of S bytes over n ranks is a reduce-scatter and then an all-gather. Each takes
n-1 hops, and in each hop a rank sends S/n bytes to its neighbour:

    wire bytes of a rank = 2 (n-1)/n * S
    seconds              = 2 (n-1) * hop latency  +  wire bytes / bandwidth

The first term does not depend on S: small messages pay for the hops, large ones for the bytes.
"""

from __future__ import annotations


def ring_wire_bytes(payload_bytes: float, n: int) -> float:
    """Bytes each of `n` ranks sends in an all-reduce of `payload_bytes`; 0 for one rank.

    Raises ValueError for fewer than one rank or fewer than no bytes.
    """
    _require("payload_bytes", payload_bytes, payload_bytes >= 0, "at least 0")
    return 2 * _hops(n) * payload_bytes / n


def ring_latency_seconds(n: int, *, hop_latency: float) -> float:
    """The part of an all-reduce that no bandwidth shortens: 2 (n-1) hops of `hop_latency` s."""
    _require("hop_latency", hop_latency, hop_latency >= 0, "at least 0 seconds")
    return 2 * _hops(n) * hop_latency


def ring_all_reduce_seconds(
    payload_bytes: float, n: int, *, bandwidth: float, hop_latency: float = 0.0
) -> float:
    """Seconds of one all-reduce of `payload_bytes` over `n` ranks; 0 for one rank.

    `bandwidth`: bytes per second that a rank can send. `hop_latency`: seconds of one hop.

    Raises ValueError for a bandwidth that is not positive, or for what the terms refuse.
    """
    _require("bandwidth", bandwidth, bandwidth > 0, "above 0 bytes per second")
    latency = ring_latency_seconds(n, hop_latency=hop_latency)
    return latency + ring_wire_bytes(payload_bytes, n) / bandwidth


def _hops(n: int) -> int:
    """Hops of a reduce-scatter or of an all-gather around a ring of `n`."""
    _require("the number of ranks", n, n >= 1, "at least 1")
    return n - 1


def _require(what: str, value: float, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"{what} is {value}; it must be {rule}")
