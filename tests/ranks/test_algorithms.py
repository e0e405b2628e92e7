"""The algorithms made of sends and receives: values, cost, refusals, one order of summation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labkit.ranks.algorithms import (
    ALGORITHMS,
    all_to_all,
    fixed_order_all_reduce,
    one_shot_all_reduce,
    order_study,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    two_shot_all_reduce,
)
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import TracedComm

Pool = Callable[[int], RankPool]

RANKS = (1, 2, 3, 4)
ALL_REDUCES = {a.name: a.run for a in ALGORITHMS.values() if a.op == "all_reduce"} | {
    "fixed_order_all_reduce": fixed_order_all_reduce
}
SHAPES = ((0,), (1,), (3,), (17,), (4, 6), (), (5, 0))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.int16)
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}


def whole_numbers(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> Tensor:
    """Small enough that every dtype here adds them without rounding."""
    random = torch.Generator().manual_seed(rank + 1)
    return torch.randint(-30, 30, shape, generator=random).to(dtype)


def random_numbers(shape: tuple[int, ...], dtype: torch.dtype, rank: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(rank)).to(dtype)


def wrong_all_reduces(comm: Comm) -> list[str]:
    """Which algorithms and inputs give something else than the backend."""
    wrong, gloo = [], comm.over("gloo")
    for name, run in ALL_REDUCES.items():
        for dtype in DTYPES:
            for shape in SHAPES:
                x = whole_numbers(shape, dtype, comm.rank)
                before = x.clone()
                found = run(comm, x)
                expected = gloo.all_reduce(x.clone())
                if found.dtype != dtype or not torch.equal(found, expected):
                    wrong.append(f"{name} {dtype} {shape}")
                if found is x or not torch.equal(x, before):
                    wrong.append(f"{name} wrote into x")
    return wrong


@pytest.mark.parametrize("n", RANKS)
def test_every_all_reduce_equals_the_backend_for_all_sizes_and_dtypes(pool: Pool, n: int) -> None:
    assert pool(n).run(wrong_all_reduces) == [[]] * n


def maxima_and_minima(comm: Comm) -> dict[str, list[Tensor]]:
    x = random_numbers((7,), torch.float64, comm.rank)
    runs = ALL_REDUCES | {"ring_reduce_scatter": ring_reduce_scatter}
    return {name: [run(comm, x, op=op) for op in ("max", "min")] for name, run in runs.items()}


@pytest.mark.parametrize("n", [3, 4])
def test_reductions_can_take_the_maximum_or_minimum(pool: Pool, n: int) -> None:
    stacked = torch.stack([random_numbers((7,), torch.float64, rank) for rank in range(n)])
    expected = [stacked.amax(0), stacked.amin(0)]
    for rank, found in enumerate(pool(n).run(maxima_and_minima)):
        parts = [e.tensor_split(n)[rank] for e in expected]
        for name, values in found.items():
            want = parts if name == "ring_reduce_scatter" else expected
            assert all(map(torch.equal, values, want)), name


def halves(comm: Comm) -> list[Tensor]:
    x = whole_numbers((11, 2), torch.float32, comm.rank)
    few = whole_numbers((2,), torch.float32, comm.rank)
    rows = whole_numbers((comm.rank, 3), torch.bfloat16, comm.rank)
    return [
        ring_reduce_scatter(comm, x),
        ring_reduce_scatter(comm, few),
        ring_all_gather(comm, x),
        ring_all_gather(comm, rows, list(range(comm.size))),
        ring_all_gather(comm, rows[:0]),
    ]


@pytest.mark.parametrize("n", RANKS)
def test_the_ring_scatters_and_gathers_parts_of_any_size(pool: Pool, n: int) -> None:
    def of_all(shape: tuple[int, ...]) -> list[Tensor]:
        return [whole_numbers(shape, torch.float32, rank) for rank in range(n)]

    rows = [whole_numbers((rank, 3), torch.bfloat16, rank) for rank in range(n)]
    for rank, (scattered, few, gathered, uneven, nothing) in enumerate(pool(n).run(halves)):
        assert torch.equal(scattered, torch.stack(of_all((11, 2))).sum(0).tensor_split(n)[rank])
        assert torch.equal(few, torch.stack(of_all((2,))).sum(0).tensor_split(n)[rank])
        assert torch.equal(gathered, torch.cat(of_all((11, 2))))
        assert torch.equal(uneven, torch.cat(rows))
        assert nothing.shape == (0, 3)


def differing_all_to_alls(comm: Comm) -> list[str]:
    wrong = []
    for dtype in (torch.bfloat16, torch.int64, torch.bool):
        for width in (0, 1, 3):
            x = whole_numbers((2 * comm.size, width), dtype, comm.rank)
            if not torch.equal(all_to_all(comm, x), comm.all_to_all(x)):
                wrong.append(f"even {dtype} {width}")
            splits = [(comm.rank + 2 * rank) % 3 for rank in range(comm.size)]
            x = whole_numbers((sum(splits), width), dtype, comm.rank)
            came = [(rank + 2 * comm.rank) % 3 for rank in range(comm.size)]
            expected = comm.all_to_all(x, splits, came)
            if not torch.equal(all_to_all(comm, x, splits), expected):
                wrong.append(f"uneven, counts told, {dtype} {width}")
            if not torch.equal(all_to_all(comm, x, splits, came), expected):
                wrong.append(f"uneven {dtype} {width}")
    return wrong


@pytest.mark.parametrize("n", RANKS)
def test_all_to_all_equals_the_backend_even_and_uneven(pool: Pool, n: int) -> None:
    assert pool(n).run(differing_all_to_alls) == [[]] * n


def strided(comm: Comm) -> list[bool]:
    x = whole_numbers((6, 4), torch.float64, comm.rank).requires_grad_()
    found = [run(comm, x.T) for run in ALL_REDUCES.values()]
    found += [ring_all_gather(comm, x.T), ring_reduce_scatter(comm, x.T)]
    expected = comm.all_reduce(x.detach().T.contiguous())
    wanted = [expected] * len(ALL_REDUCES)
    wanted += [comm.all_gather(x.detach().T), expected.tensor_split(comm.size)[comm.rank]]
    return [torch.equal(a, b) and not a.requires_grad for a, b in zip(found, wanted, strict=True)]


def test_strides_and_gradients_of_the_argument_do_not_matter(pool: Pool) -> None:
    assert all(map(all, pool(3).run(strided)))


# -- cost --------------------------------------------------------------------------------------

ITEM = 8


def traffic(comm: Comm, elements: int) -> dict[str, tuple[int, int, set[str]]]:
    """Messages that I sent, their bytes, and the operations used, for each algorithm."""
    found = {}
    for name, algorithm in ALGORITHMS.items():
        traced = TracedComm(comm)
        rows = elements // comm.size if algorithm.op == "all_gather" else elements
        algorithm.run(traced, torch.zeros(rows, dtype=torch.float64))
        sends = [event for event in traced.trace if event.op != "recv"]
        ops = set(traced.trace.count_by_op())
        found[name] = (len(sends), sum(event.wire_bytes for event in sends), ops)
    return found


@pytest.mark.parametrize("n", RANKS)
def test_messages_and_bytes_are_those_of_the_cost_model(pool: Pool, n: int) -> None:
    elements = 60
    of_ranks = pool(n).run(traffic, elements)
    for name, algorithm in ALGORITHMS.items():
        model = algorithm.cost(0.0, 1.0)
        assert max(of_rank[name][0] for of_rank in of_ranks) == model.messages(n), name
        busiest = max(of_rank[name][1] for of_rank in of_ranks)
        assert busiest == model.wire_bytes(n, elements * ITEM), name
        assert all(of_rank[name][2] <= {"send", "recv", "send_recv"} for of_rank in of_ranks)


def bytes_round_the_ring(comm: Comm) -> list[int]:
    found = []
    for elements in (1, 2, 7, 61):
        traced = TracedComm(comm)
        ring_all_reduce(traced, torch.zeros(elements, dtype=torch.float64))
        found.append(traced.trace.total_wire_bytes())
    return found


def test_where_chunks_are_uneven_the_ranks_of_a_ring_send_the_modelled_bytes_on_average(
    pool: Pool,
) -> None:
    sent = zip(*pool(4).run(bytes_round_the_ring), strict=True)
    for elements, of_ranks in zip((1, 2, 7, 61), sent, strict=True):
        model = ALGORITHMS["ring_all_reduce"].cost(0.0, 1.0)
        assert math.isclose(sum(of_ranks) / 4, model.wire_bytes(4, elements * ITEM))


# -- the order of summation --------------------------------------------------------------------


def bits(x: Tensor) -> Tensor:
    return x.view(BITS[x.dtype])


def in_rank_order(values: list[Tensor]) -> Tensor:
    """One after the other in float32 or wider, rounded once: written without the module's help."""
    wide = [v.double() if v.dtype == torch.float64 else v.float() for v in values]
    total = torch.zeros_like(wide[0])
    for value in wide:
        total = total + value
    return total.to(values[0].dtype)


