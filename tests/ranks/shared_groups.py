"""Groups over shared memory whose slots are so small that messages of a test go in pieces."""

from labkit.ranks import shared_handshake
from labkit.ranks.comm import Comm

SLOT_BYTES = 4096


def with_small_slots(comm: Comm, one_shot_bytes: float | None = None) -> Comm:
    """`comm` over slots of `SLOT_BYTES`, reducing in one shot up to `one_shot_bytes`."""
    small = comm.over("gloo")
    assert small._group is not None
    small.transport, why = shared_handshake.attempt(small._group, slot_bytes=SLOT_BYTES)
    assert small.transport is not None, why
    if one_shot_bytes is not None:
        small.transport._one_shot_bytes = one_shot_bytes
    return small
