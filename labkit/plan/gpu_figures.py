"""How the figures of a GPU are written down: GiB, GB/s and tera-operations, with a source."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.plan.hardware import DeviceSpec
from labkit.plan.presets import Source

DATE = "2026-12-01"
GIB = 2**30
SHEET = "the figures of the data sheet, dense"
AICONFIGURATOR = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/*.yaml"
LOG = "a public log: the total in PyTorch's out-of-memory line"
CUDA = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html"
GA102 = (
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf"
)


def gpu(
    name: str,
    title: str,
    gibibytes: float,
    gigabytes_per_second: float,
    teraflops: Mapping[str, float],
    url: str,
    *,
    read_in: str = SHEET,
    memory: tuple[str, str] = (CUDA, LOG),
    link: str = "pcie4",
    gpus_per_node: int = 8,
    network: str = "infiniband-ndr",
    note: str = "",
) -> DeviceSpec:
    """`gibibytes`: what the driver gives. `teraflops`: by type; "half" is both 16-bit types."""
    peaks = dict(teraflops)
    if "half" in peaks:
        half = peaks.pop("half")
        peaks = {"float16": half, "bfloat16": half} | peaks
    return DeviceSpec(
        name=name,
        title=title,
        memory_bytes=round(gibibytes * GIB),
        memory_bandwidth=gigabytes_per_second * 1e9,
        peak_flops={dtype: value * 1e12 for dtype, value in peaks.items()},
        source=Source(url, read_in, DATE),
        memory_source=Source(memory[0], memory[1], DATE),
        link=link,
        gpus_per_node=gpus_per_node,
        network=network,
        note=note,
    )
