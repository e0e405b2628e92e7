"""What a device and a link can do: memory, bandwidth, floating point operations, latency.

Presets with their sources are in `labkit.plan.device_presets` and `labkit.plan.link_presets`; any
other device is a `DeviceSpec` of your own, or a preset with some values replaced
(`dataclasses.replace`). Standard library only.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from labkit.plan.presets import Source

LABELS = ("measured", "captured", "modelled", "assumed")
"""Where a figure may come from."""

_WIDER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fp4": ("bfloat16", "float16"),
        "fp8": ("bfloat16", "float16"),
        "int8": ("bfloat16", "float16"),
        "int4": ("bfloat16", "float16"),
        "bfloat16": ("float16", "float32"),
        "float16": ("bfloat16", "float32"),
        "float32": (),
    }
)
"""What products in a type run in where a device lacks it: narrow weights are widened to 16 bits and
their inputs left as they are, as engines do for FP8 on an A100 and for NVFP4 on an H100."""
_ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "bf16": "bfloat16",
        "fp16": "float16",
        "half": "float16",
        "fp32": "float32",
        "float": "float32",
        "float8": "fp8",
        "fp8_e4m3": "fp8",
        "fp8_e5m2": "fp8",
        "float8_e4m3fn": "fp8",
        "mxfp8": "fp8",
        "nvfp4": "fp4",
        "mxfp4": "fp4",
        "nf4": "int4",
    }
)
COMPUTE_DTYPES = tuple(_WIDER)
"""The types `DeviceSpec.peak_flops` may have, by the names used here."""


@dataclass(frozen=True)
class DeviceSpec:
    """One accelerator.

    Attributes:
        memory_bytes: what the driver gives to programs, which is what
            `--gpu-memory-utilization` is a share of: 1 or 2 % below what `nvidia-smi` prints,
            and not the round number of the name (an H100 "80GB" has 79.1 GiB).
        memory_bandwidth: peak bytes per second.
        peak_flops: operations per second by type, dense and with 32-bit sums where both exist;
            "float32" is without TF32.
        source: of bandwidth and operations.
        memory_source: of `memory_bytes`; `source` where it is None.
        link: name of the link to its neighbours in a node, as in `LINKS`.
        gpus_per_node: how many one node usually has.
        network: name of the link between nodes, as in `LINKS`.
        label: where the figures are from.
    """

    name: str
    title: str
    memory_bytes: float
    memory_bandwidth: float
    peak_flops: Mapping[str, float]
    source: Source
    memory_source: Source | None = None
    link: str = "pcie4"
    gpus_per_node: int = 8
    network: str = "infiniband-ndr"
    label: str = "captured"
    note: str = ""

    def __post_init__(self) -> None:
        require_positive("memory_bytes", self.memory_bytes, "bytes")
        require_positive("memory_bandwidth", self.memory_bandwidth, "bytes per second")
        if not self.peak_flops:
            raise ValueError("peak_flops is empty; it must have one type at least")
        for dtype, flops in self.peak_flops.items():
            if dtype not in _WIDER:
                known = ", ".join(_WIDER)
                raise ValueError(f"peak_flops has {dtype!r}; it must be one of {known}")
            require_positive(f"peak_flops[{dtype!r}]", flops, "operations per second")
        require_count("gpus_per_node", self.gpus_per_node)
        require_label(self.label)
        object.__setattr__(self, "peak_flops", MappingProxyType(dict(self.peak_flops)))

    def __hash__(self) -> int:
        return hash((self.name, self.memory_bytes, self.memory_bandwidth))

    def __reduce__(self) -> tuple[object, ...]:
        values = tuple(getattr(self, name) for name in self.__dataclass_fields__)
        return type(self), tuple(
            dict(value) if isinstance(value, MappingProxyType) else value for value in values
        )

    def compute_dtype(self, dtype: str) -> str:
        """The type this device computes `dtype` in: itself, or one of 16 bits or more that it has.

        Raises ValueError for a type that is not known, or that nothing here is wide enough for.
        """
        wanted = _ALIASES.get(dtype, dtype)
        if wanted not in _WIDER:
            raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(_WIDER)}")
        for candidate in (wanted, *_WIDER[wanted]):
            if candidate in self.peak_flops:
                return candidate
        raise ValueError(
            f"{self.title} has no figure for {dtype} or a wider type; "
            f"it has {', '.join(self.peak_flops)}"
        )

    def flops(self, dtype: str) -> float:
        """Peak operations per second for `dtype`, in the type `compute_dtype` names."""
        return self.peak_flops[self.compute_dtype(dtype)]

    def compute_note(self, dtype: str) -> str:
        """A sentence if `dtype` is computed in another type here; "" if not."""
        used = self.compute_dtype(dtype)
        if used == _ALIASES.get(dtype, dtype):
            return ""
        return f"{self.title} does not compute in {dtype}: it computes in {used}"


@dataclass(frozen=True)
class LinkSpec:
    """A way from one GPU to another.

    Attributes:
        bandwidth: bytes per second, one direction, for each GPU.
        hop_latency: seconds of one step of a collective over it.
        label: where the bandwidth is from; the latency is assumed unless the note says otherwise.
    """

    name: str
    title: str
    bandwidth: float
    hop_latency: float
    source: Source
    label: str = "captured"
    note: str = ""

    def __post_init__(self) -> None:
        require_positive("bandwidth", self.bandwidth, "bytes per second")
        require_number("hop_latency", self.hop_latency)
        if self.hop_latency < 0:
            raise ValueError(f"hop_latency is {self.hop_latency}; it must be at least 0 seconds")
        require_label(self.label)


def require_number(what: str, value: object) -> None:
    """Raise ValueError unless `value` is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{what} is {value!r}; it must be a finite number")


def require_positive(what: str, value: object, unit: str) -> None:
    """Raise ValueError unless `value` is a finite number above 0."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or value <= 0
    ):
        raise ValueError(f"{what} is {value!r}; it must be a finite number above 0 {unit}")


def require_count(what: str, value: object) -> None:
    """Raise ValueError unless `value` is a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} is {value!r}; it must be a whole number of at least 1")


def require_label(label: str) -> None:
    """Raise ValueError unless `label` is one of `LABELS`."""
    if label not in LABELS:
        raise ValueError(f"label is {label!r}; it must be one of {', '.join(LABELS)}")


def unknown_name(kind: str, name: object, known: Mapping[str, object]) -> ValueError:
    """The refusal of a name that is in no table, with the nearest ones that are."""
    near = difflib.get_close_matches(str(name).lower(), known, n=4, cutoff=0.4)
    if near:
        return ValueError(f"no {kind} is called {name!r}; near it: {', '.join(near)}")
    return ValueError(f"no {kind} is called {name!r}; there are {', '.join(known)}")
