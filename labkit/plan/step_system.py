"""What a step runs on: a device, the links between GPUs, and how much of both a program gets.

`Efficiency` holds fractions of the data sheet and overheads in seconds, nothing that belongs to one
GPU or one model: fitted on one system, it carries over to another by its data sheet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from labkit.plan.cost_model import CostModel, Terms
from labkit.plan.link_presets import LINKS
from labkit.plan.placed_replicas import placed_replicas
from labkit.plan.slowest_group import slowest_all_to_all, slowest_collective

if TYPE_CHECKING:
    from labkit.plan.collective_presets import CollectivePreset
    from labkit.plan.hardware import DeviceSpec, LinkSpec
    from labkit.plan.layout import Layout
    from labkit.plan.replica_shape import Block, ReplicaShape
    from labkit.plan.topology import Topology

PRESET_LINKS: Mapping[str, str] = MappingProxyType(
    {"h100_sxm": "nvlink4", "a100_sxm": "nvlink3", "l40s": "pcie4"}
)
"""The link that the collectives of a system were recorded over, by its name in `LINKS`."""
_OVERHEADS = ("layer_overhead", "step_overhead", "sequence_overhead", "request_overhead")


class Fidelity(Enum):
    """How much of a step is counted."""

    TEXTBOOK = "textbook"
    """Reading all weights, and two all-reduces a layer; nothing else."""
    FULL = "full"
    """Everything `labkit.plan.steptime.TERMS` names."""


@dataclass(frozen=True)
class Efficiency:
    """What a program makes of a device.

    Attributes:
        memory: fraction of the memory bandwidth that reading weights and caches gets.
        compute: fraction of the peak FLOPS that matrix products get, at 8 bits and below.
        compute_16bit: the same at 16 and 32 bits; None takes `compute`.
        layer_overhead: seconds of a layer that no byte or FLOP explains: kernels that start and
            drain.
        step_overhead: seconds of a step: scheduling, sampling, input preparation.
        sequence_overhead: seconds more of a step for each running sequence.
        request_overhead: seconds of a request before its prefill: HTTP, tokens, scheduling.
        balancedness: mean over maximum load, in tokens, of the ranks that experts are dealt over;
            1 is even. It lengthens computing and all-to-alls; how many experts a rank has to read
            follows from the batch.
        source: where the figures come from.
        label: "assumed", or "modelled" for fitted ones.

    Raises ValueError, by the field's name, for a fraction outside (0, 1] or a negative time.
    """

    memory: float = 1.0
    compute: float = 1.0
    compute_16bit: float | None = None
    layer_overhead: float = 0.0
    step_overhead: float = 0.0
    sequence_overhead: float = 0.0
    request_overhead: float = 0.0
    balancedness: float = 1.0
    source: str = "the data sheet, reached in full"
    label: str = "assumed"

    def __post_init__(self) -> None:
        fractions = {
            "memory": self.memory,
            "compute": self.compute,
            "compute_16bit": self.compute if self.compute_16bit is None else self.compute_16bit,
            "balancedness": self.balancedness,
        }
        for name, value in fractions.items():
            if not 0 < value <= 1:
                raise ValueError(f"{name} is {value}; it must be above 0 and at most 1")
        for name in _OVERHEADS:
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value}; it must be at least 0 seconds, and finite")

    def of_compute(self, dtype: str) -> float:
        """The fraction of the peak that products in `dtype` get."""
        if self.compute_16bit is None or dtype in ("fp8", "int8", "fp4"):
            return self.compute
        return self.compute_16bit


IDEAL = Efficiency()
"""The data sheet reached in full, and no overhead."""


@dataclass(frozen=True)
class LinkScaled(CostModel):
    """A collective recorded over one link, on a link `factor` times as wide: latency stays."""

    model: CostModel
    factor: float

    def _terms(self, n: int, payload_bytes: float) -> Terms:
        inside = self.model.terms(n, payload_bytes)
        return Terms(inside.latency_seconds, inside.transfer_seconds / self.factor)

    def _wire_bytes(self, n: int, payload_bytes: float) -> float:
        return self.model.wire_bytes(n, payload_bytes)

    def _steps(self, n: int) -> int:
        return self.model.steps(n)


@dataclass(frozen=True)
class System:
    """A device and its links. Ranks of a TP group are neighbours, then DP, then PP.

    A layout's groups are priced as its slowest is, all its replicas placed.

    Attributes:
        collectives: a recorded all-reduce to use inside a node, its transfer scaled to the width
            of the node's link; None prices it from the link's latency and bandwidth (textbook).
        tp_inside: whether a TP group lies on neighbouring GPUs; False puts the stages of a
            pipeline there and spreads each TP group with a stride of PP.
    """

    device: DeviceSpec
    topology: Topology
    collectives: CollectivePreset | None = None
    efficiency: Efficiency = IDEAL
    fidelity: Fidelity = Fidelity.FULL
    tp_inside: bool = True
    _kept: dict[tuple[object, ...], Any] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _peaks: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.collectives is not None and self.collectives.op != "all_reduce":
            name, op = self.collectives.name, self.collectives.op
            raise ValueError(f"collectives is {name}, which prices {op}; give an all_reduce")

    def with_efficiency(self, efficiency: Efficiency) -> System:
        """The same system with another efficiency; costs of collectives are kept."""
        other = replace(self, efficiency=efficiency)
        object.__setattr__(other, "_kept", self._kept)
        return other

    def peak(self, dtype: str) -> float:
        """FLOP/s that products in `dtype` get here."""
        if dtype not in self._peaks:
            reached = self.efficiency.of_compute(self.device.compute_dtype(dtype))
            self._peaks[dtype] = reached * self.device.flops(dtype)
        return self._peaks[dtype]

    def all_reduce(self, layout: Layout) -> CostModel:
        """The cost of an all-reduce of the slowest TP group, of all replicas and stages."""
        key = ("all-reduce", layout.tp, layout.pp, layout.dp, layout.replicas)
        if key not in self._kept:
            shape, blocks = self._placed(layout, tp_inside=self.tp_inside)
            groups = [group for block in blocks for group in shape.tp_groups(block)]
            links = self.topology.canonical
            self._kept[key] = slowest_collective(links, groups, self._scaled_preset)
        return self._kept[key]

    def all_to_all(self, layout: Layout) -> CostModel:
        """The cost of an all-to-all of the slowest stage, whose ranks are neighbours in any
        order."""
        key = ("all-to-all", layout.tp, layout.pp, layout.dp, layout.replicas)
        if key not in self._kept:
            shape, blocks = self._placed(layout, tp_inside=True)
            stages = [stage for block in blocks for stage in shape.stages(block)]
            self._kept[key] = slowest_all_to_all(self.topology.canonical, stages)
        return self._kept[key]

    def stage_link(self, layout: Layout) -> LinkSpec:
        """The slowest link that hidden states cross from one pipeline stage to the next."""
        key = ("stage link", layout.tp, layout.pp, layout.dp, layout.replicas)
        if key not in self._kept:
            shape, blocks = self._placed(layout, tp_inside=self.tp_inside)
            hops = [hop for block in blocks for hop in shape.hops(block)]
            self._kept[key] = self.topology.canonical.slowest_of(hops)
        return self._kept[key]

    def _placed(self, layout: Layout, *, tp_inside: bool) -> tuple[ReplicaShape, tuple[Block, ...]]:
        key = ("placed", tp_inside, layout.tp, layout.pp, layout.dp, layout.replicas)
        if key not in self._kept:
            links = self.topology.canonical
            self._kept[key] = placed_replicas(links, layout, tp_inside=tp_inside)
        return self._kept[key]

    @property
    def _scaled_preset(self) -> CollectivePreset | None:
        """`collectives` as wide as the node's link: by its data sheet's share of the recorded
        one's."""
        preset = self.collectives
        if preset is None or preset.system not in PRESET_LINKS:
            return preset
        recorded = LINKS[PRESET_LINKS[preset.system]].bandwidth
        factor = self.topology.inside.bandwidth / recorded
        if factor == 1:
            return preset
        return replace(
            preset,
            model=LinkScaled(preset.model, factor),
            by_ranks={
                n: replace(fit, model=LinkScaled(fit.model, factor))
                for n, fit in preset.by_ranks.items()
            },
        )
