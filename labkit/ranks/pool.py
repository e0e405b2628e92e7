"""`RankPool`: run a function on several ranks from a notebook cell, a script or a test."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from labkit.ranks.arguments import CallPickler
from labkit.ranks.call import Call
from labkit.ranks.fork_server import fork_server
from labkit.ranks.output import show_output
from labkit.ranks.placement import (
    Placement,
    check_seconds,
    check_size,
    check_threads,
    environment,
    place,
    place_collectives,
)
from labkit.ranks.rank_ref import PoolInRankError, RankRef, sending_to
from labkit.ranks.rank_set import RankSet
from labkit.ranks.report import CallStopped, RankError
from labkit.ranks.wire import Kind, dumps


class RankPool:
    """`size` ranks that stay alive between calls.

    >>> def rank_sum(comm):
    ...     return comm.all_reduce(torch.tensor(comm.rank)).item()
    >>> pool = RankPool(3)
    >>> pool.run(rank_sum)
    [3, 3, 3]

    Args:
        size: number of ranks, at least 1.
        timeout: seconds that a call may take unless it says otherwise; None: no limit.
        grace: seconds that the other ranks get to finish or fail once one rank has failed.
        stall_timeout: seconds without any progress before a deadlock that no rank can leave
            ends the call; one that might still resolve waits for `timeout`.
        backend: "nccl" or "gloo"; by default nccl when there is a GPU for every rank.
        threads_per_rank: threads that torch uses in each rank.
        check_collectives: have torch compare op, shape and dtype before each collective
            (slower; good for exercises; over gloo only).
        collectives: what carries the collectives, such as "gloo"; None: what the environment
            variable LABKIT_COLLECTIVES names, or on CPUs shared memory where it can be had, and
            between GPUs NCCL.
        start_timeout: seconds that the ranks may take to start.
    """

    def __init__(
        self,
        size: int,
        *,
        timeout: float | None = 60.0,
        grace: float = 1.0,
        stall_timeout: float = 3.0,
        backend: str | None = None,
        threads_per_rank: int = 1,
        check_collectives: bool = False,
        collectives: str | None = None,
        start_timeout: float = 60.0,
    ) -> None:
        self.size = check_size(size)
        self.timeout = timeout
        self.grace = grace
        self.stall_timeout = stall_timeout
        self.start_timeout = start_timeout
        for name in ("timeout", "grace", "stall_timeout", "start_timeout"):
            if (value := getattr(self, name)) is not None:
                check_seconds(name, value)
        self._placement: Placement = place(self.size, backend)
        self._collectives = place_collectives(
            collectives, check_collectives, self._placement.devices
        )
        self._threads = check_threads(threads_per_rank)
        fork_server()  # loads torch while the caller goes on
        self._check_collectives = check_collectives
        self._ranks: RankSet | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._user: int | None = None  # the thread that called last
        self._stopping = False
        self._numbers = 0
        self._to_free: deque[int] = deque()
        self._pickler = CallPickler()

    def __reduce__(self) -> Any:
        raise PoolInRankError(
            "a RankPool cannot go to the ranks: inside a function that runs on a rank "
            "use its comm, not the pool"
        )

    def __repr__(self) -> str:
        state = "closed" if self._closed else "ready" if self._ranks else "not started"
        return f"RankPool({self.size}, backend={self._placement.backend!r}, {state})"

    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        on_progress: Callable[[int, Any], None] | None = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Call `fn(comm, *args, **kwargs)` on every rank; the results in rank order.

        What the ranks print is shown when the call ends, in rank order, each line with its rank.

        Args:
            timeout: seconds for this call; None: the pool's.
            on_progress: called as `on_progress(rank, value)` for each `comm.report(value)`.

        Raises:
            RankError: a rank raised, exited or was killed; the ranks wait for each other, or did
                not call the same collectives.
            RankTimeout: the call took longer than its timeout.
        """
        __tracebackhide__ = True
        return self._call(Kind.CALL, fn, args, kwargs, timeout, on_progress, None)

    def put(
        self, fn: Callable[..., Any], *args: Any, timeout: float | None = None, **kwargs: Any
    ) -> RankRef:
        """Call `fn(comm, *args, **kwargs)` on every rank; each rank keeps its own result.

        The reference returned stands for what each rank keeps, as an argument of `run` and `put`.
        It is freed on the ranks once the reference is garbage.
        """
        __tracebackhide__ = True
        self._numbers += 1
        number = self._numbers
        self._call(Kind.PUT, fn, args, kwargs, timeout, None, number)
        assert self._ranks is not None
        ref = RankRef(self, number, getattr(fn, "__qualname__", repr(fn)))
        weakref.finalize(ref, self._to_free.append, number).atexit = False
        return ref

    @property
    def start_id(self) -> object:
        """Something that is another object after each start of the ranks; None: no ranks."""
        return self._ranks

    def restart(self) -> None:
        """End the ranks; the next call starts new ones, with modules imported afresh.

        A call that runs in another thread ends with CallStopped.
        """
        if self._lock.locked() and self._ranks is not None:
            if self._user == threading.get_ident():
                raise RuntimeError("this pool is in a call: raise in on_progress to stop it")
            self._stopping = True
            self._ranks.ask_to_die()
        else:
            self._drop_ranks()

    def _drop_ranks(self) -> None:
        ranks, self._ranks = self._ranks, None
        self._to_free.clear()
        if ranks is not None:
            ranks.close()

    def close(self) -> None:
        """End the ranks for good; a call that runs in another thread ends with CallStopped."""
        self._closed = True
        self.restart()

    def __enter__(self) -> RankPool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self,
        kind: int,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        timeout: float | None,
        on_progress: Callable[[int, Any], None] | None,
        number: int | None,
    ) -> list[Any]:
        __tracebackhide__ = True
        acquired = False
        try:
            acquired = self._lock.acquire(blocking=False)
            self._refuse_if_busy(acquired)
            self._user = threading.get_ident()
            self._stopping = False
            seconds = self.timeout if timeout is None else check_seconds("timeout", timeout)
            ranks = self._started()
            with sending_to(self):
                body = self._pickler.dumps(fn, args, kwargs, number)
            try:
                call = Call(ranks, seconds, self.grace, self.stall_timeout)
                for ref in self._numbers_to_free():
                    call.send(Kind.FREE, dumps(ref))
                call.send(kind, body)
                return call.results(on_progress)
            except BaseException as error:
                self._ranks = None
                ranks.kill()
                if self._stopping and isinstance(error, RankError):
                    raise CallStopped("the call was stopped from another thread") from None
                raise
            finally:
                show_output(ranks.members)
                if self._ranks is None or self._closed:
                    ranks.close()
        finally:
            if acquired:
                self._lock.release()

    def _refuse_if_busy(self, acquired: bool) -> None:
        if not acquired:
            if self._user == threading.get_ident():
                raise RuntimeError("this pool is in a call: on_progress cannot start another one")
            raise RuntimeError(
                "another thread is using this pool: one call at a time, or make a second RankPool"
            )
        if self._closed:
            raise RuntimeError("this pool was closed: make a new RankPool")

    def _started(self) -> RankSet:
        if self._ranks is not None and (
            self._ranks.owner != os.getpid() or not self._ranks.are_alive()
        ):
            self._drop_ranks()
        if self._ranks is None:
            self._to_free.clear()
            self._pickler = CallPickler()
            self._ranks = RankSet(
                self.size,
                backend=self._placement.backend,
                devices=self._placement.devices,
                threads=self._threads,
                environ=environment(self._threads, self._check_collectives, self._collectives),
                timeout=self.start_timeout,
            )
        return self._ranks

    def _numbers_to_free(self) -> list[int]:
        return [self._to_free.popleft() for _ in range(len(self._to_free))]


def run_ranks(fn: Callable[..., Any], n: int, *args: Any, **kwargs: Any) -> list[Any]:
    """One call on `n` new ranks, ended afterwards."""
    with RankPool(n) as pool:
        return pool.run(fn, *args, **kwargs)
