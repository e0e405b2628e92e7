"""GPUs of workstations and desktops."""

from __future__ import annotations

from labkit.plan.gpu_figures import GA102, LOG, gpu

_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_RTX_BLACKWELL = "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"


WORKSTATION_GPUS = (
    gpu(
        "rtx-a6000",
        "RTX A6000",
        47.53,
        768,
        {"half": 154.8, "int8": 309.7, "float32": 38.7},
        GA102,
        note="with ECC off; pairs can have an NVLink bridge: nvlink-bridge-3090",
    ),
    gpu(
        "rtx-3090",
        "GeForce RTX 3090",
        23.58,
        936,
        {"half": 71, "int8": 284, "float32": 35.6},
        GA102,
        memory=("https://github.com/vllm-project/vllm/issues/10517", "the engine's log line"),
        network="ethernet-25",
        note="pairs can have an NVLink bridge: nvlink-bridge-3090",
    ),
    gpu(
        "rtx-4090",
        "GeForce RTX 4090",
        23.64,
        1008,
        {"half": 165.2, "fp8": 330.3, "int8": 660.6, "float32": 82.6},
        _ADA,
        network="ethernet-25",
        note="no NVLink; its driver lets GPUs talk through host memory only, so PCIe gives less",
    ),
    gpu(
        "rtx-5090",
        "GeForce RTX 5090",
        31.37,
        1792,
        {"half": 209.5, "fp8": 419, "fp4": 1676, "int8": 838, "float32": 104.8},
        _RTX_BLACKWELL,
        memory=("https://github.com/Wan-Video/Wan2.1/issues/465", LOG),
        link="pcie5",
        network="ethernet-25",
        note="no NVLink",
    ),
    gpu(
        "rtx-6000-ada",
        "RTX 6000 Ada",
        47.4,
        960,
        {"half": 364.2, "fp8": 728.5, "int8": 728.5, "float32": 91.1},
        "https://www.nvidia.com/en-us/design-visualization/rtx-6000/",
        network="ethernet-100",
        note="with ECC off; 44.4 GiB with ECC on",
    ),
    gpu(
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
)
