"""A memory game: each player repeats the whole list and adds one word.

Nearly every word is a copy of a word some lines above, so the game teaches a model to look back,
and shows at once when it cannot. `lists_kept` checks the rule on any text of this form.
"""

from __future__ import annotations

import re
from itertools import pairwise

from training.tiny.corpus_words import (
    ANIMALS,
    COLOURS,
    OBJECTS,
    PEOPLE,
    PLACES,
    Teller,
    Triple,
)


def triple(tell: Teller) -> Triple:
    """A random (name, object, place)."""
    return Triple(tell.one(PEOPLE).name, tell.one(OBJECTS), tell.one(list(PLACES)))


def game(tell: Teller, about: Triple) -> tuple[str, str]:
    """The opening and the turns of one game about the triple."""
    who = next(person for person in PEOPLE if person.name == about.who)
    players = [who.name, tell.one(PEOPLE, but=[who]).name]
    others = [*(o for o in OBJECTS if o != about.what), *ANIMALS, *COLOURS, *PLACES]
    words = [about.what, *tell.some(others, tell.randint(7, 13))]
    opening = tell.pick(
        f"{players[0]} and {players[1]} play the memory game {PLACES[about.where]}. "
        f"{players[0]} begins with the word {about.what}.",
        f"To pass the time {PLACES[about.where]}, {players[0]} plays the memory game with "
        f"{players[1]}. The first word is {about.what}.",
    )
    turns = [f"{players[turn % 2]}: {' '.join(words[: turn + 1])}." for turn in range(len(words))]
    end = tell.pick(
        f"{players[len(words) % 2]} has forgotten the list, so {players[1 - len(words) % 2]} wins.",
        f"That is enough, says {players[len(words) % 2]}.",
    )
    return opening, "\n".join([*turns, end])


def lists_kept(text: str) -> tuple[int, int]:
    """(right, made): the turns after the first that repeat the list before them and add a word."""
    turns = [turn.split() for turn in re.findall(r"^\w+: ([a-z ]+)\.$", text, re.MULTILINE)]
    pairs = list(pairwise(turns))
    return sum(new[:-1] == old for old, new in pairs), len(pairs)
