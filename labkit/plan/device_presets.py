"""GPUs by name, each with its source. Operations are dense: half of what a sheet prints "with
sparsity"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labkit.plan.datacenter_gpus import DATACENTER_GPUS
from labkit.plan.gpu_figures import DATE
from labkit.plan.hardware import DeviceSpec, unknown_name
from labkit.plan.presets import Source
from labkit.plan.workstation_gpus import WORKSTATION_GPUS

_TEXTBOOK = DeviceSpec(
    name="textbook-80gb",
    title="textbook GPU of 80 GB",
    memory_bytes=80e9,
    memory_bandwidth=3.35e12,
    peak_flops={"float16": 989e12, "bfloat16": 989e12},
    source=Source("the course's source material", "round figures, quoted there", DATE),
    link="textbook-nvlink",
    label="assumed",
    note="80e9 bytes, as in the worked example of lesson 03",
)

DEVICES: Mapping[str, DeviceSpec] = MappingProxyType(
    {device.name: device for device in (*DATACENTER_GPUS, *WORKSTATION_GPUS, _TEXTBOOK)}
)
"""By name; the textbook one, last, is assumed."""
_ALIASES = {
    "v100": "v100-32gb",
    "a100": "a100-80gb",
    "a100-sxm": "a100-80gb",
    "a100-sxm-40gb": "a100-40gb",
    "a100-sxm-80gb": "a100-80gb",
    "a100-pcie": "a100-pcie-80gb",
    "h100-sxm": "h100",
    "h100-80gb": "h100",
    "h100-sxm-80gb": "h100",
    "h200-sxm": "h200",
    "b200-sxm": "b200",
    "b300-sxm": "b300",
    "gb200-nvl72": "gb200",
    "gb300-nvl72": "gb300",
    "a6000": "rtx-a6000",
    "3090": "rtx-3090",
    "4090": "rtx-4090",
    "5090": "rtx-5090",
    "rtx3090": "rtx-3090",
    "rtx4090": "rtx-4090",
    "rtx5090": "rtx-5090",
    "rtx-6000": "rtx-6000-ada",
}


def device(name: str) -> DeviceSpec:
    """The GPU of that name. "a100" is SXM 80GB, "h100" SXM, "v100" 32GB.

    Raises ValueError with the nearest names.
    """
    key = str(name).strip().lower().replace("_", "-").replace(" ", "-")
    key = _ALIASES.get(key, key)
    if key not in DEVICES:
        raise unknown_name("GPU", name, DEVICES)
    return DEVICES[key]
