"""Exercise: the padded width at which every rank holds whole quantisation groups."""

from __future__ import annotations

import math
from random import Random

from course.exercises.plain_cases import Wrong, plain_case
from course.grading.exercise import Case, Exercise
from labkit.plan.shard import pad_up

MESSAGES = {
    "groups-alone": "The whole width is made of whole groups now. A rank's part of it need not be: "
    "its border may fall inside one.",
    "ranks-alone": "Every rank gets as many channels now. They need not be whole groups.",
    "common-multiple": "The width divides by the group and by the number of ranks, each on its "
    "own. A rank must hold a whole number of groups, which asks for more.",
    "cut-down": "Channels were taken away. The model needs all it has; zeros can be added.",
    "padded-in-vain": "The width was fine as it was, or one step before, and yet more was added.",
    "width-of-a-rank": "This is the width of one rank. The matrix's is asked for.",
    "added-to-a-rank": "These are the channels that one rank gets on average. Count those that the "
    "matrix gets.",
    "added-groups": "What was added is counted in groups. Channels are asked for.",
    "power-of-two": "The width was raised to a power of two. That is legal and far more than it "
    "takes.",
}


def _right(width: int, group: int, tp: int) -> tuple[int, int]:
    padded = pad_up(width, group * tp)
    return padded, padded - width


def _wrong(width: int, group: int, tp: int) -> Wrong:
    padded, added = _right(width, group, tp)

    def to(other: int) -> tuple[int, int]:
        return other, other - width

    def ways() -> Wrong:
        yield "groups-alone", to(pad_up(width, group))
        yield "ranks-alone", to(pad_up(width, tp))
        yield "common-multiple", to(pad_up(width, math.lcm(group, tp)))
        yield "cut-down", to(width // (group * tp) * group * tp)
        yield "padded-in-vain", to((width // (group * tp) + 1) * group * tp)
        yield "padded-in-vain", to(padded + group * tp)
        yield "width-of-a-rank", (padded // tp, added)
        yield "added-to-a-rank", (padded, added // tp)
        yield "added-groups", (padded, added // group)
        yield "power-of-two", to(1 << (width - 1).bit_length())

    seen = set()
    for key, answer in ways():
        if answer not in seen:
            yield key, answer
        seen.add(answer)


def _case(name: str, width: int, group: int, tp: int) -> Case:
    arguments = {"width": width, "group_size": group, "tp": tp}
    return plain_case(name, arguments, _right(width, group, tp), _wrong(width, group, tp), MESSAGES)


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("the MLP of a 72B over 8", 29_568, 128, 8),
        _case("14,336 over 8: fine as it is", 14_336, 128, 8),
        _case("over 6", 13_696, 128, 6),
        _case("no whole groups to begin with", 11_000, 64, 3),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)
    odd = 128 * random.randrange(101, 161, 2)
    return (
        _case("an odd number of groups over 2", odd, 128, 2),
        _case("the same over 4", odd, 128, 4),
        _case("an old 7B over 4", 11_008, 128, 4),
        _case("groups of 32 over 5", 32 * random.randint(300, 400) + 8, 32, 5),
        _case("one rank", odd + 64, 128, 1),
        _case("legal over 12", 128 * 12 * 7, 128, 12),
    )


EXERCISE = Exercise(
    name="pad_for_int4",
    chapter="03_layout_planning",
    title="Padding for INT4 groups",
    function="pad_for_int4",
    parameters=("width", "group_size", "tp"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
