"""Ranks that torchrun started, on one machine or many: the same functions as on a `RankPool`."""

import faulthandler
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from labkit.ranks.comm import Comm
from labkit.ranks.stack import user_traceback
from labkit.ranks.target import Arguments, check_call, find_function
from labkit.ranks.wire import text_of

_GRACE_SECONDS = 3.0
"""What a collective that has waited too long gets to say so, before the rank is ended anyhow."""


@dataclass(frozen=True)
class Place:
    """What torchrun tells a process about itself."""

    rank: int
    size: int
    local_rank: int  # among the ranks of this machine
    local_size: int

    @property
    def is_one_machine(self) -> bool:
        return self.local_size == self.size

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Place":
        """Read RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE.

        Raises:
            RuntimeError: RANK or WORLD_SIZE is not set, or a value makes no sense.
        """
        if not under_torchrun(environ):
            raise RuntimeError(
                "RANK and WORLD_SIZE are not set: start this with torchrun, "
                "or use `labkit run` or RankPool, which need neither"
            )
        rank, size = _whole(environ, "RANK"), _whole(environ, "WORLD_SIZE")
        local_rank = _whole(environ, "LOCAL_RANK", rank)
        place = cls(rank, size, local_rank, _whole(environ, "LOCAL_WORLD_SIZE", size))
        if not 0 <= rank < size:
            raise RuntimeError(f"RANK is {rank}, and with WORLD_SIZE {size} it is 0 to {size - 1}")
        return place


def under_torchrun(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a launcher has given this process its rank."""
    return "RANK" in environ and "WORLD_SIZE" in environ


def choose_device(place: Place, gpus: int) -> tuple[str, torch.device]:
    """Backend and device: NCCL when this machine has a GPU for each of its ranks, else gloo."""
    if gpus >= place.local_size:
        return "nccl", torch.device("cuda", place.local_rank)
    return "gloo", torch.device("cpu")


def loopback(place: Place, environ: Mapping[str, str]) -> dict[str, str]:
    """What to set so that ranks of one machine talk over its loopback interface.

    The machine's own name then need not resolve. Ranks of several machines, or a user who chose an
    interface, are left alone.
    """
    if not place.is_one_machine:
        return {}
    name = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    interfaces = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
    return {key: name for key in interfaces if name is not None and key not in environ}


def comm_from_env(
    *,
    timeout: float = 600.0,
    reporter: Callable[[Any], None] | None = None,
    collectives: str | None = None,
) -> Comm:
    """The world under torchrun: joins the process group and takes this rank's GPU, if any.

    Args:
        timeout: seconds a rank may wait for the others, at the start and in each collective.
        reporter: receives what the ranks pass to `Comm.report`.
        collectives: what carries the collectives; None: what LABKIT_COLLECTIVES names, or the
            fastest that all ranks can have.
    """
    place = Place.from_env(os.environ)
    backend, device = choose_device(place, torch.cuda.device_count())
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if place.size == 1:
        return Comm.solo(device, name="world", reporter=reporter)
    limit = timedelta(seconds=timeout)
    if not dist.is_initialized():
        os.environ.update(loopback(place, os.environ))
        dist.init_process_group(
            backend, timeout=limit, device_id=device if device.type == "cuda" else None
        )
    return Comm.world(device, reporter=reporter, timeout=limit, collectives=collectives)


def run_target(comm: Comm, target: str, arguments: Arguments) -> Any:
    """On a rank: find the function and call it."""
    return find_function(target)(comm, *arguments.positional, **arguments.named)


def run_here(target: str, arguments: Arguments, ranks: int | None, timeout: float) -> int:
    """`labkit run` in a process that torchrun started: run this rank, print every rank's result.

    A collective that waits longer than `timeout` seconds ends with an error that names who did not
    come. A rank that is not done a little later shows its stack and ends with an error.
    Returns the exit code: 1 when the function raised, after showing the traceback.
    """
    place = Place.from_env(os.environ)
    if ranks is not None and ranks != place.size:
        raise ValueError(
            f"--ranks {ranks}, but torchrun started {place.size}; "
            f"leave --ranks out or say --ranks {place.size}"
        )
    check_call(target, find_function(target), arguments)
    faulthandler.dump_traceback_later(timeout + _GRACE_SECONDS, exit=True)
    try:
        _run_rank(place, target, arguments, timeout)
    except Exception as error:
        sys.stderr.write(user_traceback(error, error.__traceback__))
        return 1
    finally:
        faulthandler.cancel_dump_traceback_later()
    return 0


@record  # so that torchrun's summary shows the traceback of the rank that failed first
def _run_rank(place: Place, target: str, arguments: Arguments, timeout: float) -> None:
    def report(value: Any) -> None:
        print(f"[rank {place.rank}] {value}", flush=True)

    comm = comm_from_env(timeout=timeout, reporter=report)
    try:
        result = shown(run_target(comm, target, arguments))
    except SystemExit as error:
        raise RuntimeError(f"rank {place.rank} called sys.exit({error.code!r})") from None
    results: list[Any] = [result]
    if comm.size > 1:
        results = [None] * comm.size
        dist.all_gather_object(results, result)
        dist.destroy_process_group()
    if comm.rank == 0:
        print_results(results)


def shown(result: Any) -> str:
    """The repr of a result, or why it has none."""
    try:
        return repr(result)
    except Exception as error:
        name, said = type(result).__name__, f"{type(error).__name__}: {text_of(error)}"
        return f"<{name} object, whose repr raised {said}>"


def print_results(results: list[str]) -> None:
    """One line per rank, in rank order."""
    sys.stdout.write("".join(f"rank {rank}: {text}\n" for rank, text in enumerate(results)))
    sys.stdout.flush()


def _whole(environ: Mapping[str, str], name: str, default: int = 0) -> int:
    text = environ.get(name)
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise RuntimeError(f"{name} is {text!r}; it must be a whole number") from None
