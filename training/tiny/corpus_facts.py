"""Questions and answers: about a small scene, and about facts the generator computes.

The scene comes first, so its answers can only be found by looking back at it. `answers_from_scene`
reads a text of this form again and checks the answers; evaluation uses it on the model's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from training.tiny.corpus_words import (
    COLOURS,
    NUMBERS,
    OBJECTS,
    PEOPLE,
    PLACES,
    WEEK,
    Person,
    Teller,
    Triple,
    article,
    listing,
    words,
)

OPPOSITES = {
    "hot": "cold",
    "big": "small",
    "day": "night",
    "up": "down",
    "fast": "slow",
    "old": "new",
    "wet": "dry",
    "open": "closed",
    "full": "empty",
    "early": "late",
    "high": "low",
    "light": "dark",
    "long": "short",
    "loud": "quiet",
}
COLOUR_OF = {
    "snow": "white",
    "grass": "green",
    "the sky": "blue",
    "coal": "black",
    "a lemon": "yellow",
    "blood": "red",
    "earth": "brown",
    "the moon": "silver",
}
LEGS = {"cat": 4, "dog": 4, "duck": 2, "hen": 2, "spider": 8, "ant": 6, "horse": 4, "fish": 0}
MONTHS = words(
    "January February March April May June July August September October November December"
)


def triple(tell: Teller) -> Triple:
    """A random (name, object, place)."""
    return Triple(tell.one(PEOPLE).name, tell.one(OBJECTS), tell.one(list(PLACES)))


def facts(tell: Teller, about: Triple) -> tuple[str, str]:
    """A scene about the triple, and questions with answers in random order."""
    return questions(tell, about, in_order=False)


def quiz(tell: Teller, about: Triple) -> tuple[str, str]:
    """A scene about the triple, and the questions about it in one fixed order."""
    return questions(tell, about, in_order=True)


def questions(tell: Teller, about: Triple, in_order: bool) -> tuple[str, str]:
    """The scene, and its questions and answers."""
    who = next(person for person in PEOPLE if person.name == about.who)
    other = tell.one(PEOPLE, but=[who])
    things = [about.what, *tell.some([o for o in OBJECTS if o != about.what], 3)]
    colours = tell.some(COLOURS, 4)
    place, elsewhere = PLACES[about.where], PLACES[tell.one(list(PLACES), but=[about.where])]
    mine = listing([article(f"{c} {t}") for c, t in zip(colours[:2], things[:2], strict=True)])
    theirs = listing([article(f"{c} {t}") for c, t in zip(colours[2:], things[2:], strict=True)])
    opening = f"{who.name} is {place} and has {mine}. {other.name} is {elsewhere} and has {theirs}."
    owners = [who, who, other, other]
    asked: list[tuple[str, str]] = []
    for thing, colour, owner in zip(things, colours, owners, strict=True):
        asked.append((f"What colour is the {thing}?", f"The {thing} is {colour}."))
        asked.append((f"Who has the {thing}?", f"{owner.name} has the {thing}."))
        asked.append(
            (f"Who has something {colour}?", f"{owner.name} has {article(colour)} {thing}.")
        )
    for person, at in ((who, place), (other, elsewhere)):
        asked.append((f"Where is {person.name}?", f"{person.name} is {at}."))
    for person, held in ((who, mine), (other, theirs)):
        asked.append((f"What does {person.name} have?", f"{person.name} has {held}."))
    if in_order:
        general = tell.some(GENERAL, 3)
        order = [0, 1, 3, 12, None, 7, 6, 13, None, 14, 9, 10, 15, None]
        pairs = [asked[i] if i is not None else general.pop()(tell, who) for i in order]
        return opening, written(pairs)
    count = tell.randint(45, 70) if tell.chance(0.08) else tell.randint(6, 10)
    pairs = []
    for _ in range(count):
        pairs.append(tell.one(asked) if tell.chance(0.65) else tell.one(GENERAL)(tell, who))
    if count <= 10:
        pairs = list(dict.fromkeys(pairs))
    return opening, written(pairs)


def written(pairs: list[tuple[str, str]]) -> str:
    """Questions and answers, each on its line."""
    return "\n".join(f"Question: {q}\nAnswer: {a}" for q, a in pairs)


def adding(tell: Teller, who: Person) -> tuple[str, str]:
    a, b = tell.randint(0, 10), tell.randint(0, 10)
    sums = f"{NUMBERS[a]} plus {NUMBERS[b]}"
    return f"What is {sums}?", f"{sums.capitalize()} is {NUMBERS[a + b]}."


def counting(tell: Teller, who: Person) -> tuple[str, str]:
    a, b = tell.randint(2, 10), tell.randint(1, 6)
    a, b = max(a, b), min(a, b)
    thing = tell.pick("apples", "eggs", "coins", "nuts", "stones")
    question = (
        f"{who.name} has {NUMBERS[a]} {thing} and gives {NUMBERS[b]} away. How many are left?"
    )
    return question, f"{NUMBERS[a].capitalize()} minus {NUMBERS[b]} is {NUMBERS[a - b]}."


def comparing(tell: Teller, who: Person) -> tuple[str, str]:
    a, b = tell.some(range(21), 2)
    return (
        f"Which is more, {NUMBERS[a]} or {NUMBERS[b]}?",
        f"{NUMBERS[max(a, b)].capitalize()} is more than {NUMBERS[min(a, b)]}.",
    )


def following(tell: Teller, who: Person) -> tuple[str, str]:
    cycle, noun = tell.pick((WEEK, "day"), (MONTHS, "month"))
    i = tell.randrange(len(cycle))
    if tell.chance(0.5):
        return (
            f"Which {noun} comes after {cycle[i]}?",
            f"After {cycle[i]} comes {cycle[(i + 1) % len(cycle)]}.",
        )
    return (
        f"Which {noun} comes before {cycle[i]}?",
        f"Before {cycle[i]} comes {cycle[i - 1]}.",
    )


def opposite(tell: Teller, who: Person) -> tuple[str, str]:
    pair = list(tell.one(list(OPPOSITES.items())))
    tell.shuffle(pair)
    return f"What is the opposite of {pair[0]}?", f"The opposite of {pair[0]} is {pair[1]}."


def colour_of(tell: Teller, who: Person) -> tuple[str, str]:
    thing, colour = tell.one(list(COLOUR_OF.items()))
    return f"What colour is {thing}?", f"{thing.capitalize()} is {colour}."


def legs(tell: Teller, who: Person) -> tuple[str, str]:
    animal, count = tell.one(list(LEGS.items()))
    name = article(animal)
    return f"How many legs does {name} have?", f"{name.capitalize()} has {NUMBERS[count]} legs."


GENERAL: list[Callable[[Teller, Person], tuple[str, str]]] = [
    adding,
    counting,
    comparing,
    following,
    opposite,
    colour_of,
    legs,
]


def answers_from_scene(scene: str, text: str) -> tuple[int, int]:
    """(right, asked): the complete scene questions in `text` whose answers agree with `scene`.

    Only questions about colour, owner and place of things in the scene count; a question about a
    thing that is not there is a wrong one.
    """
    colour, owner, place = {}, {}, {}
    for name, at, held in re.findall(r"(\w+) is ([a-z ]+?) and has ([a-z ]+)\.", scene):
        place[name] = at
        for c, thing in re.findall(r"an? (\w+) (\w+)", held):
            colour[thing], owner[thing] = c, name
    right = asked = 0
    rules: list[tuple[str, Callable[[str], str]]] = [
        (
            r"What colour is the ((?!sky|moon)\w+)\?\nAnswer: (.*\.)",
            lambda t: f"The {t} is {colour.get(t)}.",
        ),
        (r"Who has the (\w+)\?\nAnswer: (.*\.)", lambda t: f"{owner.get(t)} has the {t}."),
        (r"Where is (\w+)\?\nAnswer: (.*\.)", lambda n: f"{n} is {place.get(n)}."),
    ]
    for pattern, expected in rules:
        for subject, answer in re.findall(pattern, text):
            asked += 1
            right += answer == expected(subject)
    return right, asked
