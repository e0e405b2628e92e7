"""What a lesson says, as data: the shell (`course.shell`) shows it, tests read it.

Texts may use `code` and **bold** marks, nothing else. Figures in them are computed by labkit where
the lesson is defined, never typed. What is inconsistent is refused when the lesson is built.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Guide:
    """When to reach for the technique, and when to leave it."""

    prefer: tuple[str, ...]
    avoid: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A thing on the map. `at`: (column, row) on the drawing's grid, from the top left."""

    id: str
    title: str
    why: str
    at: tuple[float, float]


@dataclass(frozen=True)
class Edge:
    """What passes between two nodes.

    protocol: what carries it. direction: who gives, who gets. effect: what is true afterwards.
    consequence: what this means for whoever runs it.
    """

    source: str
    target: str
    title: str
    protocol: str
    direction: str
    effect: str
    consequence: str


@dataclass(frozen=True)
class LessonMap:
    """Nodes and the edges between them."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        ids = [node.id for node in self.nodes]
        _refuse_repeats(self.title, "node", ids)
        _refuse_repeats(self.title, "place", [str(node.at) for node in self.nodes])
        for edge in self.edges:
            for end in (edge.source, edge.target):
                if end not in ids:
                    raise ValueError(
                        f"map {self.title!r}: edge {edge.title!r} names node {end!r}; "
                        f"there are {', '.join(ids)}"
                    )

    def node(self, node_id: str) -> Node:
        """The node called so."""
        return next(node for node in self.nodes if node.id == node_id)


@dataclass(frozen=True)
class Pitfall:
    """A mistake people make: how it shows, why it happens, what to do."""

    title: str
    symptom: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Question:
    """A self-check: think first, then reveal the answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Option:
    """One answer of a quiz. `explains`: why it is right, or which trap makes it look right."""

    text: str
    explains: str
    is_right: bool = False


@dataclass(frozen=True)
class Quiz:
    """A scored question with one right option."""

    id: str
    question: str
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        if sum(option.is_right for option in self.options) != 1 or len(self.options) < 3:
            raise ValueError(f"quiz {self.id!r} needs three options or more, exactly one right")
        _refuse_repeats(self.id, "option", [option.text for option in self.options])

    @property
    def right(self) -> int:
        """Index of the right option."""
        return next(i for i, option in enumerate(self.options) if option.is_right)


@dataclass(frozen=True)
class Reference:
    """Something real to read next, and what for."""

    title: str
    authors: str
    year: int
    url: str
    why: str


@dataclass(frozen=True)
class Lever:
    """One way to serve more or faster: what it gains, what it costs, when to pull it."""

    name: str
    gain: str
    cost: str
    when: str


@dataclass(frozen=True)
class Lesson:
    """One lesson's content. `name` is its notebook's file name without the ending."""

    name: str
    title: str
    question: str
    gist: tuple[str, ...]
    decisions: tuple[str, ...]
    """What the reader can decide afterwards."""
    guide: Guide
    map: LessonMap
    pros: tuple[str, ...]
    cons: tuple[str, ...]
    pitfalls: tuple[Pitfall, ...]
    questions: tuple[Question, ...]
    quizzes: tuple[Quiz, ...]
    references: tuple[Reference, ...]
    levers: tuple[Lever, ...] = field(default=())

    def __post_init__(self) -> None:
        _refuse_repeats(self.name, "quiz", [quiz.id for quiz in self.quizzes])
        if len(self.gist) != 3:
            raise ValueError(f"lesson {self.name}: the gist has {len(self.gist)} lines; want 3")


def _refuse_repeats(owner: str, what: str, names: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{owner}: {what} {', '.join(map(repr, repeated))} appears twice")
