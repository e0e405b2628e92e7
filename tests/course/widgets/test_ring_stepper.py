"""The ring stepper shows what a recorded run did: messages, partial sums, finished sums."""

import json

import pytest

from course.widgets.message_pattern import who_sends
from course.widgets.ring_stepper import RingStepper, messages_table
from course.widgets.stepper_drawing import draw_run
from course.widgets.stepper_view import Run, before_first
from labkit.ranks.algorithm_record import Record, StepRecord, merge_records
from labkit.ranks.algorithms import ALGORITHMS


def ring_record(n: int) -> StepRecord:
    """What `n` ranks write down in a ring all-reduce."""
    records = []
    for rank in range(n):
        record, before, after = Record(), (rank - 1) % n, (rank + 1) % n
        record.begin("ring all-reduce", rank, n, n, range(n))
        for hop in range(n - 1):
            step = record.step("reduce-scatter").sent((rank - hop) % n, after)
            step.added((before - hop) % n, before)
        for hop in range(n - 1):
            step = record.step("all-gather").sent((after - hop) % n, after)
            step.kept((rank - hop) % n, before)
        records.append(record)
    return merge_records(records)


def gather_record(n: int) -> StepRecord:
    """What `n` ranks write down when each passes its own chunk round."""
    records = []
    for rank in range(n):
        record, before = Record(), (rank - 1) % n
        record.begin("ring all-gather", rank, n, n, [rank])
        for hop in range(n - 1):
            step = record.step("all-gather").sent((rank - hop) % n, (rank + 1) % n)
            step.kept((before - hop) % n, before)
        records.append(record)
    return merge_records(records)


def pair_record() -> StepRecord:
    """Two ranks that give each other their whole buffer."""
    records = []
    for rank in (0, 1):
        record = Record()
        record.begin("recursive doubling", rank, 2, 1, [0])
        record.step("exchange").sent(0, 1 - rank).added(0, 1 - rank)
        records.append(record)
    return merge_records(records)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_positions_are_the_start_and_every_recorded_step(n: int):
    record = ring_record(n)
    positions = Run(record).positions
    assert [position.number for position in positions] == list(range(2 * (n - 1) + 1))
    for position, step in zip(positions[1:], record.steps, strict=True):
        shown = [[frozenset(held.from_ranks) for held in row] for row in position.held]
        assert shown == [list(row) for row in step.holds]
        assert {(sent.src, sent.dst) for sent in position.sent} == {
            (move.src, move.dst) for move in step.moves
        }


@pytest.mark.parametrize("n", [2, 3, 5])
def test_before_the_first_step_each_rank_has_its_own_values_only(n: int):
    assert before_first(ring_record(n)) == [[frozenset({rank})] * n for rank in range(n)]
    own = [[frozenset({c} if c == rank else ()) for c in range(n)] for rank in range(n)]
    assert before_first(gather_record(n)) == own


def test_a_sum_is_finished_when_all_ranks_are_in_it_and_new_where_it_came():
    positions = Run(ring_record(3)).positions
    assert not any(held.look == "whole" for row in positions[1].held for held in row)
    after_scatter = [[held.look for held in row] for row in positions[2].held]
    assert [row.count("whole") for row in after_scatter] == [1, 1, 1]
    assert all(held.look == "whole" for row in positions[-1].held for held in row)
    assert not any(held.is_new for row in positions[0].held for held in row)
    for position in positions[1:]:
        assert [[held.is_new for held in row].count(True) for row in position.held] == [1, 1, 1]


def test_message_says_what_it_carries_and_what_becomes_of_it():
    positions = Run(ring_record(3)).positions
    [first] = [sent for sent in positions[1].sent if sent.src == 0]
    assert (first.label, first.cargo, first.then) == ("0", "chunk 0 (values of rank 0)", "added")
    [second] = [sent for sent in positions[2].sent if sent.src == 1]
    assert (second.cargo, second.then) == ("chunk 0 (sum of ranks 0 and 1)", "added")
    [last] = [sent for sent in positions[4].sent if sent.src == 0]
    assert (last.cargo, last.then) == ("chunk 0 (the finished sum)", "kept")


