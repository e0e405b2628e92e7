"""The words the corpus is made of, and the rule that keeps some combinations of them unseen.

Every document is about one `Triple` (who, what, where). `held_out` is a fixed property of the
triple, so a held-out document opens with a combination that no training document has.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

HELD_OUT_SHARE = 16


def words(text: str) -> list[str]:
    """The words of a text, for lists that read better as text."""
    return text.split()


@dataclass(frozen=True)
class Person:
    """A named character and the pronouns that go with the name."""

    name: str
    subject: str
    object: str
    possessive: str

    @property
    def Subject(self) -> str:
        """The subject pronoun at the start of a sentence."""
        return self.subject.capitalize()

    @property
    def Possessive(self) -> str:
        """The possessive pronoun at the start of a sentence."""
        return self.possessive.capitalize()


@dataclass(frozen=True)
class Triple:
    """Who, what, where: the combination a document is about."""

    who: str
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.who}|{self.what}|{self.where}"


def held_out(triple: Triple) -> bool:
    """True for one combination in `HELD_OUT_SHARE`, the same one on every machine."""
    return zlib.crc32(str(triple).encode()) % HELD_OUT_SHARE == 0


class Teller(random.Random):
    """A random stream with the choices that telling a story needs."""

    def pick(self, *options: T) -> T:
        """One of the options."""
        return options[self.randrange(len(options))]

    def one(self, options: Sequence[T], *, but: Sequence[T] = ()) -> T:
        """One of the options that is not in `but`."""
        allowed = [option for option in options if option not in but]
        return allowed[self.randrange(len(allowed))]

    def some(self, options: Sequence[T], count: int) -> list[T]:
        """`count` different options in random order."""
        return self.sample(list(options), count)

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.random() < probability


WOMEN = "Mia Nora Lily Anna Ruth Clara Ada Ivy Rosa Tess Vera Zoe Emma Lucy Jane Hana Maya Nina"
MEN = "Tom Ben Max Leo Sam Finn Otto Hugo Omar Ravi Jack Paul Noah Luca Emil Karl Ned Theo"
PEOPLE = [Person(name, "she", "her", "her") for name in words(WOMEN)] + [
    Person(name, "he", "him", "his") for name in words(MEN)
]

OBJECTS = words(
    "kite lantern boat drum clock basket key map bell hat coat umbrella wagon flute box book spoon "
    "ladder blanket mirror ball cup ring shell whistle compass pot broom"
)
COLOURS = words("red blue green yellow white black brown silver")
PLACES = {
    "garden": "in the garden",
    "forest": "in the forest",
    "village": "in the village",
    "market": "at the market",
    "harbour": "at the harbour",
    "hill": "on the hill",
    "river": "by the river",
    "farm": "on the farm",
    "meadow": "in the meadow",
    "school": "at the school",
    "library": "in the library",
    "kitchen": "in the kitchen",
    "barn": "in the barn",
    "beach": "on the beach",
    "station": "at the station",
    "mill": "at the mill",
    "tower": "in the tower",
    "bridge": "on the bridge",
    "castle": "in the castle",
    "lake": "by the lake",
}
ANIMALS = words("cat dog goat duck rabbit fox horse mouse owl hen sheep crow")
TRAITS = words("kind brave clever quiet patient cheerful curious careful gentle busy")
WEATHER = words("warm cold sunny windy rainy cloudy bright foggy")
SPOTS = (
    "under the table",
    "behind the door",
    "under an old tree",
    "next to the well",
    "behind a big stone",
    "on top of the wall",
    "under the stairs",
    "beside the gate",
    "inside a wooden box",
    "between two bushes",
    "near the fence",
    "under a bench",
)
WEEK = words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
NUMBERS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)


def article(phrase: str) -> str:
    """The phrase with "a" or "an" before it."""
    return f"an {phrase}" if phrase[0] in "aeiou" else f"a {phrase}"


def listing(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} and {items[-1]}"
