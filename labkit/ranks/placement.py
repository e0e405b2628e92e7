"""Where ranks go: how many are sensible, which backend joins them, and their environment."""

from __future__ import annotations

import operator
import os
import socket
import sys
import warnings
from dataclasses import dataclass

import torch

from labkit.ranks.transport_choice import VARIABLE, check_transport, told_by

MAX_RANKS = 128  # one takes some 40 MiB before it holds anything


@dataclass(frozen=True)
class Placement:
    backend: str  # as torch.distributed.init_process_group takes it
    devices: tuple[str, ...]  # one per rank


def check_size(size: int) -> int:
    """`size` as a number of ranks, or an error that says why it is none."""
    if sys.platform == "win32":
        raise RuntimeError(
            "ranks need a Unix: on Windows install WSL (`wsl --install`) and run Jupyter in there"
        )
    try:
        number = operator.index(size)
    except TypeError:
        raise TypeError(f"{size!r} is no number of ranks; want a whole number from 1") from None
    if isinstance(size, bool) or number < 1:
        raise ValueError(f"{size!r} ranks; want at least 1")
    if number > MAX_RANKS:
        raise ValueError(f"{number} ranks on one machine; the most is {MAX_RANKS}")
    cores = os.cpu_count() or 1
    if number > max(8, 2 * cores):
        warnings.warn(f"{number} ranks share {cores} cores: expect it to be slow", stacklevel=3)
    return number


def check_threads(threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise ValueError(f"{threads!r} threads per rank; want a whole number from 1")
    return threads


def check_seconds(name: str, seconds: float) -> float:
    """`seconds` as a duration above zero, or an error that names the argument."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ValueError(f"{name} of {seconds!r}; want seconds above 0")
    return float(seconds)


def place(size: int, backend: str | None) -> Placement:
    """NCCL when there is a GPU for every rank, else gloo on the CPU.

    Counts the GPUs without initialising CUDA in this process.
    """
    if backend not in (None, "nccl", "gloo"):
        raise ValueError(f"backend {backend!r} is not known; want 'nccl', 'gloo' or None")
    gpus = 0 if backend == "gloo" else torch.cuda.device_count()
    if backend == "nccl" and gpus < size:
        raise ValueError(f"nccl wants a GPU for each of {size} ranks; here are {gpus}")
    if gpus >= size:
        return Placement("cpu:gloo,cuda:nccl", tuple(f"cuda:{rank}" for rank in range(size)))
    return Placement("gloo", ("cpu",) * size)


def place_collectives(
    collectives: str | None, check_collectives: bool, devices: tuple[str, ...]
) -> str | None:
    """Which transport ranks on `devices` are told to take; None: they choose.

    Torch compares collectives over gloo only, so with `check_collectives` it is gloo on CPUs.

    Raises:
        ValueError: there is no such transport, it cannot join these devices, or torch cannot
            compare what goes over it.
    """
    device = devices[0].partition(":")[0]
    if check_collectives and device == "cpu":
        if collectives is not None and check_transport(collectives, device) != "gloo":
            raise ValueError(
                f"check_collectives has torch compare collectives, which it does over gloo only; "
                f"leave it out, or leave out collectives={collectives!r}"
            )
        return "gloo"
    told = told_by() if collectives is None else collectives
    return told and check_transport(told, device)


def environment(
    threads: int, check_collectives: bool, collectives: str | None = None
) -> dict[str, str]:
    """The parent's environment, with what concerns ranks on one machine set.

    The collectives stay on the loopback interface, so the host's name need not resolve.
    """
    environ = dict(os.environ)
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    environ.update(
        GLOO_SOCKET_IFNAME=loopback,
        NCCL_SOCKET_IFNAME=loopback,
        OMP_NUM_THREADS=str(threads),
        OMP_WAIT_POLICY="passive",
    )
    environ[VARIABLE] = collectives or ""
    if check_collectives:
        environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    return environ
