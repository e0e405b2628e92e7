"""Links between GPUs, each with its source. Bandwidths are one direction, for each GPU.

NVLink and network figures are the makers' peaks. PCIe figures are what copies between GPUs reach,
because the peak is never seen. Latencies are assumed: a step of a collective costs about as much
as a kernel's wait for a neighbour, and `labkit.plan.collective_presets` has fitted ones instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labkit.plan.hardware import LinkSpec, unknown_name
from labkit.plan.presets import Source

_DATE = "2026-12-01"
_AICONFIGURATOR = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/*.yaml"
_NVIDIA_NVLINK = "https://www.nvidia.com/en-us/data-center/nvlink/"
_NVLINK_SECONDS = 2e-6
_PCIE_SECONDS = 5e-6
_NETWORK_SECONDS = 5e-6
_ETHERNET_SECONDS = 10e-6


def _nvlink(name: str, title: str, gigabytes: float, url: str, read_in: str) -> LinkSpec:
    source = Source(url, read_in, _DATE)
    return LinkSpec(
        name, title, gigabytes * 1e9, _NVLINK_SECONDS, source, note="peak; latency assumed"
    )


def _network(name: str, title: str, gigabits: float, seconds: float, url: str) -> LinkSpec:
    return LinkSpec(
        name,
        title,
        gigabits * 1e9 / 8,
        seconds,
        Source(url, _AICONFIGURATOR, _DATE),
        label="assumed",
        note="line rate of one port for each GPU, a common choice; latency assumed",
    )


_INFINIBAND = "https://www.nvidia.com/en-us/networking/products/infiniband/"
_ETHERNET = "https://www.nvidia.com/en-us/networking/ethernet-adapters/"
_TEXTBOOK = Source("the course's source material", "round figures, quoted there", _DATE)

_ALL = (
    _nvlink(
        "nvlink2",
        "NVLink 2 (V100)",
        150,
        "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf",
        "the data sheet: 300 GB/s in both directions together",
    ),
    _nvlink("nvlink3", "NVLink 3 (A100)", 300, _NVIDIA_NVLINK, _AICONFIGURATOR),
    _nvlink("nvlink4", "NVLink 4 (H100, H200)", 450, _NVIDIA_NVLINK, _AICONFIGURATOR),
    _nvlink("nvlink5", "NVLink 5 (B200, GB200, B300)", 900, _NVIDIA_NVLINK, _AICONFIGURATOR),
    _nvlink(
        "nvlink-bridge-3090",
        "NVLink bridge of a pair of RTX 3090, A6000 or A40",
        56.25,
        "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.1.pdf",
        "a quotation: four links of 14.0625 GB/s in each direction",
    ),
    _nvlink(
        "nvlink-bridge-a100",
        "NVLink bridges of an A100 PCIe pair",
        300,
        "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf",
        "the data sheet: 600 GB/s in both directions together, two GPUs at most",
    ),
    _nvlink(
        "nvlink-bridge-h100",
        "NVLink bridges of an H100 PCIe or NVL pair",
        300,
        "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet",
        "the data sheet: 600 GB/s in both directions together",
    ),
    LinkSpec(
        "xgmi-mi300x",
        "Infinity Fabric mesh (MI300X)",
        448e9,
        _NVLINK_SECONDS,
        Source(
            "https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf",
            "a summary of it: 7 links of 64 GB/s in each direction",
            _DATE,
        ),
        note="peak to all seven neighbours at once, one of them gets 64 GB/s; latency assumed",
    ),
    LinkSpec(
        "pcie3",
        "PCIe 3 x16",
        12e9,
        _PCIE_SECONDS,
        Source("https://pcisig.com/specifications", "15.75 GB/s, of which three quarters", _DATE),
        label="assumed",
        note="what copies reach, as a share of the standard's rate; latency assumed",
    ),
    LinkSpec(
        "pcie4",
        "PCIe 4 x16",
        25e9,
        _PCIE_SECONDS,
        Source(
            "https://github.com/NVIDIA/nccl-tests/issues/74",
            "p2pBandwidthLatencyTest there, A40 and EPYC 7302: 50 GB/s both ways",
            _DATE,
        ),
        note="peer to peer on one socket, latency assumed; through host memory, or with four and "
        "more GPUs that share a bridge, collectives reach a fifth: see the l40s presets",
    ),
    LinkSpec(
        "pcie5",
        "PCIe 5 x16",
        55e9,
        _PCIE_SECONDS,
        Source(
            "https://github.com/voipmonitor/rtx6kpro/blob/master/hardware/pcie-bandwidth.md",
            "a stored copy: 53-56 GB/s on one socket, 39-51 GB/s across",
            _DATE,
        ),
        note="peer to peer on one socket; latency assumed",
    ),
    _network("infiniband-hdr", "InfiniBand HDR 200", 200, _NETWORK_SECONDS, _INFINIBAND),
    _network("infiniband-ndr", "InfiniBand NDR 400", 400, _NETWORK_SECONDS, _INFINIBAND),
    _network("infiniband-xdr", "InfiniBand XDR 800", 800, _NETWORK_SECONDS, _INFINIBAND),
    _network("roce-400", "RoCE 400", 400, _ETHERNET_SECONDS, _ETHERNET),
    _network("ethernet-100", "Ethernet 100", 100, 3 * _ETHERNET_SECONDS, _ETHERNET),
    _network("ethernet-25", "Ethernet 25", 25, 3 * _ETHERNET_SECONDS, _ETHERNET),
    LinkSpec("textbook-nvlink", "NVLink-class", 450e9, 2e-6, _TEXTBOOK, label="assumed"),
    LinkSpec("textbook-pcie", "PCIe-class", 25e9, 5e-6, _TEXTBOOK, label="assumed"),
)

LINKS: Mapping[str, LinkSpec] = MappingProxyType({link.name: link for link in _ALL})
"""By name. The two textbook links are round figures, assumed."""
_ALIASES = {
    "nvlink": "nvlink4",
    "pcie": "pcie4",
    "infiniband": "infiniband-ndr",
    "ndr": "infiniband-ndr",
    "hdr": "infiniband-hdr",
    "xdr": "infiniband-xdr",
    "roce": "roce-400",
    "ethernet": "ethernet-100",
    "xgmi": "xgmi-mi300x",
}


def link(name: str) -> LinkSpec:
    """The link of that name. "nvlink" is generation 4, "pcie" generation 4, "infiniband" NDR.

    Raises ValueError with the nearest names.
    """
    key = str(name).strip().lower().replace("_", "-")
    key = _ALIASES.get(key, key)
    if key not in LINKS:
        raise unknown_name("link", name, LINKS)
    return LINKS[key]
