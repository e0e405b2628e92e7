"""What a traced run says: events, bytes, call sites, tables, Chrome traces, differences."""

import json
import pickle
from itertools import pairwise

import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.trace import Trace, TracedComm, TraceEvent, diff_traces, merge_chrome


def event(op: str, shape: tuple[int, ...] = (4,), **changes) -> TraceEvent:
    values = {
        "op": op,
        "group": "world",
        "shape": shape,
        "dtype": "float32",
        "payload_bytes": 16,
        "wire_bytes": 8,
        "seconds": 1e-3,
        "call_site": "course/model.py:12 forward",
        "seq": 1,
        "started": 5.0,
    }
    return TraceEvent(**(values | changes))


def traced_run(comm: Comm) -> Trace:
    """Each operation once."""
    traced = TracedComm(comm)
    n, after, before = comm.size, (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    traced.all_reduce(torch.ones(6, 10))
    traced.all_reduce(torch.ones(8).to(torch.float8_e4m3fn))
    traced.all_gather(torch.ones(5, dtype=torch.bfloat16))
    traced.reduce_scatter(torch.ones(12 * n, dtype=torch.float64))
    traced.broadcast(torch.ones(7), src=1)
    traced.all_to_all(torch.ones(2 * n, 3))
    traced.send_recv(torch.ones(4), after, torch.empty(4), before)
    if comm.rank == 0:
        traced.send(torch.ones(9), 1)
    elif comm.rank == 1:
        traced.recv(torch.ones(9), 0)
    traced.barrier()
    return traced.trace


@pytest.mark.parametrize("n", [2, 3])
def test_every_operation_becomes_an_event_with_its_bytes(pool, n):
    for rank, trace in enumerate(pool(n).run(traced_run)):
        assert trace.rank == rank
        events = {(e.op, e.dtype): e for e in trace}
        sent = {key: (e.payload_bytes, e.wire_bytes) for key, e in events.items()}
        # The ring formulas, in bytes: all-reduce 2(n-1)/n S, all-gather (n-1) S, and so on.
        assert sent["all_reduce", "float32"] == (240, 2 * (n - 1) * 240 // n)
        assert sent["all_reduce", "float8_e4m3fn"] == (8, -(-2 * (n - 1) * 32 // n))
        assert sent["all_gather", "bfloat16"] == (10, (n - 1) * 10)
        assert sent["reduce_scatter", "float64"] == (96 * n, (n - 1) * 96)
        assert sent["broadcast", "float32"] == (28, 0 if (rank + 1) % n == 1 else 28)
        assert sent["all_to_all", "float32"] == (24 * n, 24 * (n - 1))
        assert sent["send_recv", "float32"] == (16, 16)
        assert sent["barrier", ""] == (0, 0)
        if rank == 0:
            assert sent["send", "float32"] == (36, 36)
        if rank == 1:
            assert sent["recv", "float32"] == (36, 0)
        assert trace.total_bytes() == sum(e.payload_bytes for e in trace)
        assert trace.count() == len(trace) == (9 if rank < 2 else 8)
        assert trace.count("all_reduce") == 2
        assert [e.seq for e in trace] == list(range(1, len(trace) + 1))
        assert all(e.group == "world" and e.seconds >= 0 for e in trace)
        assert all(a.started + a.seconds <= b.started for a, b in pairwise(trace))


def test_results_are_those_of_the_plain_comm(pool):
    def run(comm: Comm) -> list:
        def results(c: Comm) -> list:
            x = torch.arange(6.0).reshape(2, 3) + c.rank
            return [
                c.all_reduce(x.clone(), "max"),
                c.all_gather(x, 1),
                c.reduce_scatter(x, 0, "avg"),
                c.broadcast(x.clone(), 1),
                c.all_to_all(x, [2, 0]),
                c.send_recv(x, 1 - c.rank, torch.empty(2, 3), 1 - c.rank),
            ]

        return list(zip(results(comm), results(TracedComm(comm)), strict=True))

    for pairs in pool(2).run(run):
        for plain, traced in pairs:
            torch.testing.assert_close(plain, traced, rtol=0, atol=0)


def test_all_to_all_counts_the_rows_that_leave_and_the_counts_exchange(pool):
    def run(comm: Comm) -> list[tuple]:
        traced = TracedComm(comm)
        splits = [3, 1] if comm.rank == 0 else [0, 4]
        x = torch.ones(4, 2)
        traced.all_to_all(x, splits)
        traced.all_to_all(x, splits, [3, 0] if comm.rank == 0 else [1, 4])
        return [(e.op, e.shape, e.dtype, e.wire_bytes) for e in traced.trace]

    for rank, events in enumerate(pool(2).run(run)):
        leaving = [1, 0][rank] * 8
        assert events == [
            ("all_to_all", (2,), "int64", 8),
            ("all_to_all", (4, 2), "float32", leaving),
            ("all_to_all", (4, 2), "float32", leaving),
        ]


def test_a_smaller_group_writes_into_the_same_trace_with_its_own_numbers(pool):
    def run(comm: Comm) -> list[tuple]:
        traced = TracedComm(comm)
        pair = traced.split([(0,), (1, 2)], "pair")
        for group in (traced, pair, traced, pair):
            group.all_reduce(torch.ones(2))
        return [(e.group, e.seq, e.wire_bytes) for e in traced.trace]

    for rank, events in enumerate(pool(3).run(run)):
        alone = rank == 0
        world, pair = 11, 0 if alone else 8  # 4/3 of 8 bytes, rounded up; 2/2 of 8
        assert events == [
            ("world", 1, world),
            ("pair", 1, pair),
            ("world", 2, world),
            ("pair", 2, pair),
        ]


def test_the_call_site_is_the_line_outside_the_package(pool):
    def run(comm: Comm) -> list[str]:
        traced = TracedComm(comm)
        traced.all_reduce(torch.ones(1))
        torch.nn.Sequential(Summing(traced))(torch.ones(1))
        return [e.call_site for e in traced.trace]

    line = run.__code__.co_firstlineno + 2
    for direct, layer in pool(2).run(run):
        assert direct.startswith(f"ranks/test_trace.py:{line} ")
        assert direct.endswith("run")
        assert layer == f"ranks/test_trace.py:{Summing.forward.__code__.co_firstlineno + 1} " + (
            "Summing.forward"
        )


class Summing(torch.nn.Module):
    def __init__(self, comm: Comm) -> None:
        super().__init__()
        self.comm = comm

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.comm.all_reduce(x)


def test_bad_input_is_refused_as_by_the_plain_comm_and_leaves_no_event():
    traced = TracedComm(Comm.solo())
    for call in (
        lambda: traced.all_reduce([1.0]),
        lambda: traced.all_to_all(torch.tensor(1.0), [1]),
        lambda: traced.all_to_all(torch.ones(4), [3]),
        lambda: traced.broadcast(torch.ones(1), src=3),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()
    assert traced.trace.count() == 0


def test_clear_starts_the_count_again():
    traced = TracedComm(Comm.solo())
    traced.all_reduce(torch.ones(2))
    traced.trace.clear()
    traced.all_gather(torch.ones(2))
    assert [(e.op, e.seq) for e in traced.trace] == [("all_gather", 1)]


def test_a_trace_survives_pickling():
    trace = Trace(3, [event("all_reduce")])
    again = pickle.loads(pickle.dumps(trace))
    assert (again.rank, list(again)) == (3, list(trace))


def test_the_table_labels_modelled_bytes_and_adds_up():
    trace = Trace(1, [event("all_reduce"), event("broadcast", (2, 3), payload_bytes=2000)])
    assert trace.table().splitlines() == [
        "#  op          group  shape   dtype    payload B  wire B (modelled)    ms  call site",
        "1  all_reduce  world  (4,)    float32         16                  8  1.00  "
        "course/model.py:12 forward",
        "2  broadcast   world  (2, 3)  float32      2,000                  8  1.00  "
        "course/model.py:12 forward",
        "rank 1: 2 events, payload 2,016 B, on the wire 16 B (modelled, ring), 2.00 ms (measured)",
    ]
    assert str(trace) == trace.table()
    assert "... and 1 more events" in trace.table(limit=1)
    assert Trace(0).table().splitlines()[-1].startswith("rank 0: 0 events")


def test_the_html_table_escapes_what_it_shows():
    trace = Trace(0, [event("all_reduce", call_site="cell:3 <lambda>")])
    assert "cell:3 &lt;lambda&gt;" in trace._repr_html_()
    assert "<lambda>" not in trace._repr_html_()


def test_chrome_traces_of_several_ranks_share_one_time_axis(pool, tmp_path):
    traces = pool(3).run(traced_run)
    path = tmp_path / "ranks.json"
    data = json.loads(merge_chrome(traces, path))
    assert data == json.loads(path.read_text())
    spans = [e for e in data["traceEvents"] if e["ph"] == "X"]
    assert len(spans) == sum(len(trace) for trace in traces)
    assert min(e["ts"] for e in spans) == 0
    assert {e["pid"] for e in spans} == {0, 1, 2}
    named = {
        e["pid"]: e["args"]["name"] for e in data["traceEvents"] if e["name"] == "process_name"
    }
    assert named == {0: "rank 0", 1: "rank 1", 2: "rank 2"}
    # The barrier: nobody leaves before the last has come, on this one axis.
    barriers = [e for e in spans if e["name"] == "barrier"]
    assert min(e["ts"] + e["dur"] for e in barriers) >= max(e["ts"] for e in barriers)


def test_chrome_times_are_microseconds():
    trace = Trace(2, [event("all_reduce", started=7.0), event("barrier", started=7.25)])
    spans = [e for e in json.loads(trace.to_chrome())["traceEvents"] if e["ph"] == "X"]
    assert [(e["ts"], e["dur"]) for e in spans] == [(0.0, 1000.0), (250000.0, 1000.0)]


def test_equal_traces_do_not_diverge():
    ours = Trace(0, [event("all_reduce"), event("send"), event("all_to_all", (3, 8))])
    theirs = Trace(1, [event("recv"), event("all_reduce"), event("all_to_all", (9, 8))])
    assert diff_traces(ours, theirs) is None


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            ["all_gather", "broadcast", "all_reduce"],
            "first difference at event 2: rank 0 all_reduce (4,) float32 at "
            "course/model.py:12 forward; rank 1 broadcast (4,) float32 at "
            "course/model.py:12 forward; rank 1 skipped it",
        ),
        (
            ["all_gather", "all_reduce", "all_reduce"],
            "first difference at event 3: rank 0 broadcast (4,) float32 at "
            "course/model.py:12 forward; rank 1 all_reduce (4,) float32 at "
            "course/model.py:12 forward; rank 1 skipped it",
        ),
        (
            ["barrier", "all_gather", "all_reduce", "broadcast", "all_reduce"],
            "first difference at event 1: rank 0 all_gather (4,) float32 at "
            "course/model.py:12 forward; rank 1 barrier (4,) float32 at "
            "course/model.py:12 forward; rank 0 skipped that",
        ),
        (
            ["all_gather", "barrier", "broadcast", "all_reduce"],
            "first difference at event 2: rank 0 all_reduce (4,) float32 at "
            "course/model.py:12 forward; rank 1 barrier (4,) float32 at "
            "course/model.py:12 forward",
        ),
        (
            ["all_gather", "all_reduce", "broadcast"],
            "first difference at event 4: rank 0 all_reduce (4,) float32 at "
            "course/model.py:12 forward; rank 1 has ended",
        ),
        (
            ["all_gather", "all_reduce", "broadcast", "all_reduce", "barrier"],
            "first difference at event 5: rank 0 has ended; rank 1 barrier (4,) float32 at "
            "course/model.py:12 forward",
        ),
    ],
    ids=["skipped", "skipped later", "extra", "replaced", "shorter", "longer"],
)
def test_the_first_difference_is_told_in_words(theirs, message):
    ours = Trace(0, [event(op) for op in ("all_gather", "all_reduce", "broadcast", "all_reduce")])
    found = diff_traces(ours, Trace(1, [event(op) for op in theirs]))
    assert str(found) == message


def test_shape_dtype_and_group_are_differences_too():
    ours = Trace(0, [event("all_reduce")])
    for changed in (
        event("all_reduce", (5,)),
        event("all_reduce", dtype="bfloat16"),
        event("all_reduce", group="tp"),
    ):
        found = diff_traces(ours, Trace(1, [changed]))
        assert (found.event, found.first, found.second) == (1, ours[0], changed)
        assert "skipped" not in str(found)
