"""Exercise: the width to which zero channels pad a matrix, so that ranks hold whole groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.exercise import Case, Exercise, case_weight
from labkit.plan.shard import pad_to_whole_groups, pad_up

MESSAGES = {
    "one-condition-only: groups": "The width has whole groups, and the ranks do not: a border "
    "between two ranks falls inside a group, whose scale neither of them can use alone.",
    "one-condition-only: parts": "The ranks have equally many channels, and these are not whole "
    "groups: a border between two ranks falls inside a group.",
    "one-condition-only: nothing": "The width has not grown, although a border between two ranks "
    "falls inside a group.",
    "channels-cut-off": "The width is smaller than it was: channels are cut off. The model would "
    "compute something else. Zero channels are added, and the outputs stay.",
    "pads-what-fits": "Channels are added in a case that needs none: the ranks hold whole groups "
    "already. What is missing to a multiple is nothing where the remainder is 0.",
    "rounded-twice": "The width is legal and not the smallest. It was rounded up in two steps, and "
    "the second one undid what the first one had done just enough.",
    "of-one-rank": "These are figures of one rank. The whole matrix is padded once, before it is "
    "cut.",
    "counts-groups": "Groups are counted, or scales. A channel is one column, and a group has "
    "group_size of them.",
    "swapped": "The two numbers have changed places: the width comes first, then the channels "
    "that are added.",
}

Pair = tuple[int, int]


def _right(width: int, group: int, tp: int) -> Pair:
    padded = pad_to_whole_groups(width, tp, group)
    return padded, padded - width


def _wrong(width: int, group: int, tp: int) -> Iterator[tuple[str, Pair]]:
    right, added = _right(width, group, tp)
    unit = group * tp

    def to(padded: int) -> Pair:
        return padded, padded - width

    if right != width:
        yield "one-condition-only: nothing", to(width)
        yield "one-condition-only: groups", to(pad_up(width, group))
        yield "one-condition-only: parts", to(pad_up(width, tp))
        lower = width - width % unit
        yield "channels-cut-off", to(lower)
        yield "channels-cut-off", (lower, width - lower)
        yield "channels-cut-off", (lower, 0)
        yield "rounded-twice", to(pad_up(pad_up(width, unit) + 1, unit))
    else:
        yield "pads-what-fits", to(width + unit)
        yield "pads-what-fits", to(width + group)
    yield "rounded-twice", to(pad_up(pad_up(width, group) * tp, unit))
    if tp > 1:
        yield "of-one-rank", (right // tp, added // tp)
        yield "of-one-rank", (right, added // tp)
        yield "of-one-rank", (right // tp, added)
    yield "counts-groups", (right // group, added // group)
    yield "counts-groups", (right, added // group)
    yield "counts-groups", (right // group, added)
    yield "swapped", (added, right)


def _returned(width: int, group: int, tp: int) -> Iterator[tuple[str, Returns]]:
    for key, value in _wrong(width, group, tp):
        yield key, on_every_rank(value)


def _case(width: int, group: int, tp: int) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {"width": width, "group_size": group, "tp": tp}

    return Case(
        name=f"{width} channels in groups of {group}, TP {tp}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(_right(width, group, tp)),
        mistakes=mistakes(MESSAGES, _returned(width, group, tp)),
        weight=case_weight(tp),
    )


def _visible(seed: int) -> tuple[Case, ...]:
    return _case(29568, 128, 8), _case(11008, 128, 4), _case(14336, 128, 8), _case(13700, 64, 6)


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)

    def off(whole: int, group: int) -> int:
        """A width a few groups above `whole`."""
        return whole + group * random.choice((1, 3, 5))

    return (
        _case(off(8192, 64), 64, 8),
        _case(off(18432, 128) + 8 * random.randint(1, 12), 128, 4),
        _case(1536 * random.randint(9, 14), 128, 12),
        _case(off(6144, 32), 32, 2),
        _case(off(13696, 128) + 4, 128, 1),
    )


EXERCISE = Exercise(
    name="pad_for_int4",
    chapter="03_layout_planning",
    title="Zero channels that make INT4 groups whole",
    function="pad_for_int4",
    parameters=("width", "group_size", "tp"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
