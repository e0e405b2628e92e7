"""Short explanations of the terms of model serving, with small computed examples."""

from __future__ import annotations

from training.tiny.corpus_serving_terms import TERMS, Term
from training.tiny.corpus_words import NUMBERS, PEOPLE, Person, Teller, Triple, article, listing

MACHINES = {
    "laptop": 2,
    "old laptop": 2,
    "server": 4,
    "large server": 8,
    "small server": 2,
    "cluster": 16,
    "lab machine": 4,
    "school machine": 3,
    "cloud machine": 8,
    "work station": 4,
    "test machine": 3,
    "rented machine": 6,
}


def triple(tell: Teller) -> Triple:
    """A random (person, term, machine)."""
    return Triple(tell.one(PEOPLE).name, tell.one(list(TERMS)), tell.one(list(MACHINES)))


def serving(tell: Teller, about: Triple) -> tuple[str, str]:
    """The opening and the rest of one explanation of the term."""
    who = next(person for person in PEOPLE if person.name == about.who)
    other = tell.one(PEOPLE, but=[who])
    ranks, term = MACHINES[about.where], TERMS[about.what]
    machine = article(about.where)
    opening = tell.pick(
        f"{who.name} asks what {about.what} is. {who.Subject} has {machine} with "
        f"{NUMBERS[ranks]} ranks.",
        f"{who.name} runs a model with {NUMBERS[ranks]} ranks on {machine} and reads about "
        f"{about.what}.",
        f"On the {about.where} of {who.name} there are {NUMBERS[ranks]} ranks. Today {who.subject} "
        f"wants to understand {about.what}.",
        f"{who.name} must explain {about.what} to {other.name}, who works with {machine}. "
        f"It has {NUMBERS[ranks]} ranks.",
    )
    count = tell.randint(12, 18) if tell.chance(0.08) else tell.randint(1, 2)
    others = tell.some([name for name in TERMS if name != about.what], count)
    parts = [explanation(tell, who, other, about.what, term), example(tell, who, ranks)]
    for name in others:
        parts.append(
            tell.pick(
                f"Then {other.name} asks about {name}. ",
                f"After that {who.name} reads about {name}. ",
                f"{who.name} compares this with {name}. ",
            )
            + explanation(tell, who, other, name, TERMS[name])
        )
        if tell.chance(0.5):
            parts.append(example(tell, who, ranks))
    parts.append(
        tell.pick(
            f"Now {who.name} knows what {about.what} is, and tries it on the {about.where}.",
            f"So much about {about.what}, says {who.name}, and turns to the {about.where} again.",
            f"{other.name} thanks {who.name} and writes down what {about.what} is.",
        )
    )
    return opening, "\n".join(parts)


def explanation(tell: Teller, who: Person, other: Person, name: str, term: Term) -> str:
    meaning, reason, price = tell.one(term.meaning), tell.one(term.reason), tell.one(term.price)
    body = [
        meaning,
        tell.pick("", "Why is it there? ", "What is it for? ") + reason,
        tell.pick("", "It has its price. ", "But there is a limit. ") + price,
    ]
    if tell.chance(0.4):
        body.insert(1, " ".join(m for m in term.meaning if m != meaning))
    if tell.chance(0.6):
        body.insert(tell.randint(1, 2), term.picture)
    if tell.chance(0.35):
        body.append(
            tell.pick(
                f'"I see," says {other.name}.',
                f"{other.name} nods.",
                f'"That is a good way to say it," says {other.name}.',
            )
        )
    return " ".join(body)


def example(tell: Teller, who: Person, ranks: int) -> str:
    """A computed example with the ranks of this machine."""
    count = NUMBERS[ranks]
    each = tell.randint(1, 5)
    heads, layers = ranks * each, ranks * tell.randint(1, 5)
    values = [tell.randint(1, 5) for _ in range(min(ranks, 4))]
    return tell.pick(
        f"{who.name} has {count} ranks, so with {heads} heads each rank has {heads // ranks}.",
        f"For example, {layers} layers over {count} ranks are {layers // ranks} for each rank.",
        f"With {count} ranks and {heads} experts each rank keeps {heads // ranks}.",
        f"If {NUMBERS[len(values)]} ranks bring {listing([str(v) for v in values])}, the sum is "
        f"{sum(values)}.",
        f"The {count} ranks have the numbers zero to {NUMBERS[ranks - 1]}.",
        f"A prompt of {each * 10} words fills {each * 10} places in the cache of {who.name}.",
    )
