"""The step-by-step record of an algorithm: what it says is what happened."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from labkit.ranks.algorithm_record import Record, StepRecord, merge_records
from labkit.ranks.algorithms import ALGORITHMS, fixed_order_all_reduce
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import TracedComm

Pool = Callable[[int], RankPool]
GATHERS = {"ring_all_gather", "all_to_all"}


class Wiretap(TracedComm):
    """Writes down which rank got which number; rank r brings 2**r, so a sum names its ranks."""

    def __init__(self, comm: Comm) -> None:
        super().__init__(comm)
        self.sent: list[tuple[int, frozenset[int]]] = []

    def send(self, x: Tensor, dst: int) -> None:
        self._note(x, dst)
        super().send(x, dst)

    def send_recv(self, x: Tensor, dst: int, out: Tensor, src: int) -> Tensor:
        self._note(x, dst)
        return super().send_recv(x, dst, out, src)

    def _note(self, x: Tensor, dst: int) -> None:
        (number,) = set(x.flatten().tolist())
        self.sent.append((dst, frozenset(r for r in range(self.size) if number >> r & 1)))


def tapped(comm: Comm) -> dict[str, tuple[Record, list[tuple[int, frozenset[int]]], Tensor]]:
    found = {}
    for name, algorithm in ALGORITHMS.items():
        tap, record = Wiretap(comm), Record()
        rows = 1 if name == "ring_all_gather" else comm.size
        result = algorithm.run(tap, torch.full((rows,), 2**comm.rank), record=record)
        found[name] = record, tap.sent, result
    return found


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_every_move_is_a_message_and_carries_the_values_it_names(pool: Pool, n: int) -> None:
    of_ranks = pool(n).run(tapped)
    for name, algorithm in ALGORITHMS.items():
        merged = merge_records([of_rank[name][0] for of_rank in of_ranks])
        assert merged.algorithm == algorithm.title
        for rank, of_rank in enumerate(of_ranks):
            told = [
                (move.dst, move.contributors)
                for step in merged.steps
                for move in step.moves
                if move.src == rank
            ]
            assert told == of_rank[name][1], name


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_what_ranks_hold_at_the_end_is_what_the_algorithm_returned(pool: Pool, n: int) -> None:
    of_ranks = pool(n).run(tapped)
    for name in ALGORITHMS:
        merged = merge_records([of_rank[name][0] for of_rank in of_ranks])
        if n == 1:
            assert merged.steps == ()
            continue
        for rank, of_rank in enumerate(of_ranks):
            held = [sum(2**r for r in cell) for cell in merged.steps[-1].holds[rank]]
            result = of_rank[name][2].tolist()
            if name == "ring_reduce_scatter":
                assert result == [held[rank]]
            elif len(held) == len(result):
                assert result == held, name
            else:  # one chunk of several elements
                assert result == held * len(result), name


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_steps_are_those_of_the_cost_model_and_numbered_from_1(pool: Pool, n: int) -> None:
    of_ranks = pool(n).run(tapped)
    for name, algorithm in ALGORITHMS.items():
        steps = merge_records([of_rank[name][0] for of_rank in of_ranks]).steps
        assert len(steps) == algorithm.cost(0.0, 1.0).steps(n), name
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))


def ring_of_three() -> StepRecord:
    """Written out by hand: chunk c starts on rank c + 1."""
    sides = []
    for rank in range(3):
        side = Record()
        side.begin("ring reduce-scatter", rank, 3, 3, range(3))
        for step in range(2):
            outgoing, incoming = (rank - 1 - step) % 3, (rank - 2 - step) % 3
            side.step("reduce-scatter").sent(outgoing, (rank + 1) % 3).added(
                incoming, (rank - 1) % 3
            )
        sides.append(side)
    return merge_records(sides[::-1])


def test_partial_sums_grow_as_they_go_round() -> None:
    first, second = ring_of_three().steps
    both = frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})
    zero, one, two = map(frozenset, ([0], [1], [2]))
    assert first.holds == ((zero, both[2], zero), (one, one, both[0]), (both[1], two, two))
    assert [m.chunk for m in first.moves] == [2, 0, 1]
    assert [m.contributors for m in second.moves] == [both[2], both[0], both[1]]
    assert [second.holds[rank][rank] for rank in range(3)] == [frozenset({0, 1, 2})] * 3


def test_a_record_becomes_json_and_needs_no_torch() -> None:
    data = ring_of_three().as_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["steps"][1]["moves"][0] == {"src": 0, "dst": 1, "chunk": 1, "contributors": [0, 2]}
    code = "import labkit.ranks.algorithm_record, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_ranks_hold_the_same_after_a_step_as_before_the_next(pool: Pool) -> None:
    """Nothing changes but where something arrives."""
    for name in ALGORITHMS:
        steps = merge_records([of_rank[name][0] for of_rank in pool(3).run(tapped)]).steps
        for before, after in pairwise(steps):
            arrived = {(move.dst, move.chunk) for move in after.moves}
            for rank, (then, now) in enumerate(zip(before.holds, after.holds, strict=True)):
                for chunk in range(len(now)):
                    assert now[chunk] == then[chunk] or (rank, chunk) in arrived


def test_the_fixed_order_is_recorded_as_what_ran() -> None:
    for limit, title in ((0, "two-shot all-reduce"), (100, "one-shot all-reduce")):
        record = Record()
        fixed_order_all_reduce(Comm.solo(), torch.ones(3), two_shots_from=limit, record=record)
        assert record.algorithm == title


# -- what is no run ----------------------------------------------------------------------------


def sides(*own: tuple[int, ...], algorithm: str = "swap") -> list[Record]:
    found = []
    for rank, chunks in enumerate(own):
        found.append(Record())
        found[-1].begin(algorithm, rank, len(own), 2, chunks)
    return found


def swapped(a: Record, b: Record) -> list[Record]:
    a.step("swap").sent(0, 1).added(0, 1)
    b.step("swap").sent(0, 0).added(0, 0)
    return [a, b]


def test_a_record_takes_one_run() -> None:
    record = sides((0,))[0]
    with pytest.raises(ValueError, match="holds a run of the swap already; pass a new Record"):
        record.begin("swap", 0, 1, 2, [0])


def test_records_that_are_not_one_run_are_refused_by_name() -> None:
    a, b = sides((0, 1), (0, 1))
    with pytest.raises(ValueError, match="no records"):
        merge_records([])
    with pytest.raises(ValueError, match="the record is empty"):
        merge_records([Record()])
    with pytest.raises(ValueError, match=r"records of ranks \[0, 0\]; a run of 2 needs one"):
        merge_records([a, a])
    with pytest.raises(ValueError, match="algorithm is 'swap' on rank 0 and 'turn' on rank 1"):
        merge_records([a, sides((0, 1), (0, 1), algorithm="turn")[1]])
    a.step("swap")
    with pytest.raises(ValueError, match=r"rank 0 went through 1 steps \(swap\) and rank 1"):
        merge_records([a, b])


def test_a_message_without_its_other_side_is_refused() -> None:
    a, b = sides((0, 1), (0, 1))
    a.step("swap").sent(1, 1)
    b.step("swap").added(0, 0)
    with pytest.raises(ValueError, match="step 1: what the ranks sent is not what they took; look"):
        merge_records([a, b])


def test_values_added_twice_are_refused() -> None:
    a, b = swapped(*sides((0, 1), (0, 1)))
    with pytest.raises(ValueError, match="step 2: rank 0 adds the values of rank 0 to chunk 0 for"):
        merge_records(swapped(a, b))


def test_a_chunk_without_values_cannot_be_sent() -> None:
    a, b = sides((1,), (0, 1))
    with pytest.raises(ValueError, match="rank 0 sends chunk 0 to rank 1 and has no values in it"):
        merge_records(swapped(a, b))


def test_a_step_in_which_nothing_moves_is_none() -> None:
    a, b = sides((0, 1), (0, 1))
    for side in (a, b):
        side.step("rest")
    merged = merge_records(swapped(a, b))
    assert [(step.number, step.phase) for step in merged.steps] == [(1, "swap")]
