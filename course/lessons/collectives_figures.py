"""What the texts of lesson 01 quote: recorded and modelled collectives, computed once."""

from __future__ import annotations

from course.labels import Label, quantity
from course.lessons.figures import modelled_bytes, modelled_seconds
from labkit.plan.collective_presets import COLLECTIVE_PRESETS, TEXTBOOK_NVLINK, TEXTBOOK_PCIE
from labkit.plan.collectives import OneOrTwoShot, ring_all_reduce_seconds, ring_wire_bytes
from labkit.plan.presets import PRESETS
from labkit.plan.recorded_collectives import (
    GRAPH,
    bus_bandwidths,
    compare,
    launch_costs,
    recorded,
)
from labkit.plan.tp_steps import compare_links
from labkit.plan.traffic import decode_traffic

NCCL = "h100_sxm/nccl/2.27.3/all_reduce"
KIB, MIB = 2**10, 2**20
DEGREES = (2, 4, 8)
MOST = DEGREES[-1]
FP32, BF16 = 4, 2
LARGE_BATCH = 64

QWEN_72B = PRESETS["qwen2.5-72b"].spec
SMOLLM2 = PRESETS["smollm2-135m"].spec
GRAPH_TITLE = COLLECTIVE_PRESETS[GRAPH].title
NCCL_TITLE = COLLECTIVE_PRESETS[NCCL].title
PRESET_ERROR = f"{COLLECTIVE_PRESETS[GRAPH].joint.error:.1%}"  # type: ignore[union-attr]


def captured_seconds(value: float) -> str:
    """`4.5 us (captured)`"""
    return f"{quantity(value, 's')} ({Label.CAPTURED})"


def captured_rate(value: float) -> str:
    """`366 GB/s (captured)`"""
    return f"{quantity(value, 'B/s')} ({Label.CAPTURED})"


def floor_of(name: str, ranks: int) -> str:
    """Recorded seconds of the smallest recorded all-reduce."""
    return captured_seconds(min(point.seconds for point in recorded(name, ranks)))


GRAPH_FLOORS = tuple(floor_of(GRAPH, n) for n in DEGREES)
NCCL_FLOORS = tuple(floor_of(NCCL, n) for n in DEGREES)
TEXTBOOK_FLOOR = modelled_seconds(TEXTBOOK_NVLINK.model.seconds(MOST, KIB))
[_SMALL] = compare(ranks=MOST, sizes=[KIB])
TEXTBOOK_TIMES_TOO_LONG = f"{1 + _SMALL.textbook_error:.0f}"
_launch = next(cost for cost in launch_costs() if cost.ranks == DEGREES[0])
EAGER, GRAPHED = captured_seconds(_launch.eager_seconds), captured_seconds(_launch.graph_seconds)

_BUS = {point.payload_bytes: point.bytes_per_second for point in bus_bandwidths(NCCL, MOST)}
BUS_AT_MIB = captured_rate(_BUS[MIB])
BUS_AT_LARGEST = captured_rate(_BUS[max(_BUS)])
LARGEST = quantity(max(_BUS), "B", short=True)
ASSUMED_BANDWIDTH = f"{quantity(TEXTBOOK_NVLINK.model.bandwidth, 'B/s')} ({Label.ASSUMED})"  # type: ignore[attr-defined]
ASSUMED_HOP = f"{quantity(TEXTBOOK_NVLINK.model.hop_latency, 's')} ({Label.ASSUMED})"  # type: ignore[attr-defined]

_shots = COLLECTIVE_PRESETS[GRAPH].model
assert isinstance(_shots, OneOrTwoShot)
CROSSINGS = {n: _shots.crossing_bytes(n) for n in DEGREES}
CROSSING_AT_MOST = modelled_bytes(round(CROSSINGS[MOST] / KIB) * KIB)

ONE_TOKEN = decode_traffic(SMOLLM2, 3, 1, FP32)
DECODE_PAYLOAD = decode_traffic(QWEN_72B, MOST, LARGE_BATCH, BF16).payload_bytes_each
DECODE_PAYLOAD_TEXT = modelled_bytes(DECODE_PAYLOAD)
DECODE_BYTES_TIME = modelled_seconds(
    ring_all_reduce_seconds(DECODE_PAYLOAD, MOST, bandwidth=TEXTBOOK_NVLINK.model.bandwidth)  # type: ignore[attr-defined]
)
WIRE_OF_FOUR = f"{ring_wire_bytes(1, 4):.2g}"

LINKS = (TEXTBOOK_NVLINK, COLLECTIVE_PRESETS[GRAPH], COLLECTIVE_PRESETS[NCCL], TEXTBOOK_PCIE)
STEPS = {link.preset.name: link for link in compare_links(QWEN_72B, 1, LINKS, degrees=DEGREES)}


def step_text(name: str, tp: int) -> str:
    """The modelled decode step of Qwen2.5-72B at batch 1."""
    return modelled_seconds(next(s.seconds for s in STEPS[name].steps if s.tp == tp))


TEXTBOOK_STEP = step_text(TEXTBOOK_NVLINK.name, MOST)
GRAPH_STEP = step_text(GRAPH, MOST)
NCCL_STEP = step_text(NCCL, MOST)
