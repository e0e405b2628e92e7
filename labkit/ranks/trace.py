"""`TracedComm`: a `Comm` that writes down each operation. A plain `Comm` has no branch for it."""

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from labkit.ranks.carriers import sum_dtype
from labkit.ranks.comm import Comm
from labkit.ranks.trace_diff import Divergence, diff_traces
from labkit.ranks.trace_events import Trace, TraceEvent, merge_chrome

__all__ = ["Divergence", "Trace", "TraceEvent", "TracedComm", "diff_traces", "merge_chrome"]

_HERE = os.path.dirname(__file__) + os.sep


class TracedComm(Comm):
    """Works as `comm` does and records what it does in `trace`.

    On a GPU each operation is waited for, so that its seconds mean something.
    """

    def __init__(self, comm: Comm, trace: Trace | None = None) -> None:
        """Wrap `comm`; several wrapped groups may share one `trace`."""
        vars(self).update(vars(comm))
        self._plain = comm
        self.trace = Trace(comm.ranks[comm.rank]) if trace is None else trace

    def all_reduce(self, x: Tensor, op: str = "sum") -> Tensor:
        with self._recorded("all_reduce", x, lambda: ring_bytes("all_reduce", x, self.size)):
            return self._plain.all_reduce(x, op)

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        with self._recorded("all_gather", x, lambda: ring_bytes("all_gather", x, self.size)):
            return self._plain.all_gather(x, dim)

    def reduce_scatter(self, x: Tensor, dim: int = 0, op: str = "sum") -> Tensor:
        with self._recorded(
            "reduce_scatter", x, lambda: ring_bytes("reduce_scatter", x, self.size)
        ):
            return self._plain.reduce_scatter(x, dim, op)

    def broadcast(self, x: Tensor, src: int = 0) -> Tensor:
        is_last = (self.rank + 1) % self.size == src  # of the ring that starts at src
        with self._recorded("broadcast", x, lambda: 0 if is_last else payload_bytes(x)):
            return self._plain.broadcast(x, src)

    def all_to_all(
        self,
        x: Tensor,
        input_splits: Sequence[int] | None = None,
        output_splits: Sequence[int] | None = None,
    ) -> Tensor:
        if input_splits is not None and output_splits is None:
            output_splits = self.exchange_counts(x, input_splits)

        def leaving() -> int:
            rows = x.shape[0]
            kept = rows // self.size if input_splits is None else input_splits[self.rank]
            return payload_bytes(x[: rows - kept])

        with self._recorded("all_to_all", x, leaving):
            return self._plain.all_to_all(x, input_splits, output_splits)

    def barrier(self) -> None:
        with self._recorded("barrier", None, lambda: 0):
            self._plain.barrier()

    def send(self, x: Tensor, dst: int) -> None:
        with self._recorded("send", x, lambda: payload_bytes(x)):
            self._plain.send(x, dst)

    def recv(self, x: Tensor, src: int) -> Tensor:
        with self._recorded("recv", x, lambda: 0):
            return self._plain.recv(x, src)

    def send_recv(self, x: Tensor, dst: int, out: Tensor, src: int) -> Tensor:
        with self._recorded("send_recv", x, lambda: 0 if dst == self.rank else payload_bytes(x)):
            return self._plain.send_recv(x, dst, out, src)

    def over(self, name: str) -> "TracedComm":
        """As `Comm.over`; that group writes into the same trace."""
        return TracedComm(self._plain.over(name), self.trace)

    def split(
        self,
        groups: Sequence[Sequence[int]],
        name: str,
        *,
        allow_rest: bool = False,
        collectives: str | None = None,
    ) -> "TracedComm":
        """As `Comm.split`; the smaller group writes into the same trace."""
        smaller = self._plain.split(groups, name, allow_rest=allow_rest, collectives=collectives)
        return TracedComm(smaller, self.trace)

    @contextmanager
    def _recorded(self, op: str, x: Tensor | None, wire_bytes: Callable[[], int]) -> Iterator[None]:
        """Time what happens inside; only what succeeds becomes an event."""
        call_site = _call_site()
        self._finish()
        started = time.monotonic()
        yield
        self._finish()
        seconds = time.monotonic() - started
        self.trace.append(
            TraceEvent(
                op=op,
                group=self.name,
                shape=() if x is None else tuple(x.shape),
                dtype="" if x is None else str(x.dtype).removeprefix("torch."),
                payload_bytes=0 if x is None else payload_bytes(x),
                wire_bytes=wire_bytes(),
                seconds=seconds,
                call_site=call_site,
                seq=self.trace.next_seq(self.name),
                started=started,
            )
        )

    def _finish(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def payload_bytes(x: Tensor) -> int:
    """Bytes of a tensor's elements."""
    return x.numel() * x.element_size()


def ring_bytes(op: str, x: Tensor, size: int) -> int:
    """Bytes each of `size` ranks sends when the collective runs as a ring (modelled).

    With S bytes in `x`: a reduce-scatter sends (n-1)/n S, an all-gather (n-1) S, and an all-reduce
    is a reduce-scatter of S followed by an all-gather of S/n: 2 (n-1)/n S. Reductions count the
    dtype in which they travel (float8 is summed in float32).
    """
    if op == "all_gather":
        return (size - 1) * payload_bytes(x)
    carried = x.numel() * (sum_dtype(x.dtype) or x.dtype).itemsize
    steps = 2 * (size - 1) if op == "all_reduce" else size - 1
    return math.ceil(steps * carried / size)


def _call_site() -> str:
    """The first frame outside this package: `layers/linear.py:120 forward`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_HERE) or "contextlib" in frame.f_code.co_filename
    ):
        frame = frame.f_back
    path = frame.f_code.co_filename
    name = (
        "cell" if "ipykernel_" in path or path.startswith("<") else "/".join(Path(path).parts[-2:])
    )
    return f"{name}:{frame.f_lineno} {frame.f_code.co_qualname}"
