"""Short how-to texts: recipes and small repairs, in numbered or told steps.

Every ingredient that is fetched is used, in order, and amounts agree between list and steps.
"""

from __future__ import annotations

from training.tiny.corpus_words import (
    NUMBERS,
    PEOPLE,
    PLACES,
    Person,
    Teller,
    Triple,
    article,
    listing,
    words,
)

VEGETABLES = words("carrots onions potatoes beets turnips tomatoes mushrooms leeks")
FRUITS = words("apples pears plums cherries berries peaches")
SAVOURY = words("salt butter cheese pepper cream garlic parsley oil")
SWEET = words("sugar butter milk honey cinnamon cream vanilla nuts")
DISHES = {
    "soup": ("pot", VEGETABLES, "cook"),
    "stew": ("pot", VEGETABLES, "cook"),
    "salad": ("bowl", VEGETABLES, "mix"),
    "pie": ("pan", FRUITS, "bake"),
    "cake": ("pan", FRUITS, "bake"),
    "jam": ("pot", FRUITS, "cook"),
    "pancakes": ("pan", FRUITS, "fry"),
    "bread": ("pan", ["walnuts", "seeds", "olives", "raisins"], "bake"),
}
JOBS = {
    "fix a chair": ("chair", ["some glue", "a cloth", "a rope"], "hold it still for an hour"),
    "clean a window": ("window", ["a bucket", "a sponge", "a dry cloth"], "dry the corners"),
    "plant a tree": ("tree", ["a spade", "some water", "a stick"], "press the ground down"),
    "paint a fence": ("fence", ["a brush", "some paint", "an old coat"], "wait until it is dry"),
    "build a shelf": ("shelf", ["a saw", "two boards", "six nails"], "check that it is level"),
    "wash a dog": ("dog", ["a tub", "some soap", "a towel"], "brush it well"),
    "fold a paper boat": ("boat", ["some paper", "a ruler", "a pencil"], "pull the sides apart"),
    "light a fire": ("fire", ["dry wood", "some paper", "a match"], "watch it all the time"),
}
ORDER = ["First", "Then", "Next", "After that", "Finally"]


def triple(tell: Teller) -> Triple:
    """A random (cook, dish or job, place)."""
    return Triple(
        tell.one(PEOPLE).name, tell.one([*DISHES, *DISHES, *JOBS]), tell.one(list(PLACES))
    )


def howto(tell: Teller, about: Triple) -> tuple[str, str]:
    """The opening and the rest of one how-to about the triple."""
    who = next(person for person in PEOPLE if person.name == about.who)
    if about.what in DISHES:
        return recipe(tell, who, about.what, PLACES[about.where])
    return job(tell, who, about.what, PLACES[about.where])


def recipe(tell: Teller, who: Person, dish: str, at: str) -> tuple[str, str]:
    vessel, produce, verb = DISHES[dish]
    main, second = tell.some(produce, 2)
    extra, last = tell.some(SWEET if produce is FRUITS else SAVOURY, 2)
    many, few = tell.randint(3, 9), tell.randint(2, 5)
    minutes = 5 * tell.randint(1, 8)
    guests = tell.randint(2, 8)
    name = f"{main[:-1] if main.endswith('s') else main} {dish}"
    name = name.replace("potatoe ", "potato ").replace("tomatoe ", "tomato ")
    name = name.replace("cherrie ", "cherry ").replace("berrie ", "berry ")
    name = name.replace("peache ", "peach ")
    opening = tell.pick(
        f"This is how {who.name} makes {name} {at}. It is enough for {NUMBERS[guests]} people.",
        f"{who.name} wants to make {name} for {NUMBERS[guests]} friends {at}.",
        f"When {who.name} has guests {at}, {who.subject} makes {name}.",
        f"How to make {name}, the way {who.name} makes it {at}.",
    )
    needs = listing([f"{NUMBERS[many]} {main}", f"{NUMBERS[few]} {second}", f"some {extra}"])
    heat = {
        "cook": f"cook everything for {minutes} minutes",
        "bake": f"bake it for {minutes} minutes",
        "fry": f"fry them for {minutes} minutes",
        "mix": f"mix everything and wait for {minutes} minutes",
    }[verb]
    steps = [
        tell.pick(
            f"wash the {NUMBERS[many]} {main}", f"cut the {NUMBERS[many]} {main} into pieces"
        ),
        tell.pick(f"put the {main} into a {vessel}", f"take a {vessel} and put in the {main}"),
        tell.pick(f"add the {NUMBERS[few]} {second} and the {extra}", f"add the {second} and stir"),
        heat,
        tell.pick(f"add a little {last} at the end", f"put some {last} on top"),
    ]
    close = tell.pick(
        f"Now the {name} is ready, and {who.name} calls the {NUMBERS[guests]} guests.",
        f"{who.name} says that {name} tastes best when it is warm.",
        f"If there is no {extra}, {who.name} takes {last} instead.",
        f"The {vessel} is hot, so {who.name} takes care.",
    )
    need = tell.pick(
        f"You need {needs}.", f"For this {who.subject} needs {needs}.", f"Take {needs}."
    )
    told = tell.chance(0.5)
    return opening, f"{need}\n{written(tell, who, steps, told)}\n{close} {advice(tell, who, at)}"


def job(tell: Teller, who: Person, task: str, at: str) -> tuple[str, str]:
    thing, tools, care = JOBS[task]
    minutes = 10 * tell.randint(1, 6)
    tools = tell.some(tools, 3)
    opening = tell.pick(
        f"{who.name} wants to {task} {at}. It takes about {minutes} minutes.",
        f"Today {who.name} shows us how to {task} {at}.",
        f"How to {task} {at}, as {who.name} does it.",
    )
    bare = [
        tool.split(" ", 1)[1] if tool.split()[0] in {"a", "an", "some"} else tool for tool in tools
    ]
    steps = [
        tell.pick(f"look at the {thing} from all sides", f"find a good place for the {thing}"),
        f"take the {bare[0]} and begin slowly",
        f"use the {bare[1]}, but not too much",
        care,
        f"put the {bare[2]} away and look at the {thing} again",
    ]
    close = tell.pick(
        f"If the {thing} does not look right, {who.name} starts again.",
        f"After {minutes} minutes the {thing} is done.",
        f"{who.name} is proud of the {thing}.",
    )
    need = tell.pick(f"You need {listing(tools)}.", f"{who.name} brings {listing(tools)}.")
    told = tell.chance(0.5)
    return opening, f"{need}\n{written(tell, who, steps, told)}\n{close} {advice(tell, who, at)}"


def written(tell: Teller, who: Person, steps: list[str], told: bool) -> str:
    """The steps as a paragraph or as a numbered list."""
    if told:
        return " ".join(f"{word}, {step}." for word, step in zip(ORDER, steps, strict=True))
    return "\n".join(f"{i}. {step.capitalize()}." for i, step in enumerate(steps, start=1))


def advice(tell: Teller, who: Person, at: str) -> str:
    helper = tell.one(PEOPLE, but=[who])
    return tell.pick(
        f"{helper.name} can help, because two people are faster than one.",
        f'"{article(tell.pick("good", "useful", "simple")).capitalize()} plan is half the work," '
        f"says {who.name}.",
        f"Once {helper.name} forgot a step {at}, and {who.name} laughed.",
        f"Next time {helper.name} will do it, and {who.name} will watch.",
        f"Do not hurry, and keep everything clean {at}.",
    )
