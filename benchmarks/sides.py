"""Who takes part in the decode benchmark, and how each one's process is started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.process import SideProcess

OURS = "labkit"
OURS_GLOO = "labkit over gloo"
TRANSFORMERS = "transformers"
TRANSFORMERS_TP = "transformers TP"
DTENSOR = "DTensor"
LLAMA_CPP = "llama.cpp"
BANDWIDTH = "memory read"
BOUND = "bound"

READ_BYTES = 512 * 2**20
"""What the memory side reads per pass: far more than the caches hold."""

PACKAGES = ("torch", "transformers", "xllamacpp", "gguf", "numpy")


@dataclass(frozen=True)
class Side:
    """One contestant: a library at a number of ranks."""

    name: str
    module: str
    ranks: int = 1
    threads: tuple[int, ...] = (1,)
    """Threads per rank it is measured with."""
    variants: tuple[str, ...] = ("",)
    """Settings tried before the first round; the fastest is used."""
    is_torchrun: bool = False
    is_slow: bool = False
    """Measured in fewer rounds, so that a full run stays within minutes."""

    @property
    def title(self) -> str:
        """`labkit x3`."""
        return self.name if self.ranks == 1 else f"{self.name} x{self.ranks}"

    def start(self, model: Path) -> SideProcess:
        """Start its process; loading happens at the first request."""
        arguments = (str(model), str(self.ranks))
        torchrun_ranks = self.ranks if self.is_torchrun else 0
        module = f"benchmarks.peers.{self.module}"
        return SideProcess(self.title, module, *arguments, torchrun_ranks=torchrun_ranks)


_CACHES = ("dynamic", "static")

ALL_SIDES = (
    Side(BANDWIDTH, "bandwidth", threads=(1, 2)),
    Side(OURS, "ours", threads=(1, 2)),
    Side(TRANSFORMERS, "transformers_generate", threads=(1, 2), variants=_CACHES),
    Side(LLAMA_CPP, "llama_cpp", threads=(1, 2)),
    Side(OURS, "ours", ranks=2),
    Side(OURS_GLOO, "ours_over_gloo", ranks=2, is_slow=True),
    Side(OURS, "ours", ranks=3, is_slow=True),
    Side(
        TRANSFORMERS_TP,
        "transformers_tp",
        ranks=3,
        variants=_CACHES,
        is_torchrun=True,
        is_slow=True,
    ),
    Side(DTENSOR, "torch_dtensor", ranks=3, variants=_CACHES, is_torchrun=True, is_slow=True),
)

_QUICK = {(BANDWIDTH, 1), (OURS, 1), (OURS, 2), (OURS_GLOO, 2), (TRANSFORMERS, 1)}
QUICK_SIDES = tuple(side for side in ALL_SIDES if (side.name, side.ranks) in _QUICK)