def test_a_buffer_in_one_piece_has_no_chunk_numbers():
    [sent, _] = Run(pair_record()).positions[1].sent
    assert (sent.label, sent.cargo) == ("", "values of rank 0")


def test_a_gather_adds_nothing_and_names_where_values_are_from():
    run = Run(gather_record(3))
    assert not run.is_sum
    assert {sent.then for position in run.positions for sent in position.sent} == {"kept"}
    assert [held.text for held in run.positions[1].held[0]] == ["from 0", "\N{EN DASH}", "from 2"]
    assert run.finding.endswith("after 2 steps every rank has a chunk from every rank")


def test_long_sums_are_counted_and_short_ones_written_out():
    assert Run(ring_record(4)).positions[2].held[1][3].text == "0+1+3"
    assert Run(ring_record(5)).positions[2].held[1][4].text == "3 of 5"


def test_a_run_of_one_rank_sends_nothing():
    record = Record()
    record.begin("ring all-reduce", 0, 1, 1, [0])
    run = Run(merge_records([record]))
    assert len(run.positions) == 1
    assert RingStepper(merge_records([record])).static()


@pytest.mark.parametrize(
    ("ends", "ranks", "words"),
    [
        ({(0, 1), (1, 2), (2, 0)}, 3, "each rank sends to the one after it"),
        ({(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)}, 5, "each rank sends to the one 2 places after"),
        ({(0, 1), (1, 0)}, 2, "ranks exchange in pairs: 0 with 1"),
        ({(0, 2), (2, 0), (1, 3), (3, 1)}, 4, "ranks exchange in pairs: 0 with 2, 1 with 3"),
        ({(a, b) for a in range(3) for b in range(3) if a != b}, 3, "every rank sends to every"),
        ({(2, 0)}, 3, "rank 2 sends to 0"),
        ({(0, 1), (0, 2)}, 4, "rank 0 sends to 1 and 2"),
        (set(), 2, "nothing is sent"),
    ],
)
def test_pattern_of_messages_in_words(ends: set[tuple[int, int]], ranks: int, words: str):
    assert who_sends(ends, ranks).startswith(words)


def test_paper_has_every_message_and_the_finding():
    stepper = RingStepper(ring_record(4))
    assert len(messages_table(stepper.run).rows) == 6 * 4
    for shown in stepper.static():
        assert "Ring all-reduce, 4 ranks: after 6 steps every rank has the whole sum" in shown
        assert "chunk 2 (sum of ranks 2 and 3)" in shown


def test_picture_says_in_words_who_holds_what():
    data, _ = draw_run(Run(ring_record(3)))
    assert "rank 0: 0, sum of 3, 0+2" in data["text/plain"]


def test_the_page_gets_plain_data():
    run = RingStepper(ring_record(3)).run.as_data()
    assert json.loads(json.dumps(run))["positions"][1]["sent"][0]["dst"] == 1


def test_widget_starts_before_the_first_step():
    widget = RingStepper(ring_record(2)).widget
    assert widget is not None
    assert widget.position == 0
    assert widget.run["ranks"] == 2


def test_every_algorithm_can_be_stepped_through_from_a_real_run(pool):
    def all_records(comm):  # runs on the ranks
        from torch import arange

        records = {}
        for name, algorithm in ALGORITHMS.items():
            records[name] = Record()
            algorithm.run(comm, arange(6.0), record=records[name])
        return records

    by_rank = pool(3).run(all_records)
    for name, algorithm in ALGORITHMS.items():
        run = Run(merge_records([records[name] for records in by_rank]))
        assert run.title.lower() == f"{algorithm.title}, 3 ranks"
        whole = 1 if algorithm.op == "reduce_scatter" else run.chunks
        ends = [[held.look for held in row].count("whole") for row in run.positions[-1].held]
        assert ends == [whole] * 3