def sums_in_many_messages(comm: Comm, dtype: torch.dtype) -> list[Tensor]:
    """The same 50 elements' sums: alone, at several places of longer messages, in pieces."""
    x = random_numbers((50,), dtype, comm.rank)
    found = []
    for run in (one_shot_all_reduce, two_shot_all_reduce, fixed_order_all_reduce):
        found.append(run(comm, x))
        for front, behind in ((1, 0), (0, 1), (13, 200), (100, 7)):
            padded = torch.cat([torch.ones(front).to(dtype), x, torch.ones(behind).to(dtype)])
            found.append(run(comm, padded)[front : front + 50])
        for pieces in (3, 7):
            found.append(torch.cat([run(comm, piece) for piece in x.chunk(pieces)]))
    found.append(fixed_order_all_reduce(comm, x, two_shots_from=0))
    found.append(fixed_order_all_reduce(comm, x, two_shots_from=10**9))
    return found


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_fixed_order_gives_the_bits_of_rank_order_in_every_message(
    pool: Pool, n: int, dtype: torch.dtype
) -> None:
    expected = in_rank_order([random_numbers((50,), dtype, rank) for rank in range(n)])
    for found in pool(n).run(sums_in_many_messages, dtype):
        assert all(torch.equal(bits(sums), bits(expected)) for sums in found)


