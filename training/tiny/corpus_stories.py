"""Short stories: a named hero, an object, a place, a problem, a friend, an ending.

A story keeps its name, colour, object and place from the first sentence to the last. About one
in twelve is long: ten or more chapters with the same cast, more than 1,000 tokens.
"""

from __future__ import annotations

from training.tiny.corpus_plots import PLOTS, Cast, gift
from training.tiny.corpus_words import (
    ANIMALS,
    COLOURS,
    OBJECTS,
    PEOPLE,
    PLACES,
    TRAITS,
    WEATHER,
    WEEK,
    Person,
    Teller,
    Triple,
    article,
)


def triple(tell: Teller) -> Triple:
    """A random (name, object, place)."""
    return Triple(tell.one(PEOPLE).name, tell.one(OBJECTS), tell.one(list(PLACES)))


def story(tell: Teller, about: Triple) -> tuple[str, str]:
    """The opening and the rest of one story about the triple."""
    hero = next(person for person in PEOPLE if person.name == about.who)
    cast = Cast(
        hero,
        tell.one(PEOPLE, but=[hero]),
        about.what,
        tell.one(COLOURS),
        about.where,
        tell.one(TRAITS),
        tell.one(ANIMALS),
    )
    chapters = tell.randint(10, 14) if tell.chance(0.08) else tell.pick(1, 1, 1, 2, 2, 3)
    plots = [tell.one(PLOTS)]
    for _ in range(chapters - 1):
        plots.insert(0, tell.one(PLOTS, but=[gift, plots[0]]))
    parts = [" ".join(plots[0](tell, cast))]
    bridge = ""
    for plot in plots[1:]:
        bridge = next_chapter(tell, cast, but=bridge)
        parts.append(" ".join([bridge, *plot(tell, cast)]))
    return opening(tell, cast), "\n\n".join([*parts[:-1], f"{parts[-1]} {ending(tell, cast)}"])


def opening(tell: Teller, c: Cast) -> str:
    h = c.hero
    return tell.pick(
        f"{h.name} was {article(c.trait)} {child(h)} who spent every day {c.at}. "
        f"{h.Subject} had {article(c.item)} that {h.subject} loved very much.",
        f"Once upon a time there was {article(c.trait)} {child(h)} called {h.name}. "
        f"{h.Subject} kept {article(c.item)} and played with it {c.at}.",
        f"One {tell.one(WEATHER)} morning {h.name} went out with {h.possessive} {c.item}. "
        f"{h.Subject} liked to be {c.at}.",
        f"Every {tell.one(WEEK)} {h.name} took {article(c.item)} and met a friend {c.at}. "
        f"The friend was called {c.friend.name}.",
        f"There was a place that {h.name} loved more than any other. It was {c.at}, and there "
        f"{h.subject} kept {h.possessive} {c.item}.",
        f"{h.name} was very proud of {h.possessive} new {c.thing}. It was {c.colour}, and "
        f"everyone {c.at} knew it.",
    )


def child(person: Person) -> str:
    return "girl" if person.subject == "she" else "boy"


def next_chapter(tell: Teller, c: Cast, but: str) -> str:
    h = c.hero
    bridges = (
        f"The next day {h.name} was {c.at} again.",
        f"A week later {h.name} and {c.friend.name} met {c.at}.",
        f"On {tell.one(WEEK)} {h.name} took the {c.item} and went out early.",
        f"Some time later, on {article(tell.one(WEATHER))} day, {h.name} came back with the "
        f"{c.item}.",
        f"Then winter came, but {h.name} still had the {c.item}.",
        f"{c.friend.name} often asked {h.name} about the {c.item} after that.",
        f"In spring {h.name} and {c.friend.name} took the {c.item} outside.",
    )
    return tell.one(bridges, but=[but])


def ending(tell: Teller, c: Cast) -> str:
    h, f = c.hero, c.friend
    return tell.pick(
        f"That night {h.name} told the whole story at home and slept well.",
        f"{h.name} and {f.name} stayed friends, and the {c.item} was always with them.",
        f"And when people ask about the {c.item}, {h.name} tells them this story.",
        f"{h.name} went home happy, and so did {f.name}.",
        f"It had been a good day {c.at} for {h.name} and {f.name}.",
        f"Since that day {h.name} has never forgotten how {f.name} helped {h.object}.",
    )
