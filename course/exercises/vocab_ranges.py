"""Exercise: cut a vocabulary into one range per rank, and lose no token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from course.grading.exercise import Case, Exercise, Mistake, Outcome, case_weight
from labkit.plan.shard import balanced_ranges


def _case(vocab_size: int, tp: int) -> Case:
    def arguments(rank: int) -> Mapping[str, int]:
        return {"vocab_size": vocab_size, "tp": tp}

    def expected(rank: int) -> list[range]:
        return list(balanced_ranges(vocab_size, tp))

    name = f"{vocab_size} ids over {tp} rank{'s' * (tp > 1)}"
    return Case(name, 0, arguments, expected, _mistakes(vocab_size, tp), weight=case_weight(tp))


def _mistakes(vocab_size: int, tp: int) -> tuple[Mistake, ...]:
    floor, ceiling = vocab_size // tp, -(-vocab_size // tp)
    right = balanced_ranges(vocab_size, tp)
    blocks = [range(rank * floor, (rank + 1) * floor) for rank in range(tp)]
    wide_blocks = [range(rank * ceiling, (rank + 1) * ceiling) for rank in range(tp)]
    clipped = [range(min(b.start, vocab_size), min(b.stop, vocab_size)) for b in wide_blocks]
    last_takes_rest = [*blocks[:-1], range(blocks[-1].start, vocab_size)]

    def longer_not_first(outcome: Outcome) -> bool:
        """Every id once, in order, lengths as they should be, only not in this order."""
        [ranges] = outcome.returned or (None,)
        if not isinstance(ranges, list) or not all(isinstance(part, range) for part in ranges):
            return False
        lengths = [len(part) for part in ranges]
        starts = [sum(lengths[:rank]) for rank in range(len(ranges))]
        return (
            sorted(lengths, reverse=True) == [len(part) for part in right]
            and all(part == range(i, i + len(part)) for i, part in zip(starts, ranges, strict=True))
            and any(before < after for before, after in pairwise(lengths))
        )

    def moved(start: int, stop: int) -> Callable[[Outcome], bool]:
        """All starts and stops off by this much. Empty ranges are equal, and these may be empty."""
        edges = [(part.start + start, part.stop + stop) for part in right]
        return lambda outcome: [(part.start, part.stop) for part in outcome.returned[0]] == edges

    return (
        Mistake(
            "inclusive-stop",
            "Each range ends one id early. The stop of a Python range is not in it.",
            shows=moved(0, -1),
        ),
        Mistake(
            "overlapping-ranges",
            "Each range ends one id late, so neighbours hold an id twice and the last one runs "
            "past the vocabulary. The stop of a Python range is not in it.",
            shows=moved(0, 1),
        ),
        Mistake(
            "counted-from-one",
            "The ids are counted from 1, and a vocabulary counts from 0: the first token is lost "
            "and the last range runs past the end.",
            shows=moved(1, 1),
        ),
        Mistake(
            "loses-the-last-ids",
            "Every range has the length of the rounded-down division, so the ids that are left "
            "over at the end lie in no range: the model could never say those tokens.",
            returns=lambda _: blocks,
        ),
        Mistake(
            "past-the-vocabulary",
            "Every range has the length of the rounded-up division, so the last ones run into ids "
            "that do not exist.",
            returns=lambda _: wide_blocks,
        ),
        Mistake(
            "last-range-short",
            "Every id is there once, but the first ranks took the rounded-up length and the last "
            "got what was left: the lengths differ by more than one.",
            returns=lambda _: clipped,
        ),
        Mistake(
            "last-rank-takes-the-rest",
            "Every id is there once, but the last rank takes all that the rounded-down division "
            "leaves over: the lengths differ by more than one, and all ranks wait for the longest.",
            returns=lambda _: last_takes_rest,
        ),
        Mistake(
            "longer-ranges-not-first",
            "Every id is there once and the lengths are right, but the longer ranges do not come "
            "first.",
            shows=longer_not_first,
        ),
        Mistake(
            "round-robin",
            "The ids were dealt out in turn, so no rank holds an unbroken block; a rank reads its "
            "rows of the table as one slice.",
            returns=lambda _: [range(rank, vocab_size, tp) for rank in range(tp)],
        ),
    )


def visible(seed: int) -> tuple[Case, ...]:
    return _case(10, 4), _case(8, 3), _case(12, 3), _case(5, 1)


def hidden(seed: int) -> tuple[Case, ...]:
    other = seed % 7
    return (
        _case(2, 4),
        _case(2, 3),
        _case(49_152 + 16 * other + 5, 8),
        _case(151_936, 7 + other),
        _case(64, 64),
    )


EXERCISE = Exercise(
    name="vocab_ranges",
    chapter="02_tensor_parallel",
    title="Vocabulary ranges that lose no token",
    function="vocab_ranges",
    parameters=("vocab_size", "tp"),
    points=10,
    visible=visible,
    hidden=hidden,
)
