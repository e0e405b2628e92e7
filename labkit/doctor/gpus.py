"""NVIDIA GPUs and the links between them, asked of `nvidia-smi`: no CUDA context is made."""

import re
import subprocess
from dataclasses import dataclass
from itertools import combinations

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MEANINGS = {
    "PIX": "one PCIe switch",
    "PXB": "several PCIe switches",
    "PHB": "the CPU's PCIe host bridge",
    "NODE": "PCIe host bridges of one NUMA node",
    "SYS": "the link between CPU sockets",
}


@dataclass(frozen=True)
class Gpu:
    """One GPU; memory in bytes."""

    index: int
    name: str
    memory_total: int
    memory_free: int


@dataclass(frozen=True)
class Link:
    """How two GPUs reach each other: `kind` as nvidia-smi writes it (NV18, PIX, SYS, ...)."""

    first: int
    second: int
    kind: str

    @property
    def is_nvlink(self) -> bool:
        return self.kind.startswith("NV")

    @property
    def meaning(self) -> str:
        """The kind in words."""
        if self.is_nvlink:
            return f"NVLink, {self.kind.removeprefix('NV')} lanes"
        return _MEANINGS.get(self.kind, self.kind)


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that nvidia-smi lists; none where there is no nvidia-smi."""
    query = "--query-gpu=index,name,memory.total,memory.free"
    return parse_gpus(_nvidia_smi(query, "--format=csv,noheader,nounits"))


def links() -> tuple[Link, ...]:
    """The link of each pair of GPUs."""
    return parse_links(_nvidia_smi("topo", "-m"))


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """From `nvidia-smi --query-gpu=index,name,memory.total,memory.free` (CSV, MiB)."""
    found = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) == 4 and fields[0].isdigit():
            total, free = (int(f) * 2**20 if f.isdigit() else 0 for f in fields[2:])
            found.append(Gpu(int(fields[0]), fields[1], total, free))
    return tuple(found)


def parse_links(text: str) -> tuple[Link, ...]:
    """From the matrix of `nvidia-smi topo -m`: a row and a column per GPU."""
    rows: dict[int, list[str]] = {}
    for line in _COLOUR.sub("", text).splitlines():
        cells = line.split()
        name = re.fullmatch(r"GPU(\d+)", cells[0]) if cells else None
        if name and "X" in cells:  # the heading has no X
            rows[int(name[1])] = cells[1:]
    return tuple(
        Link(a, b, rows[a][column])
        for (_, a), (column, b) in combinations(enumerate(rows), 2)
        if column < len(rows[a])
    )


def link_summary(found: tuple[Link, ...]) -> str:
    """`NVLink, 18 lanes, between all pairs`, or one part per kind with its pairs."""
    pairs: dict[str, list[str]] = {}
    for link in found:
        pairs.setdefault(link.meaning, []).append(f"{link.first}-{link.second}")
    if len(pairs) == 1:
        return f"{next(iter(pairs))}, between all pairs"
    return "; ".join(f"{meaning}: {', '.join(names)}" for meaning, names in pairs.items())


def _nvidia_smi(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
