"""Every collective against the result a single process computes from all ranks' inputs."""

import copy
import math
import warnings

import pytest
import torch
from torch import Tensor

from labkit.ranks.comm import Comm
from labkit.ranks.flight_group import FlightGroup
from labkit.ranks.pool import RankPool

SIZES = [1, 2, 3, 4]
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.uint8,
    torch.bool,
]
SHAPES = [(), (1,), (5,), (0,), (3, 4), (2, 0, 3), (2, 3, 5)]


def numbers(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Whole numbers 0, 1, 2 that differ per rank: sums of four ranks are exact even in float8."""
    count = math.prod(shape)
    return ((torch.arange(count) * (rank + 1) + rank) % 3).reshape(shape).to(dtype)


def reduced(tensors: list[Tensor], op: str) -> Tensor:
    """What a reduction must give, computed in float64 in this process."""
    stacked = torch.stack([t.to(torch.float64) for t in tensors])
    value = {
        "sum": lambda: stacked.sum(0),
        "avg": lambda: stacked.mean(0),
        "max": lambda: stacked.amax(0),
        "min": lambda: stacked.amin(0),
    }[op]()
    return value.to(tensors[0].dtype)


def same(got: Tensor, expected: Tensor) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    torch.testing.assert_close(got.to(torch.float64), expected.to(torch.float64), rtol=0, atol=0)


@pytest.mark.parametrize("n", SIZES)
def test_all_reduce_equals_the_reduction_in_one_process(pool, n):
    cases = [
        (shape, dtype, op)
        for dtype in DTYPES
        for op in ("sum", "max", "min", "avg")
        for shape in (SHAPES if op == "sum" else [(3, 4), (0,)])
        if op != "avg" or dtype.is_floating_point
    ]

    def everything(comm: Comm) -> list[Tensor]:
        results = []
        for shape, dtype, op in cases:
            x = numbers(comm.rank, shape, dtype)
            result = comm.all_reduce(x, op)
            assert result is x
            results.append(result)
        return results

    for results in pool(n).run(everything):
        for (shape, dtype, op), got in zip(cases, results, strict=True):
            same(got, reduced([numbers(r, shape, dtype) for r in range(n)], op))


@pytest.mark.parametrize("n", SIZES)
def test_in_place_results_reach_every_kind_of_view(pool, n):
    def views(comm: Comm) -> list[tuple[Tensor, Tensor]]:
        results = []
        for cut in (
            lambda t: t.t(),
            lambda t: t[:, ::2],
            lambda t: t[1:3],
            lambda t: t[:, 1],
            lambda t: t.unsqueeze(0).expand(1, 4, 6),
        ):
            reduce_in, broadcast_in = (numbers(comm.rank, (4, 6), torch.float32) for _ in "ab")
            comm.all_reduce(cut(reduce_in))
            comm.broadcast(cut(broadcast_in), src=comm.size - 1)
            results.append((reduce_in, broadcast_in))
        return results

    inputs = [numbers(r, (4, 6), torch.float32) for r in range(n)]
    for rank, results in enumerate(pool(n).run(views)):
        slices = [(slice(None),) * 2, (slice(None), slice(None, None, 2)), (slice(1, 3),)]
        slices += [(slice(None), 1), (slice(None),)]
        for where, (got_sum, got_broadcast) in zip(slices, results, strict=True):
            expected = inputs[rank].clone()
            expected[where] = reduced([x[where] for x in inputs], "sum")
            same(got_sum, expected)
            expected[where] = inputs[-1][where]
            same(got_broadcast, expected)


@pytest.mark.parametrize("n", SIZES)
def test_all_gather_concatenates_in_rank_order_along_any_dim(pool, n):
    cases = [
        (shape, dtype, dim)
        for dtype in DTYPES
        for shape in SHAPES
        for dim in range(-len(shape), len(shape))
    ]

    def everything(comm: Comm) -> list[Tensor]:
        return [comm.all_gather(numbers(comm.rank, s, t), dim) for s, t, dim in cases]

    for results in pool(n).run(everything):
        for (shape, dtype, dim), got in zip(cases, results, strict=True):
            parts = [numbers(r, shape, dtype).view(torch.uint8) for r in range(n)]
            if dtype.itemsize > 1:
                parts = [numbers(r, shape, dtype) for r in range(n)]
            same(got, torch.cat(parts, dim).view(dtype))


@pytest.mark.parametrize("n", SIZES)
def test_one_element_of_any_stride_travels(pool, n):
    """A dim of one element may have stride 0 in a contiguous tensor; bytes are then no view."""

    def gathered(comm: Comm) -> list[Tensor]:
        ones = [torch.tensor(comm.rank).to(dtype).expand(1) for dtype in DTYPES]
        return [comm.all_gather(one) for one in ones]

    for results in pool(n).run(gathered):
        for dtype, got in zip(DTYPES, results, strict=True):
            same(got.double(), torch.arange(n).to(dtype).double())


@pytest.mark.parametrize("n", SIZES)
def test_reduce_scatter_keeps_this_ranks_part_of_the_sum(pool, n):
    shapes = [((2 * n, 3), 0), ((3, n), 1), ((2, 3 * n, 2), -2), ((0, 3), 0), ((n,), 0)]
    cases = [(s, dim, t, "sum") for s, dim in shapes for t in DTYPES]
    cases += [(s, dim, torch.float32, op) for s, dim in shapes for op in ("avg", "max", "min")]

    def everything(comm: Comm) -> list[Tensor]:
        return [
            comm.reduce_scatter(numbers(comm.rank, shape, dtype), dim, op)
            for shape, dim, dtype, op in cases
        ]

    for rank, results in enumerate(pool(n).run(everything)):
        for (shape, dim, dtype, op), got in zip(cases, results, strict=True):
            whole = reduced([numbers(r, shape, dtype) for r in range(n)], op)
            same(got, whole.tensor_split(n, dim)[rank])


@pytest.mark.parametrize("n", SIZES)
def test_broadcast_copies_the_source_to_all(pool, n):
    cases = [(s, t, src) for t in DTYPES for s in SHAPES for src in {0, n - 1}]

    def everything(comm: Comm) -> list[Tensor]:
        return [comm.broadcast(numbers(comm.rank, s, t), src) for s, t, src in cases]

    for results in pool(n).run(everything):
        for (shape, dtype, src), got in zip(cases, results, strict=True):
            same(got, numbers(src, shape, dtype))


def split_table(n: int, kind: str) -> list[list[int]]:
    """`table[sender][receiver]` rows."""
    if kind == "uneven":
        return [[(s + 2 * r) % 4 for r in range(n)] for s in range(n)]
    if kind == "one rank gets all":
        return [[3 if r == n - 1 else 0 for r in range(n)] for s in range(n)]
    if kind == "one rank sends nothing":
        return [[0 if s == 0 else 2 for r in range(n)] for s in range(n)]
    return [[0] * n for _ in range(n)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("told", [True, False], ids=["counts known", "counts exchanged"])
def test_all_to_all_moves_uneven_and_empty_splits(pool, n, told):
    kinds = ["uneven", "one rank gets all", "one rank sends nothing", "nothing at all"]
    cases = [(k, row, t) for k in kinds for row in [(), (3,), (2, 2), (0,)] for t in DTYPES]

    def everything(comm: Comm) -> list[Tensor]:
        results = []
        for kind, row, dtype in cases:
            table = split_table(comm.size, kind)
            x = numbers(comm.rank, (sum(table[comm.rank]), *row), dtype)
            came = [table[sender][comm.rank] for sender in range(comm.size)]
            results.append(comm.all_to_all(x, table[comm.rank], came if told else None))
        return results

    for rank, results in enumerate(pool(n).run(everything)):
        for (kind, row, dtype), got in zip(cases, results, strict=True):
            table = split_table(n, kind)
            parts = []
            for sender in range(n):
                x = numbers(sender, (sum(table[sender]), *row), dtype)
                parts.append(x.to(torch.float64).split(table[sender])[rank])
            same(got, torch.cat(parts).to(dtype))


@pytest.mark.parametrize("n", SIZES)
def test_all_to_all_without_splits_cuts_evenly(pool, n):
    def run(comm: Comm) -> Tensor:
        rows = torch.arange(2 * comm.size) + 100 * comm.rank
        return comm.all_to_all(torch.stack([rows, rows]).t())  # not contiguous

    for rank, got in enumerate(pool(n).run(run)):
        column = torch.cat([torch.arange(2 * rank, 2 * rank + 2) + 100 * r for r in range(n)])
        same(got, torch.stack([column, column]).t())


@pytest.mark.parametrize("n", [2, 3, 4])
def test_send_and_recv_pass_a_tensor_down_the_line(pool, n):
    def line(comm: Comm) -> list[Tensor]:
        results = []
        for dtype in DTYPES:
            for shape in SHAPES:
                x = numbers(0, shape, dtype) if comm.rank == 0 else torch.empty(shape, dtype=dtype)
                if comm.rank > 0:
                    assert comm.recv(x, comm.rank - 1) is x
                if comm.rank < comm.size - 1:
                    comm.send(x, comm.rank + 1)
                results.append(x)
        return results

    cases = [numbers(0, shape, dtype) for dtype in DTYPES for shape in SHAPES]
    for results in pool(n).run(line):
        for got, expected in zip(results, cases, strict=True):
            same(got, expected)


@pytest.mark.parametrize("n", SIZES)
def test_send_recv_goes_round_a_ring_without_deadlock(pool, n):
    def ring(comm: Comm) -> list[Tensor]:
        after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
        results = []
        for dtype in DTYPES:
            out = torch.empty((6, 500), dtype=dtype).t()  # filled although not contiguous
            x = numbers(comm.rank, (500, 6), dtype)
            assert comm.send_recv(x, after, out, before) is out
            results.append(out)
        return results

    for rank, results in enumerate(pool(n).run(ring)):
        for dtype, got in zip(DTYPES, results, strict=True):
            same(got, numbers((rank - 1) % n, (500, 6), dtype))


@pytest.mark.parametrize("n", SIZES)
def test_inputs_stay_as_they_were_where_the_result_is_new(pool, n):
    def run(comm: Comm) -> bool:
        x = torch.arange(float(comm.size * 2)) + comm.rank
        before = x.clone()
        for result in (comm.all_gather(x), comm.reduce_scatter(x), comm.all_to_all(x)):
            result += 1
        return torch.equal(x, before)

    assert pool(n).run(run) == [True] * n


def test_no_collective_warns_of_deprecation(pool):
    def run(comm: Comm) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            comm.all_gather(torch.ones(2))
            comm.reduce_scatter(torch.ones(2))
            comm.all_reduce(torch.ones(2))
            comm.all_to_all(torch.ones(2))

    pool(2).run(run)


def test_uneven_numbers_of_sends_are_no_mismatch_where_torch_compares_collectives():
    def run(comm: Comm) -> float:
        for _ in range(3):
            if comm.rank == 0:
                comm.send(torch.ones(2), 1)
            elif comm.rank == 1:
                comm.recv(torch.empty(2), 0)
        pair = comm.split([(0, 1), (2,)], "pair")
        if comm.rank == 0:
            pair.send_recv(torch.ones(1), 1, torch.empty(1), 1)
        elif comm.rank == 1:
            pair.send_recv(torch.ones(1), 0, torch.empty(1), 0)
        return pair.all_reduce(comm.all_reduce(torch.ones(1))).item()

    with RankPool(3, check_collectives=True) as pool:
        assert pool.run(run) == [6.0, 6.0, 3.0]


def test_split_numbers_ranks_within_each_group(pool):
    def run(comm: Comm) -> tuple:
        half = comm.split([(0, 2), (1, 3)], "half")
        total = half.all_reduce(torch.tensor([float(comm.rank)]))
        order = half.all_gather(torch.tensor([comm.rank])).tolist()
        source = half.broadcast(torch.tensor([comm.rank]), src=1).item()
        return half.name, half.rank, half.size, half.ranks, total.item(), order, source

    assert pool(4).run(run) == [
        ("half", 0, 2, (0, 2), 2.0, [0, 2], 2),
        ("half", 0, 2, (1, 3), 4.0, [1, 3], 3),
        ("half", 1, 2, (0, 2), 2.0, [0, 2], 2),
        ("half", 1, 2, (1, 3), 4.0, [1, 3], 3),
    ]


def test_split_of_a_split_involves_that_group_only(pool):
    def run(comm: Comm) -> tuple:
        three = comm.split([(0, 1, 3)], "three", allow_rest=True)
        if three.size == 1:
            return three.ranks, None, None
        two = three.split([(0, 2), (1,)], "two")
        return two.ranks, two.rank, two.all_reduce(torch.tensor([comm.rank])).item()

    assert pool(4).run(run) == [((0, 3), 0, 3), ((1,), 0, 1), ((2,), None, None), ((0, 3), 1, 3)]


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([(0, 1)], "split leaves rank 2 of 3 in no group"),
        ([(0, 1), (1, 2)], r"split puts rank 1 in both \(0, 1\) and \(1, 2\)"),
        ([(1, 0), (2,)], r"ascending order, once each: \(1, 0\) should be \(0, 1\)"),
        ([(0, 1), (2, 3)], "split names rank 3, and a group of 3 has ranks 0 to 2"),
        ([(0, 1, 2), ()], "empty group"),
    ],
)
def test_split_refuses_groups_that_do_not_tile_the_ranks(pool, groups, sentence):
    def run(comm: Comm) -> str:
        try:
            comm.split(groups, "bad")
        except ValueError as error:
            return str(error)
        return "no error"

    for message in pool(3).run(run):
        with pytest.raises(ValueError, match=sentence):
            raise ValueError(message)


def test_split_notices_ranks_that_name_different_groups(pool):
    def run(comm: Comm) -> str:
        groups = [(0, 1), (2,)] if comm.rank != 2 else [(0,), (1, 2)]
        try:
            comm.split(groups, "torn")
        except ValueError as error:
            return str(error)
        return "no error"

    messages = pool(3).run(run)
    assert all("different groups on different ranks" in message for message in messages)
    assert "[(0,), (1, 2)]" in messages[2]


BAD_CALLS = {
    "unknown op": (
        lambda c: c.all_reduce(torch.ones(2), "mean"),
        "all_reduce knows no reduction 'mean'; it knows sum, max, min, avg",
    ),
    "avg of integers": (
        lambda c: c.all_reduce(torch.ones(2, dtype=torch.int64), "avg"),
        "avg of int64 would have to round",
    ),
    "complex": (
        lambda c: c.all_reduce(torch.ones(2, dtype=torch.complex64)),
        "cannot reduce complex64",
    ),
    "expanded": (
        lambda c: c.all_reduce(torch.ones(1).expand(4)),
        r"dim 0 of this one is expanded .* pass .contiguous\(\)",
    ),
    "not a tensor": (lambda c: c.broadcast([1, 2]), "broadcast takes a tensor, not list"),
    "other device": (
        lambda c: c.all_gather(torch.ones(2, device="meta")),
        r"all_gather got a tensor on meta, and this group works on cpu",
    ),
    "scalar": (lambda c: c.all_gather(torch.tensor(1.0)), r"use x.reshape\(1\)"),
    "no such dim": (
        lambda c: c.all_gather(torch.ones(2, 2), dim=2),
        "all_gather along dim 2: a tensor of 2 dims has dims 0 to 1",
    ),
    "not divisible": (
        lambda c: c.reduce_scatter(torch.ones(2 * c.size + 1)),
        "reduce_scatter cuts dim 0 into 2 equal parts, and 5 does not divide by 2; "
        "the nearest lengths that do are 4 and 6",
    ),
    "no such source": (
        lambda c: c.broadcast(torch.ones(2), src=2),
        "broadcast names rank 2, and a group of 2 has ranks 0 to 1",
    ),
    "negative rank": (lambda c: c.send(torch.ones(2), dst=-1), "send names rank -1"),
    "send to itself": (
        lambda c: c.send(torch.ones(2), dst=c.rank),
        "send on rank . names itself",
    ),
    "receive from itself": (
        lambda c: c.recv(torch.ones(2), src=c.rank),
        "recv on rank . names itself",
    ),
    "half a ring": (
        lambda c: c.send_recv(torch.ones(2), c.rank, torch.ones(2), 1 - c.rank),
        "a rank that sends to itself must receive from itself",
    ),
    "wrong sum": (
        lambda c: c.all_to_all(torch.ones(4), [1, 2]),
        r"input_splits \[1, 2\] add up to 3, and the tensor has 4 rows",
    ),
    "wrong count": (
        lambda c: c.all_to_all(torch.ones(4), [1, 2, 1]),
        r"input_splits \[1, 2, 1\] has 3 entries; a group of 2 needs 2",
    ),
    "negative split": (
        lambda c: c.all_to_all(torch.ones(4), [5, -1]),
        "negative count; use 0",
    ),
    "own part differs": (
        lambda c: c.all_to_all(torch.ones(4), [2, 2], [1, 1]),
        "keeps 2 rows by its input_splits and 1 by its output_splits",
    ),
    "uneven rows": (
        lambda c: c.all_to_all(torch.ones(3)),
        "all_to_all cuts dim 0 into 2 equal parts, and 3 does not divide by 2",
    ),
}


def test_bad_input_is_refused_in_a_sentence_before_anything_is_sent(pool):
    def run(comm: Comm) -> dict[str, str]:
        messages = {}
        for case, (call, _) in BAD_CALLS.items():
            try:
                call(comm)
            except (ValueError, TypeError) as error:
                messages[case] = str(error)
        # Nothing was left on the wire: the ranks still understand each other.
        assert comm.all_reduce(torch.ones(1)).item() == comm.size
        return messages

    for messages in pool(2).run(run):
        for case, (_, sentence) in BAD_CALLS.items():
            with pytest.raises(ValueError, match=sentence):
                raise ValueError(messages[case])


def test_a_group_of_one_checks_its_arguments_too():
    comm = Comm.solo()
    with pytest.raises(ValueError, match="it knows sum, max, min, avg"):
        comm.all_reduce(torch.ones(2), "mean")
    with pytest.raises(ValueError, match="broadcast names rank 1, and a group of 1 has ranks 0"):
        comm.broadcast(torch.ones(2), src=1)
    with pytest.raises(ValueError, match="add up to 3, and the tensor has 4 rows"):
        comm.all_to_all(torch.ones(4), [3])
    with pytest.raises(ValueError, match="send on rank 0 names itself"):
        comm.send(torch.ones(2), 0)


def test_a_world_needs_a_process_group():
    with pytest.raises(RuntimeError, match=r"Comm.solo\(\) for one rank"):
        Comm.world()
    with pytest.raises(ValueError, match="a group of 2 ranks needs a process group"):
        Comm(None, name="tp", ranks=(0, 1))


class CountingRecorder:
    """Keeps what `Comm` tells the flight recorder."""

    def __init__(self) -> None:
        self.entered: list[tuple] = []
        self.left = 0

    def group(self, name, ranks=None) -> FlightGroup:
        return FlightGroup(name, ranks, 1, name)

    def enter(self, group, op, shape=(), dtype="", *, peer=None, **more) -> int:
        self.entered.append((group.label, op, tuple(shape), str(dtype), peer, more))
        return len(self.entered)

    def leave(self) -> None:
        self.left += 1


def test_every_operation_is_noted_before_it_starts_and_after_it_ends(pool):
    def run(comm: Comm) -> tuple[list[tuple], int]:
        comm = copy.copy(comm)
        recorder = CountingRecorder()
        comm._recorder = recorder
        comm.all_reduce(torch.ones(3, 2))
        comm.all_reduce(torch.ones(3, 2), "max")
        comm.reduce_scatter(torch.ones(2, 2), -1, "min")
        comm.all_to_all(torch.ones(2), [1, 1])
        pair = comm.split([(0, 1)], "pair")
        pair.all_gather(torch.ones(2, dtype=torch.int32))
        if comm.rank == 0:
            comm.send(torch.ones(1), 1)
        else:
            comm.recv(torch.ones(1), 0)
        other = 1 - comm.rank
        comm.send_recv(torch.ones(1), other, torch.zeros(1, 1), other)
        comm.barrier()
        return recorder.entered, recorder.left

    for rank, (entered, left) in enumerate(pool(2).run(run)):
        assert left == len(entered)
        splits = {"splits": (rank, (1, 1), (1, 1))}
        came = {"source": 1 - rank, "incoming": ((1, 1), torch.float32)}
        assert entered == [
            ("world", "all_reduce", (3, 2), "torch.float32", None, {"detail": ""}),
            ("world", "all_reduce", (3, 2), "torch.float32", None, {"detail": "max"}),
            ("world", "reduce_scatter", (2, 2), "torch.float32", None, {"detail": "min, dim 1"}),
            ("world", "all_to_all", (2,), "torch.int64", None, splits),
            ("world", "all_to_all", (2,), "torch.float32", None, splits),
            ("world", "all_gather", (1,), "torch.int64", None, {}),
            ("pair", "all_gather", (2,), "torch.int32", None, {}),
            ("world", ["send", "recv"][rank], (1,), "torch.float32", 1 - rank, {}),
            ("world", "send_recv", (1,), "torch.float32", 1 - rank, came),
            ("world", "barrier", (), "", None, {}),
        ]


def test_report_goes_to_whoever_listens():
    heard: list[object] = []
    Comm.solo(reporter=heard.append).report({"step": 1})
    Comm.solo().report("nobody listens")
    assert heard == [{"step": 1}]
