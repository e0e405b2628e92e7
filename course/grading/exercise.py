"""What an exercise is: cases to run, what they must return, and the mistakes that explain a miss.

A mistake is not looked for in the source. It says what its maker's function *would have returned*
(or done), and a submission that did exactly that is told the mechanism. So the wording cannot
depend on how the student spelt it, and the bank of wrong solutions proves each one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from course.grading.comparison import Difference
from labkit.ranks.report import RankError
from labkit.ranks.trace import Trace

ONE_RANK_WEIGHT = 1
SEVERAL_RANKS_WEIGHT = 3
"""What a case counts. With one rank much goes well that is wrong: a forgotten all-reduce."""


def case_weight(ranks: int) -> int:
    """What a case with so many ranks counts; a plain function's is about the ranks it is told."""
    return ONE_RANK_WEIGHT if ranks == 1 else SEVERAL_RANKS_WEIGHT


@dataclass(frozen=True)
class Outcome:
    """What one case's call did, rank by rank. A plain function has one entry and no trace."""

    returned: tuple[Any, ...]
    """Per rank; empty when the call failed."""
    traces: tuple[Trace, ...] = ()
    """Per rank, through a `TracedComm`; empty when the call failed."""
    changed: tuple[tuple[str, ...], ...] = ()
    """Per rank: names of the arguments whose tensors, lists or dicts the call altered."""
    error: RankError | None = None
    """Why the call failed: a rank raised, died, hung, or called another collective."""


@dataclass(frozen=True)
class Mistake:
    """A way in which students go wrong, and what to tell them.

    Give `returns` (rank -> what the function would have returned on that rank) or `shows` (whether
    an outcome shows the mistake). `returns` may raise ValueError where the mistake changes nothing
    or cannot be made in this case. `message` names the mechanism, never the answer.
    """

    key: str
    message: str
    returns: Callable[[int], Any] | None = None
    shows: Callable[[Outcome], bool] | None = None

    def __post_init__(self) -> None:
        if (self.returns is None) == (self.shows is None):
            raise ValueError(f"mistake {self.key!r} needs either `returns` or `shows`")


@dataclass(frozen=True)
class Case:
    """One call of the student's function.

    ranks: how many ranks call `fn(comm, **arguments(rank))`; 0: a plain function, called once as
        `fn(**arguments(0))` (on one rank of its own all the same, with the same deadline).
    arguments, expected: what a rank passes in and must return. Both are called more than once and
        must give equal values each time: seed them.
    collectives: how often each rank must call each operation of Comm, such as {"all_reduce": 1};
        operations not named must not be called. None: any.
    judged: what is wrong with a returned value, where several values are right; `expected` is one
        of them. None: only what equals `expected`.
    weight: its share of the points; 0: `case_weight(ranks)`. The case of a plain function that is
        told how many ranks there are gives `case_weight` of those.
    """

    name: str
    ranks: int
    arguments: Callable[[int], Mapping[str, Any]]
    expected: Callable[[int], Any]
    mistakes: tuple[Mistake, ...] = ()
    collectives: Mapping[str, int] | None = None
    weight: int = 0
    may_change_inputs: bool = False
    judged: Callable[[Any], Difference | None] | None = None

    def __post_init__(self) -> None:
        if not self.weight:
            object.__setattr__(self, "weight", case_weight(self.ranks))


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    name: its id in `check(name, fn)`. chapter: its notebook, such as "02_tensor_parallel".
    function, parameters: what the student defines; the stub and the reference have the same.
    visible, hidden: make the cases from a seed. Hidden ones use other seeds and other sizes.
    timeout: seconds that one case may take.
    """

    name: str
    chapter: str
    title: str
    function: str
    parameters: tuple[str, ...]
    points: int
    visible: Callable[[int], tuple[Case, ...]]
    hidden: Callable[[int], tuple[Case, ...]]
    timeout: float = 15.0
    tolerance: float = 1e-9
    """Relative and absolute, for floating-point tensors and numbers; inputs are float64."""
