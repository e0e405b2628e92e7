"""Which transport carries a group's collectives, and why: chosen here, or told.

Told by `Comm.over`, by `collectives=` of `RankPool` and `Mesh`, or for a whole program by the
environment variable LABKIT_COLLECTIVES, in this order.
"""

import os
from collections.abc import Mapping
from datetime import timedelta

import torch
import torch.distributed as dist

from labkit.ranks import shared_handshake
from labkit.ranks.transport import BackendTransport, Transport

TRANSPORTS = ("gloo", "shared memory", "nccl", "symmetric memory")
ON_CPUS, ON_GPUS = TRANSPORTS[:2], TRANSPORTS[2:]
VARIABLE = "LABKIT_COLLECTIVES"


def check_transport(name: str, device_type: str | None = None) -> str:
    """`name` as a transport is spelled ("shared-memory" is "shared memory").

    Raises:
        ValueError: there is none of that name, or it does not join devices of `device_type`.
    """
    spelled = name.strip().lower().replace("-", " ").replace("_", " ")
    if spelled not in TRANSPORTS:
        raise ValueError(f"no transport is called {name!r}; there are {', '.join(TRANSPORTS)}")
    legal = TRANSPORTS if device_type is None else ON_GPUS if device_type == "cuda" else ON_CPUS
    if spelled not in legal:
        raise ValueError(
            f"{spelled} cannot carry the collectives of tensors that live on {device_type}; "
            f"{' or '.join(legal)} can"
        )
    return spelled


def told_by(environ: Mapping[str, str] = os.environ) -> str | None:
    """What the environment says; None: nothing. Raises ValueError for a name that is none."""
    name = environ.get(VARIABLE, "")
    try:
        return check_transport(name) if name.strip() else None
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}") from None


def choose_transport(
    group: dist.ProcessGroup,
    device: torch.device,
    told: str | None = None,
    timeout: timedelta | None = None,
) -> tuple[Transport, str]:
    """The transport of `group`, and a sentence that says why. All its ranks call it, told the same.

    Raises:
        ValueError: on every rank, when the transport that was `told` cannot be had.
    """
    backend = BackendTransport(group, device)
    if told is not None:
        check_transport(told, device.type)
    if told == backend.name:
        return backend, "it was asked for"
    if told == "symmetric memory":
        from labkit.ranks import symmetric_memory

        symmetric, why = symmetric_memory.attempt(group, device)
        if symmetric is None:
            raise ValueError(f"symmetric memory cannot be had here: {why}; nccl can")
        return symmetric, f"it was asked for, and {why}"
    if device.type == "cuda":
        return backend, "the tensors live on GPUs"
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        shared, why = None, "torch is asked to compare collectives, which it does over gloo"
    else:
        shared, why = shared_handshake.attempt(group, timeout)
    if shared is not None:
        return shared, f"it was asked for, and {why}" if told else why
    if told is not None:
        raise ValueError(f"shared memory cannot be had here: {why}; gloo can")
    return backend, why
