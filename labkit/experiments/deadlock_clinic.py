"""Three programs that cannot end, run for real; what their diagnosis says; and each one cured.

They are the shapes in which collectives hang in practice: ranks that all receive before they send,
a rank that stays away, and two groups entered in different orders. The pool that runs them gives
up after a short standstill and says who waits for whom and where every rank stood.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

STALL_SECONDS = 1.0
"""How long the clinic watches a standstill before it says so."""

Program = Callable[[Comm], Any]


def pass_around(comm: Comm) -> float:
    """Each rank passes its number to the rank on its right."""
    mine = torch.full((4,), float(comm.rank))
    got = torch.empty(4)
    comm.recv(got, src=(comm.rank - 1) % comm.size)
    comm.send(mine, dst=(comm.rank + 1) % comm.size)
    return got[0].item()


def pass_around_cured(comm: Comm) -> float:
    """Send and receive in one call: nobody's send waits for its own receive."""
    mine = torch.full((4,), float(comm.rank))
    got = torch.empty(4)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.send_recv(mine, dst=right, out=got, src=left)
    return got[0].item()


def count_words(comm: Comm) -> float:
    """The ranks add up what they hold; the last one holds nothing."""
    words = torch.arange(4.0) if comm.rank < 2 else torch.empty(0)
    if len(words) == 0:
        return 0.0
    return comm.all_reduce(words.sum()).item()


def count_words_cured(comm: Comm) -> float:
    """Every rank calls; the sum over nothing is zero."""
    words = torch.arange(4.0) if comm.rank < 2 else torch.empty(0)
    return comm.all_reduce(words.sum()).item()


def log_and_step(comm: Comm) -> float:
    """A sum for the model and one for the logs, each in a group of its own."""
    model = comm.split([range(comm.size)], "model")
    logs = comm.split([range(comm.size)], "logs")
    loss, x = torch.ones(1), torch.ones(4)
    if comm.rank == 0:
        logs.all_reduce(loss)
    model.all_reduce(x)
    if comm.rank != 0:
        logs.all_reduce(loss)
    return loss.item()


def log_and_step_cured(comm: Comm) -> float:
    """Every rank enters both groups in the same order."""
    model = comm.split([range(comm.size)], "model")
    logs = comm.split([range(comm.size)], "logs")
    loss, x = torch.ones(1), torch.ones(4)
    model.all_reduce(x)
    logs.all_reduce(loss)
    return loss.item()


PATIENTS: Mapping[str, Program] = {
    program.__name__: program for program in (pass_around, count_words, log_and_step)
}
"""The programs that hang, by name."""

CURED: Mapping[str, Program] = {
    "pass_around": pass_around_cured,
    "count_words": count_words_cured,
    "log_and_step": log_and_step_cured,
}
"""The same programs with the fault removed."""


@dataclass(frozen=True)
class Diagnosis:
    """What became of one program."""

    name: str
    source: str
    """The program as it was run."""
    culprit: int
    """The rank that the error names; of a circle, its first."""
    message: str
    """The whole account: the summary, then where every rank stood."""

    @property
    def summary(self) -> str:
        """The first line of the account."""
        return self.message.splitlines()[0]


def source_of(program: Program) -> str:
    """The program's lines, as a reader sees them."""
    return textwrap.dedent(inspect.getsource(program)).rstrip()


def diagnose(name: str, pool: RankPool) -> Diagnosis:
    """Run the broken program called `name` on the pool's ranks and return what the pool says.

    Raises:
        LookupError: no program is called so; the message lists those there are.
        RuntimeError: the program ended, which it must not.
    """
    program = _find(name, PATIENTS)
    try:
        pool.run(program)
    except RankError as error:
        return Diagnosis(name, source_of(program), error.rank, str(error))
    raise RuntimeError(f"{name} ended, and it is here because it cannot")


def diagnose_all(ranks: int = 3, stall_seconds: float = STALL_SECONDS) -> list[Diagnosis]:
    """Every broken program, one after the other, on `ranks` ranks of their own.

    The pool ends a program after `stall_seconds` without progress, and starts new ranks for the
    next one: one hang costs the others nothing.
    """
    with RankPool(ranks, timeout=30.0, stall_timeout=stall_seconds) as pool:
        return [diagnose(name, pool) for name in PATIENTS]


def run_cured(pool: RankPool) -> dict[str, list[Any]]:
    """Name -> what each rank returns, of the cured programs."""
    return {name: pool.run(program) for name, program in CURED.items()}


def _find(name: str, programs: Mapping[str, Program]) -> Program:
    if name not in programs:
        raise LookupError(f"no program is called {name!r}; there are {', '.join(programs)}")
    return programs[name]
