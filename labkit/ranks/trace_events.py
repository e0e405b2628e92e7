"""`Trace`: what one rank sent and waited for, as data that tables, diffs and viewers read."""

import html
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, overload

COLUMNS = (
    "#",
    "op",
    "group",
    "shape",
    "dtype",
    "payload B",
    "wire B (modelled)",
    "ms",
    "call site",
)
_TEXT_COLUMNS = {1, 2, 3, 4, 8}


@dataclass(frozen=True)
class TraceEvent:
    """One finished operation of one rank."""

    op: str
    group: str
    shape: tuple[int, ...]
    dtype: str
    payload_bytes: int  # of the tensor this rank passed in (recv: of what it got)
    wire_bytes: int  # modelled: what this rank sends in a ring
    seconds: float  # measured, waiting for the other ranks included
    call_site: str  # "layers/linear.py:120 forward"
    seq: int  # 1, 2, ... within the group
    started: float  # seconds on the machine's monotonic clock, the same for all its processes

    def describe(self) -> str:
        """`all_reduce (4,) float32 at model.py:12 forward`"""
        tensor = f" {self.shape} {self.dtype}" if self.dtype else ""
        return f"{self.op}{tensor} at {self.call_site}"


@dataclass
class Trace(Sequence[TraceEvent]):
    """The operations of one rank, in order. Grows while a `TracedComm` runs; can be pickled."""

    rank: int  # in the world
    events: list[TraceEvent] = field(default_factory=list)
    _last_seq: Counter[str] = field(default_factory=Counter, repr=False)

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, index: int) -> TraceEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[TraceEvent]: ...
    def __getitem__(self, index: int | slice) -> TraceEvent | list[TraceEvent]:
        return self.events[index]

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self.events)

    def append(self, event: TraceEvent) -> None:
        """Add a finished operation."""
        self.events.append(event)

    def clear(self) -> None:
        """Forget everything so far: what follows is event 1."""
        self.events.clear()
        self._last_seq.clear()

    def next_seq(self, group: str) -> int:
        """The number of the next operation of `group`."""
        self._last_seq[group] += 1
        return self._last_seq[group]

    def count(self, op: str | None = None) -> int:
        """How many operations called `op` (None: of any kind) there are."""
        return sum(op is None or event.op == op for event in self.events)

    def count_by_op(self) -> dict[str, int]:
        """How many operations of each kind there are."""
        return dict(Counter(event.op for event in self.events))

    def total_bytes(self) -> int:
        """Bytes of all payloads."""
        return sum(event.payload_bytes for event in self.events)

    def total_wire_bytes(self) -> int:
        """Bytes this rank sends in all (modelled, ring)."""
        return sum(event.wire_bytes for event in self.events)

    def total_seconds(self) -> float:
        """Seconds spent in all operations, waiting for other ranks included."""
        return sum(event.seconds for event in self.events)

    def table(self, limit: int = 50) -> str:
        """The events as a text table: the first `limit`, then the totals of all."""
        rows = [COLUMNS, *self._rows(limit)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        lines = [
            "  ".join(
                cell.ljust(width) if i in _TEXT_COLUMNS else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, *self._remarks(limit)])

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"Trace(rank {self.rank}, {len(self)} events, {self.total_bytes():,} bytes)"

    def _repr_html_(self) -> str:
        limit = 50
        head = "".join(f"<th>{html.escape(name)}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows(limit)
        )
        foot = "<br>".join(html.escape(line) for line in self._remarks(limit))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{foot}</p>"

    def to_chrome(self, path: str | os.PathLike[str] | None = None) -> str:
        """JSON for chrome://tracing or Perfetto; also written to `path` when given."""
        return merge_chrome([self], path)

    def _rows(self, limit: int) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                event.op,
                event.group,
                str(event.shape) if event.dtype else "",
                event.dtype,
                f"{event.payload_bytes:,}",
                f"{event.wire_bytes:,}",
                f"{event.seconds * 1e3:.2f}",
                event.call_site,
            )
            for number, event in enumerate(self.events[:limit], start=1)
        ]

    def _remarks(self, limit: int) -> list[str]:
        hidden = len(self) - limit
        more = [f"... and {hidden} more events"] if hidden > 0 else []
        events = "1 event" if len(self) == 1 else f"{len(self)} events"
        return [
            *more,
            f"rank {self.rank}: {events}, payload {self.total_bytes():,} B, "
            f"on the wire {self.total_wire_bytes():,} B (modelled, ring), "
            f"{self.total_seconds() * 1e3:.2f} ms (measured)",
        ]


def merge_chrome(traces: Sequence[Trace], path: str | os.PathLike[str] | None = None) -> str:
    """One JSON for several ranks of one machine, on one time axis; a process row per rank.

    Times are microseconds from the earliest event. Also written to `path` when given.
    """
    start = min((event.started for trace in traces for event in trace), default=0.0)
    rows: list[dict[str, Any]] = []
    for trace in traces:
        groups = list(dict.fromkeys(event.group for event in trace))
        names = [("process_name", 0, f"rank {trace.rank}")]
        names += [("thread_name", tid, group) for tid, group in enumerate(groups)]
        rows += [
            {"name": kind, "ph": "M", "pid": trace.rank, "tid": tid, "args": {"name": name}}
            for kind, tid, name in names
        ]
        rows += [
            {
                "name": event.op,
                "cat": event.group,
                "ph": "X",
                "ts": (event.started - start) * 1e6,
                "dur": event.seconds * 1e6,
                "pid": trace.rank,
                "tid": groups.index(event.group),
                "args": asdict(event),
            }
            for event in trace
        ]
    text = json.dumps({"traceEvents": rows, "displayTimeUnit": "ms"})
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
