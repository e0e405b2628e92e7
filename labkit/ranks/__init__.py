"""Real ranks: processes, the collectives between them, what each was doing when it went wrong."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.ranks.comm import Comm
    from labkit.ranks.launch import comm_from_env
    from labkit.ranks.mesh import Mesh
    from labkit.ranks.pool import RankPool, RankRef, run_ranks
    from labkit.ranks.report import RankError, RankReport, RankTimeout
    from labkit.ranks.trace import Trace, TracedComm, diff_traces

_HOME = {
    "Comm": "comm",
    "Mesh": "mesh",
    "RankError": "report",
    "RankPool": "pool",
    "RankRef": "pool",
    "RankReport": "report",
    "RankTimeout": "report",
    "Trace": "trace",
    "TracedComm": "trace",
    "comm_from_env": "launch",
    "diff_traces": "trace",
    "run_ranks": "pool",
}

__all__ = [
    "Comm",
    "Mesh",
    "RankError",
    "RankPool",
    "RankRef",
    "RankReport",
    "RankTimeout",
    "Trace",
    "TracedComm",
    "comm_from_env",
    "diff_traces",
    "run_ranks",
]


def __getattr__(name: str) -> Any:
    """Import the module that holds `name` on first use, so that this package stays light."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
