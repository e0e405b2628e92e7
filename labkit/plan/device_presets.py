"""GPUs by name, each with its source. Operations are dense: half of what a sheet prints "with
sparsity"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labkit.plan.hardware import DeviceSpec, unknown_name
from labkit.plan.presets import Source

_DATE = "2026-12-01"
_GIB = 2**30
_SHEET = "the figures of the data sheet, dense"
_AICONFIGURATOR = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/*.yaml"
_LOG = "a public log: the total in PyTorch's out-of-memory line"
_CUDA = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__MEMORY.html"
_NVIDIA = "https://www.nvidia.com/en-us/data-center/"
_A100 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
_H100 = "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
_H200 = "https://resources.nvidia.com/en-us-data-center-overview-mc/en-us-data-center-overview/hpc-datasheet-sc23-h200"
_BLACKWELL = "https://nvdam.widen.net/s/wwnsxrhm2w/blackwell-datasheet-3384703"
_B300 = "https://resources.nvidia.com/en-us-blackwell-architecture/blackwell-ultra-datasheet"
_V100 = "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf"
_GA102 = (
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf"
)
_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_RTX_BLACKWELL = "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"
_MI300X = "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf"


def _device(
    name: str,
    title: str,
    gibibytes: float,
    gigabytes_per_second: float,
    teraflops: Mapping[str, float],
    url: str,
    *,
    read_in: str = _SHEET,
    memory: tuple[str, str] = (_CUDA, _LOG),
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
        memory_bytes=round(gibibytes * _GIB),
        memory_bandwidth=gigabytes_per_second * 1e9,
        peak_flops={dtype: value * 1e12 for dtype, value in peaks.items()},
        source=Source(url, read_in, _DATE),
        memory_source=Source(memory[0], memory[1], _DATE),
        link=link,
        gpus_per_node=gpus_per_node,
        network=network,
        note=note,
    )


_AMPERE = {"half": 312, "int8": 624, "float32": 19.5}
_HOPPER = {"half": 989, "fp8": 1979, "int8": 1979, "float32": 67}
_HOPPER_NVL = {"half": 835.5, "fp8": 1670.5, "int8": 1670.5, "float32": 60}
_H100_LOG = ("https://github.com/vllm-project/vllm/issues/27508", "the total in its traceback")

_ALL = (
    _device(
        "v100-16gb",
        "V100 SXM2 16GB",
        15.77,
        900,
        {"float16": 125, "float32": 15.7},
        _V100,
        link="nvlink2",
        network="infiniband-hdr",
    ),
    _device(
        "v100-32gb",
        "V100 SXM2 32GB",
        31.74,
        900,
        {"float16": 125, "float32": 15.7},
        _V100,
        memory=("https://github.com/liucongg/ChatGLM-Finetuning/issues/73", _LOG),
        link="nvlink2",
        network="infiniband-hdr",
    ),
    _device(
        "t4",
        "T4",
        14.75,
        320,
        {"float16": 65, "int8": 130, "float32": 8.1},
        "https://www.nvidia.com/en-us/data-center/tesla-t4/",
        memory=("https://github.com/hpcaitech/Open-Sora/issues/697", _LOG),
        link="pcie3",
        network="ethernet-100",
    ),
    _device(
        "a10",
        "A10",
        22.06,
        600,
        {"half": 125, "int8": 250, "float32": 31.2},
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/a10-datasheet.pdf",
        memory=(_CUDA, "public logs of an A10G, which nvidia-smi gives the same 23028 MiB"),
        network="ethernet-100",
    ),
    _device(
        "a10g",
        "A10G",
        22.06,
        600,
        {"half": 70, "int8": 140, "float32": 35},
        "https://www.baseten.co/blog/nvidia-a10-vs-a10g-for-ml-model-inference/",
        read_in="that comparison of the two cards",
        network="ethernet-100",
    ),
    _device(
        "a100-40gb",
        "A100 SXM 40GB",
        39.39,
        1555,
        _AMPERE,
        _A100,
        link="nvlink3",
        network="infiniband-hdr",
    ),
    _device(
        "a100-80gb",
        "A100 SXM 80GB",
        79.25,
        2039,
        _AMPERE,
        _A100,
        link="nvlink3",
        network="infiniband-hdr",
    ),
    _device("a100-pcie-40gb", "A100 PCIe 40GB", 39.39, 1555, _AMPERE, _A100),
    _device("a100-pcie-80gb", "A100 PCIe 80GB", 79.25, 1935, _AMPERE, _A100),
    _device(
        "h100",
        "H100 SXM 80GB",
        79.11,
        3350,
        _HOPPER,
        _H100,
        memory=_H100_LOG,
        link="nvlink4",
        note="79.1 to 79.3 GiB, by driver; nvidia-smi prints 81559 MiB",
    ),
    _device(
        "h100-pcie",
        "H100 PCIe 80GB",
        79.11,
        2000,
        {"half": 756, "fp8": 1513, "int8": 1513, "float32": 51},
        _H100,
        memory=(_H100_LOG[0], "as the SXM card's: nvidia-smi prints 81559 MiB for both"),
        link="pcie5",
    ),
    _device(
        "h100-nvl",
        "H100 NVL 94GB",
        93.1,
        3900,
        _HOPPER_NVL,
        _H100,
        link="pcie5",
        note="pairs can have NVLink bridges: nvlink-bridge-h100",
    ),
    _device("h200", "H200 SXM 141GB", 139.8, 4800, _HOPPER, _H200, link="nvlink4"),
    _device(
        "b200",
        "B200 SXM 180GB",
        178.35,
        7700,
        {"half": 2250, "fp8": 4500, "fp4": 9000, "int8": 4500, "float32": 75},
        _BLACKWELL,
        read_in=_AICONFIGURATOR,
        link="nvlink5",
        network="infiniband-xdr",
    ),
    _device(
        "gb200",
        "GB200 (one GPU of NVL72)",
        184.31,
        8000,
        {"half": 2500, "fp8": 5000, "fp4": 10000, "int8": 5000, "float32": 80},
        _BLACKWELL,
        read_in=_AICONFIGURATOR,
        link="nvlink5",
        gpus_per_node=72,
        network="infiniband-xdr",
        note="its node here is the NVLink rack of 72 GPUs; a tray has 4",
    ),
    _device(
        "b300",
        "B300 SXM",
        267.69,
        7750,
        {"half": 2250, "fp8": 4500, "fp4": 14000, "int8": 153.5},
        _B300,
        read_in=_AICONFIGURATOR,
        link="nvlink5",
        network="infiniband-xdr",
    ),
    _device(
        "gb300",
        "GB300 (one GPU of NVL72)",
        276.5,
        8000,
        {"half": 2500, "fp8": 5000, "fp4": 15000, "int8": 165},
        _B300,
        read_in=_AICONFIGURATOR,
        link="nvlink5",
        gpus_per_node=72,
        network="infiniband-xdr",
        note="its node here is the NVLink rack of 72 GPUs; a tray has 4",
    ),
    _device(
        "h20",
        "H20 SXM 96GB",
        95.0,
        4000,
        {"half": 148, "fp8": 296, "int8": 296, "float32": 44},
        "https://github.com/citsjtu2020/LLM-Prof/blob/main/hardware_spec.md",
        read_in="that table and a second one, which agree on operations and within 2 % on memory",
        link="nvlink4",
    ),
    _device(
        "l4",
        "L4",
        22.03,
        300,
        {"half": 121, "fp8": 242, "int8": 242, "float32": 30.3},
        _NVIDIA + "l4/",
        read_in=_AICONFIGURATOR,
        network="ethernet-100",
    ),
    _device(
        "l40s",
        "L40S",
        44.4,
        864,
        {"half": 362.05, "fp8": 733, "int8": 733, "float32": 91.6},
        _NVIDIA + "l40s/",
        read_in=_AICONFIGURATOR,
    ),
    _device(
        "a40",
        "A40",
        44.42,
        696,
        {"half": 149.7, "int8": 299.3, "float32": 37.4},
        _GA102,
        note="pairs can have an NVLink bridge: nvlink-bridge-3090",
    ),
    _device(
        "rtx-a6000",
        "RTX A6000",
        47.53,
        768,
        {"half": 154.8, "int8": 309.7, "float32": 38.7},
        _GA102,
        note="with ECC off; pairs can have an NVLink bridge: nvlink-bridge-3090",
    ),
    _device(
        "rtx-3090",
        "GeForce RTX 3090",
        23.58,
        936,
        {"half": 71, "int8": 284, "float32": 35.6},
        _GA102,
        memory=("https://github.com/vllm-project/vllm/issues/10517", "the engine's log line"),
        network="ethernet-25",
        note="pairs can have an NVLink bridge: nvlink-bridge-3090",
    ),
    _device(
        "rtx-4090",
        "GeForce RTX 4090",
        23.64,
        1008,
        {"half": 165.2, "fp8": 330.3, "int8": 660.6, "float32": 82.6},
        _ADA,
        network="ethernet-25",
        note="no NVLink; its driver lets GPUs talk through host memory only, so PCIe gives less",
    ),
    _device(
        "rtx-5090",
        "GeForce RTX 5090",
        31.37,
        1792,
        {"half": 209.5, "fp8": 419, "fp4": 1676, "int8": 838, "float32": 104.8},
        _RTX_BLACKWELL,
        memory=("https://github.com/Wan-Video/Wan2.1/issues/465", _LOG),
        link="pcie5",
        network="ethernet-25",
        note="no NVLink",
    ),
    _device(
        "rtx-6000-ada",
        "RTX 6000 Ada",
        47.4,
        960,
        {"half": 364.2, "fp8": 728.5, "int8": 728.5, "float32": 91.1},
        "https://www.nvidia.com/en-us/design-visualization/rtx-6000/",
        network="ethernet-100",
        note="with ECC off; 44.4 GiB with ECC on",
    ),
    _device(
        "rtx-pro-6000",
        "RTX PRO 6000 Blackwell",
        94.97,
        1792,
        {"half": 500, "fp8": 1000, "fp4": 2000, "int8": 1000, "float32": 125},
        "https://www.nvidia.com/en-us/products/workstations/professional-desktop-gpus/rtx-pro-6000/",
        read_in="4000 sparse FP4 TOPS, halved for dense and for each wider type",
        memory=("https://github.com/antirez/ds4/issues/431", "the engine's log line"),
        link="pcie5",
        note="workstation edition",
    ),
    _device(
        "mi300x",
        "MI300X",
        191.98,
        5300,
        {"half": 1307.4, "fp8": 2614.9, "int8": 2614.9, "float32": 163.4},
        _MI300X,
        memory=("https://rocm.docs.amd.com/", _LOG),
        link="xgmi-mi300x",
    ),
    DeviceSpec(
        name="textbook-80gb",
        title="textbook GPU of 80 GB",
        memory_bytes=80e9,
        memory_bandwidth=3.35e12,
        peak_flops={"float16": 989e12, "bfloat16": 989e12},
        source=Source("the course's source material", "round figures, quoted there", _DATE),
        link="textbook-nvlink",
        label="assumed",
        note="80e9 bytes, as in the worked example of lesson 03",
    ),
)

DEVICES: Mapping[str, DeviceSpec] = MappingProxyType({device.name: device for device in _ALL})
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
