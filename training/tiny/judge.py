"""Simple automatic judgements of a text, against the prompt it continues and the generator's words.

They catch what a reader would: a name or an object that is forgotten, a colour that changes, a
person who meets himself, words that do not exist, phrases no sentence of the corpus has, a text
that runs in circles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice

from training.tiny.corpus import Document, documents
from training.tiny.corpus_facts import answers_from_scene
from training.tiny.corpus_memory import lists_kept
from training.tiny.corpus_words import ANIMALS, COLOURS, NUMBERS, OBJECTS, PEOPLE, PLACES

KINDS = {
    **{person.name: "NAME" for person in PEOPLE},
    **dict.fromkeys(OBJECTS, "OBJECT"),
    **dict.fromkeys(COLOURS, "COLOUR"),
    **dict.fromkeys(PLACES, "PLACE"),
    **dict.fromkeys(ANIMALS, "ANIMAL"),
    **dict.fromkeys(NUMBERS, "NUMBER"),
}
FACTS = ("facts", "quiz")
MOST_NAMES = 4
LEAST_KNOWN_PHRASES = 0.97
LEAST_DISTINCT = 0.5
LEAST_RIGHT = 0.75
MOST_REPEATS = 3


@dataclass(frozen=True)
class Judgement:
    """What was found in one continuation. `passed` needs every rule to hold."""

    domain: str
    name_recurs: bool
    topic_recurs: bool
    colour_kept: bool
    few_names: bool
    nobody_twice: bool
    unknown_words: tuple[str, ...]
    known_phrases: float
    distinct_4_grams: float
    no_loop: bool
    facts_right: int
    facts_asked: int
    lists_right: int
    lists_made: int

    @property
    def on_subject(self) -> bool:
        """True if the text is still about what the prompt is about, as its domain shows it."""
        if self.domain == "stories":
            return self.name_recurs and self.topic_recurs
        if self.domain == "serving":
            return self.topic_recurs
        if self.domain in FACTS:
            return self.facts_right >= LEAST_RIGHT * self.facts_asked
        if self.domain == "memory":
            return self.lists_made > 0 and self.lists_right >= LEAST_RIGHT * self.lists_made
        return self.name_recurs or self.topic_recurs

    @property
    def passed(self) -> bool:
        """True if a reader would call the text readable and consistent."""
        return (
            self.on_subject
            and self.colour_kept
            and self.few_names
            and self.nobody_twice
            and not self.unknown_words
            and self.known_phrases >= LEAST_KNOWN_PHRASES
            and self.no_loop
        )


def tokens_of(text: str) -> list[str]:
    """Words and punctuation marks; numbers in digits become `#`."""
    return ["#" if word.isdigit() else word for word in re.findall(r"[\w-]+|[.,?!:\"]|\n", text)]


def trigrams(text: str) -> Iterable[tuple[str, ...]]:
    """Three neighbours at a time, with names, objects, colours and so on as their kinds."""
    kinds = [KINDS.get(word, word) for word in tokens_of(text)]
    return zip(kinds, kinds[1:], kinds[2:], strict=False)


@cache
def lexicon(seed: int, count: int = 4000) -> tuple[frozenset[str], frozenset[tuple[str, ...]]]:
    """All words and all trigrams of kinds in the first training documents."""
    known_words: set[str] = set(KINDS)
    known_trigrams: set[tuple[str, ...]] = set()
    for document in islice(documents("train", seed), count):
        known_words.update(tokens_of(document.text))
        known_trigrams.update(trigrams(document.text))
    return frozenset(known_words), frozenset(known_trigrams)


def judge(document: Document, continuation: str, corpus_seed: int = 0) -> Judgement:
    """Judge a text that continues `document.opening`. An unfinished last word is left out."""
    complete = (
        continuation if continuation.endswith((".", '"')) else continuation.rpartition(" ")[0]
    )
    words = tokens_of(complete)
    known_words, known_trigrams = lexicon(corpus_seed)
    about = document.triple
    phrases = list(trigrams(complete))
    four = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    sentences = Counter(re.split(r"(?<=[.?!])\s+", complete.strip()))
    topic = re.split(r"[ -]", about.what)[-1].removesuffix("s")
    colours = set(re.findall(rf"\b({'|'.join(COLOURS)}) {topic}\b", document.opening))
    colours |= set(re.findall(rf"{topic}\. It was ({'|'.join(COLOURS)})", document.opening))
    later = set(re.findall(rf"\b({'|'.join(COLOURS)}) {topic}\b", complete))
    right, asked = (
        answers_from_scene(document.opening, complete) if document.domain in FACTS else (0, 0)
    )
    kept, made = lists_kept(complete) if document.domain == "memory" else (0, 0)
    return Judgement(
        domain=document.domain,
        name_recurs=about.who in words,
        topic_recurs=topic in complete.lower(),
        colour_kept=later <= colours,
        few_names=len({w for w in words if KINDS.get(w) == "NAME"}) <= MOST_NAMES,
        nobody_twice=not any(f"{person.name} and {person.name}" in complete for person in PEOPLE),
        unknown_words=tuple(sorted(set(words) - known_words)),
        known_phrases=round(sum(p in known_trigrams for p in phrases) / max(1, len(phrases)), 4),
        distinct_4_grams=round(len(set(four)) / max(1, len(four)), 4),
        no_loop=document.domain == "memory"
        or (
            len(set(four)) >= LEAST_DISTINCT * len(four) and max(sentences.values()) <= MOST_REPEATS
        ),
        facts_right=right,
        facts_asked=asked,
        lists_right=kept,
        lists_made=made,
    )