def same_bits_as_shared_memory(comm: Comm) -> list[bool] | None:
    if comm.transport is None or comm.transport.name != "shared memory":
        return None
    found = []
    for dtype in BITS:
        x = random_numbers((300,), dtype, comm.rank)
        carried = comm.all_reduce(x.clone())
        found.append(torch.equal(bits(fixed_order_all_reduce(comm, x)), bits(carried)))
    return found


@pytest.mark.parametrize("n", [2, 3])
def test_shared_memory_sums_in_the_same_fixed_order(pool: Pool, n: int) -> None:
    found = pool(n).run(same_bits_as_shared_memory)
    if None in found:
        pytest.skip("no shared memory between ranks here")
    assert found == [[True] * len(BITS)] * n


def study(comm: Comm) -> dict[str, int]:
    found = order_study(comm, 200)
    return {row.algorithm: found.changed(row.algorithm) for row in found.rows}


def test_two_ranks_have_one_order_only(pool: Pool) -> None:
    assert all(set(changed.values()) == {0} for changed in pool(2).run(study))


def test_only_a_rings_sums_depend_on_what_else_is_in_the_message(pool: Pool) -> None:
    for changed in pool(3).run(study):
        ours = {title: count for title, count in changed.items() if "comm." not in title}
        assert ours.pop("ring all-reduce") > 0
        assert set(ours.values()) == {0}
        assert "comm.all_reduce (gloo)" in changed


def test_all_ranks_get_the_same_bits(pool: Pool) -> None:
    def sums(comm: Comm) -> list[Tensor]:
        x = random_numbers((101,), torch.float32, comm.rank)
        return [run(comm, x) for run in ALL_REDUCES.values()]

    first, *others = pool(3).run(sums)
    for other in others:
        assert all(map(torch.equal, map(bits, first), map(bits, other)))


def test_the_order_study_refuses_nothing_to_compare_and_an_unknown_name() -> None:
    with pytest.raises(KeyError, match="no rows of 'star'; there are ring all-reduce"):
        order_study(Comm.solo(), 3).changed("star")
    with pytest.raises(ValueError, match="take at least 1"):
        order_study(Comm.solo(), 0)


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [*ALL_REDUCES.values(), ring_reduce_scatter])
def test_a_reduction_or_dtype_that_is_not_known_is_refused_in_a_sentence(
    run: Callable[..., Tensor],
) -> None:
    comm = Comm.solo()
    with pytest.raises(ValueError, match="no reduction 'avg'; it knows sum, max, min, and an ave"):
        run(comm, torch.ones(3), op="avg")
    with pytest.raises(ValueError, match="cannot reduce float8_e4m3fn; float32, bfloat16 and"):
        run(comm, torch.ones(3).to(torch.float8_e4m3fn))
    with pytest.raises(TypeError, match="takes a tensor, not list"):
        run(comm, [1.0])


def test_sizes_and_splits_that_do_not_fit_are_refused() -> None:
    comm = Comm.solo()
    with pytest.raises(ValueError, match=r"sizes \[4\] give rank 0 4 rows.*has 3"):
        ring_all_gather(comm, torch.ones(3), [4])
    with pytest.raises(ValueError, match=r"sizes \[1, 2\] has 2 entries; a group of 1 needs 1"):
        ring_all_gather(comm, torch.ones(3), [1, 2])
    with pytest.raises(ValueError, match="a 0-d tensor has none"):
        ring_reduce_scatter(comm, torch.tensor(1.0))
    with pytest.raises(ValueError, match="add up to 2, and the tensor has 3 rows"):
        all_to_all(comm, torch.ones(3), [2])
