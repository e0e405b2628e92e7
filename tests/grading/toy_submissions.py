"""Ways to go wrong in the toy exercise, one function each."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import cloudpickle
import torch

from labkit.ranks.comm import Comm

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # as functions of a notebook travel

lock = threading.Lock()


def right(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone())


def stub(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError()


def returns_nothing(comm: Comm, x: torch.Tensor) -> None:
    comm.all_reduce(x.clone())


def in_place(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x)


def mean(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) / comm.size


def no_reduce(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x


def gathers(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_gather(x).reshape(comm.size, -1).sum(0)


def reduces_twice(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    comm.all_reduce(x.clone())
    return comm.all_reduce(x.clone())


def never_reduces(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x + 100


def half(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone())[:2]


def single(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()).float()


def as_list(comm: Comm, x: torch.Tensor) -> list[float]:
    return comm.all_reduce(x.clone()).tolist()


def off_on_rank_1(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    y = comm.all_reduce(x.clone())
    y[2] += comm.rank
    return y


def raises(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) + torch.ones(7)


class OwnError(Exception):
    def __reduce__(self) -> Any:
        return os._exit, (3,)


def raises_its_own(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    raise OwnError("mine")


def skips(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) if comm.rank else x


def other_order(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return comm.all_reduce(x.clone()) if comm.rank else comm.all_gather(x)


def dies(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    os.kill(os.getpid(), 9)
    return x


def exits(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    sys.exit(3)


def lacks_x(comm: Comm) -> torch.Tensor:
    return torch.zeros(4)


def takes_more(comm: Comm, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x


def generates(comm: Comm, x: torch.Tensor) -> Any:
    yield x


async def waits(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    return x


def uses_a_lock(comm: Comm, x: torch.Tensor) -> torch.Tensor:
    with lock:
        return comm.all_reduce(x.clone())
