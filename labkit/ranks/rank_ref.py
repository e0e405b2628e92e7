"""`RankRef`: stands for something that each rank of a pool keeps."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labkit.ranks.worker import kept

if TYPE_CHECKING:
    from labkit.ranks.pool import RankPool


class RankRefError(RuntimeError):
    """A RankRef was used where, or when, the ranks do not have what it stands for."""


class PoolInRankError(TypeError):
    """A RankPool was among what goes to the ranks."""


class RankRef:
    """Something that each rank keeps: an argument for later calls of the same pool."""

    def __init__(self, pool: RankPool, number: int, made_by: str) -> None:
        self._pool = weakref.ref(pool)
        self._start_id = weakref.ref(pool.start_id)
        self._number = number
        self._made_by = made_by

    def __repr__(self) -> str:
        state = "" if self.is_alive() else ", stale"
        return f"RankRef({self._made_by}{state})"

    def is_alive(self) -> bool:
        """Whether the ranks that keep it are still the pool's ranks."""
        pool, start_id = self._pool(), self._start_id()
        return pool is not None and start_id is not None and pool.start_id is start_id

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"{self._made_by!r} lives on the ranks and its .{name} does too: "
            f"pool.run(lambda comm, x: x.{name}, ref)"
        )

    def __reduce__(self) -> Any:
        pool = _sending.pool
        if pool is None or pool is not self._pool():
            raise RankRefError(
                f"{self!r} lives on the ranks of its pool: pass it to run or put of that pool"
            )
        if not self.is_alive():
            raise RankRefError(
                f"{self!r} is gone, because the pool has started new ranks since; "
                "make it again with pool.put"
            )
        return kept, (self._number,)


class _Sending(threading.local):
    pool: RankPool | None = None


_sending = _Sending()


@contextmanager
def sending_to(pool: RankPool) -> Iterator[None]:
    """While arguments are pickled for `pool`: only its own references may be among them."""
    _sending.pool = pool
    try:
        yield
    finally:
        _sending.pool = None
