"""What happens in a story: seven plots, each a list of sentences about one cast."""

from __future__ import annotations

from dataclasses import dataclass

from training.tiny.corpus_words import PLACES, SPOTS, WEEK, Person, Teller, article


@dataclass(frozen=True)
class Cast:
    """What stays the same through one story."""

    hero: Person
    friend: Person
    thing: str
    colour: str
    place: str
    trait: str
    animal: str

    @property
    def item(self) -> str:
        """The object with its colour: `red kite`."""
        return f"{self.colour} {self.thing}"

    @property
    def at(self) -> str:
        """The place with its preposition: `at the market`."""
        return PLACES[self.place]


def meets(tell: Teller, c: Cast) -> str:
    h, f = c.hero, c.friend
    return tell.pick(
        f"Just then {f.name} came along.",
        f"{h.name} ran to find {f.name}.",
        f"{h.Subject} asked {h.possessive} friend {f.name} for help.",
        f"{f.name} saw that {h.name} was sad and stopped.",
    )


def lost(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    first, second, found = tell.some(SPOTS, 3)
    return [
        tell.pick(
            f"That day the {c.item} was gone.",
            f"When {h.name} woke up, the {c.item} was not there.",
            f"But after lunch {h.name} could not find the {c.thing}.",
        ),
        tell.pick(f"{h.name} was worried.", f"{h.Subject} began to look for it at once."),
        f"{h.Subject} looked {first}, but it was not there.",
        f"{h.Subject} looked {second}, and found only {article(c.animal)}.",
        meets(tell, c),
        tell.pick(
            f'"What are you looking for?" asked {f.name}. "My {c.item}," said {h.name}.',
            f'"I have lost my {c.item}," said {h.name}. "I will help you," said {f.name}.',
        ),
        f"They searched together, and at last {f.name} found the {c.thing} {found}.",
        tell.pick(
            f'"Thank you, {f.name}!" said {h.name}.',
            f"{h.name} held the {c.item} and smiled.",
        ),
    ]


REPAIRS = {
    "rope": "tied it together with the rope",
    "glue": "joined the parts with the glue",
    "thread": "closed the hole with the thread",
    "wire": "fixed it with the wire",
    "nail": "put the nail where it belonged",
    "cloth": "covered the crack with the cloth",
}


def broken(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    need, work = tell.one(list(REPAIRS.items()))
    gift = tell.pick("an apple", "some bread", "a flower", "a piece of cake", "a cup of tea")
    return [
        tell.pick(
            f"One day the {c.item} fell down and broke.",
            f"The wind threw the {c.item} against a wall, and it broke.",
            f"{article(c.animal).capitalize()} ran into {h.name}, and the {c.thing} broke.",
        ),
        tell.pick(f"{h.name} wanted to repair it.", f'"I can repair it," thought {h.name}.'),
        f"For that {h.subject} needed some {need}, but {h.subject} had none.",
        f"{h.name} went to {f.name}, who had some {need} at home.",
        tell.pick(
            f'"You may have the {need}," said {f.name}. "What will you give me?"',
            f'"Take my {need}," said {f.name}, "but I am hungry."',
        ),
        f"{h.name} gave {f.name} {gift} and took the {need}.",
        f"Then {h.subject} sat down and {work}.",
        tell.pick(
            f"Soon the {c.item} was as good as new.",
            f"The {c.thing} was {c.colour} and whole again.",
        ),
    ]


def journey(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    target = tell.one(list(PLACES), but=[c.place])
    trouble, answer = tell.pick(
        ("the rain made the road wet", f"{h.subject} walked slowly and did not fall"),
        ("a tree lay across the road", f"{h.subject} climbed over it"),
        (f"{article(c.animal)} stood in the way", f"{h.subject} waited until it went home"),
        ("the path was steep", f"{h.subject} stopped to rest and then went on"),
        ("it grew dark", f"{h.subject} followed the lights of the houses"),
    )
    return [
        tell.pick(
            f"{f.name} needed the {c.item} and was waiting {PLACES[target]}.",
            f'A letter came from {f.name}. "Please bring the {c.item}. I am {PLACES[target]}."',
        ),
        f"So {h.name} left the {c.place} and walked to the {target}.",
        f"On the way {trouble}, but {answer}.",
        f"{h.Subject} held the {c.thing} in both hands.",
        tell.pick(
            f"At noon {h.name} came to the {target}, and {f.name} was there.",
            f"In the evening {h.subject} reached the {target} at last.",
        ),
        tell.pick(
            f'"You brought the {c.item}!" said {f.name}.',
            f"{f.name} took the {c.item} and thanked {h.object}.",
        ),
        f"Later they went back to the {c.place} together.",
    ]


def sharing(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    return [
        f"{f.name} came and saw the {c.item}.",
        tell.pick(
            f'"May I have it?" asked {f.name}. "No, it is mine," said {h.name}.',
            f"{f.name} wanted to hold it too, but {h.name} said no.",
        ),
        f"{f.name} was sad and sat down {tell.one(SPOTS)}.",
        tell.pick(
            f"{h.name} thought about this for a while.",
            f"{h.name} looked at {f.name} and felt sorry.",
        ),
        tell.pick(
            f'"Let us take turns," said {h.name}. "First you, then me."',
            f'"Come, {f.name}," said {h.name}. "We can share the {c.thing}."',
        ),
        f"So {f.name} had the {c.thing} in the morning and {h.name} had it in the afternoon.",
        tell.pick("Both of them were happy.", f"It was more fun to share the {c.item}."),
    ]


def learning(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    start = tell.randrange(5)
    days = WEEK[start : start + 3]
    return [
        tell.pick(
            f"{h.name} wanted to draw a picture of the {c.item}.",
            f"{h.name} wanted to make a second {c.thing}, just like the {c.colour} one.",
            f"{h.name} wanted to write a song about the {c.item}.",
        ),
        f"On {days[0]} {h.subject} tried, but it went wrong.",
        f"On {days[1]} {h.subject} tried again, and it was a little better.",
        tell.pick(
            f'"Do not give up," said {f.name}. "You learn something every day."',
            f'"Go slowly, {h.name}," said {f.name}. "Then it will work."',
        ),
        f"{h.name} listened to {f.name} and worked until the evening.",
        f"On {days[2]} it was done.",
        tell.pick(
            f"{f.name} looked at it for a long time and said that it was good.",
            f"Everyone {c.at} came to see it.",
        ),
    ]


def rescue(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    stuck = tell.pick("in the mud", "in a deep hole", "on a high roof", "behind a locked gate")
    return [
        f"Suddenly {h.name} heard a sound.",
        f"It was {article(c.animal)}, and it was stuck {stuck}.",
        tell.pick(
            f'"Wait, little {c.animal}, I will help you," said {h.name}.',
            f"{h.name} put the {c.item} down and ran to the {c.animal}.",
        ),
        f"{h.Subject} tried alone, but the {c.animal} was too heavy.",
        f"So {h.subject} called {f.name}, and together they pulled.",
        tell.pick(
            f"At last the {c.animal} was free.",
            f"One, two, three, and the {c.animal} was safe.",
        ),
        f"From then on the {c.animal} followed {h.name} and {f.name} everywhere.",
        f"At night it slept next to the {c.item}.",
    ]


def gift(tell: Teller, c: Cast) -> list[str]:
    h, f = c.hero, c.friend
    return [
        tell.pick(
            f"Soon it was the birthday of {f.name}.",
            f"{f.name} was ill and had to stay in bed.",
        ),
        f"{h.name} wanted to give {f.name} something, but {h.subject} had no money.",
        tell.pick(
            f"{h.Subject} thought of flowers, but {f.name} had flowers already.",
            f"{h.Subject} thought of cake, but the shop was closed.",
        ),
        f"Then {h.subject} looked at the {c.item}.",
        f'"I will give {f.object} my {c.thing}," said {h.name}.',
        f"{f.name} opened the parcel and saw that it was {c.colour}.",
        tell.pick(
            f'"This is the best {c.thing} in the world," said {f.name}.',
            f'"Thank you, {h.name}. We will use it together," said {f.name}.',
        ),
    ]


PLOTS = [lost, broken, journey, sharing, learning, rescue, gift]
