"""The training text: an endless, seeded stream of documents in five domains.

Document `i` of a domain and split is the same on every machine: it depends on the seed, the
domain, the split and `i`, and on nothing else. No file is read and nothing is downloaded.

    python training/tiny/corpus.py stories --split held-out --count 3
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.tiny import corpus_facts, corpus_howto, corpus_memory, corpus_serving, corpus_stories
from training.tiny.corpus_words import Teller, Triple, held_out

SPLITS = ("train", "held-out")
DOMAINS: dict[str, tuple[Callable[[Teller], Triple], Callable[[Teller, Triple], tuple[str, str]]]]
DOMAINS = {
    "stories": (corpus_stories.triple, corpus_stories.story),
    "howto": (corpus_howto.triple, corpus_howto.howto),
    "facts": (corpus_facts.triple, corpus_facts.facts),
    "serving": (corpus_serving.triple, corpus_serving.serving),
    "quiz": (corpus_facts.triple, corpus_facts.quiz),
    "memory": (corpus_memory.triple, corpus_memory.game),
}
MIXTURE = {"stories": 3, "howto": 3, "facts": 3, "serving": 2, "memory": 2}
LAST_MIXTURE = {"stories": 3, "howto": 3, "quiz": 3, "serving": 2, "memory": 2}


@dataclass(frozen=True)
class Document:
    """One text. `opening` names the whole triple and serves as a prompt; `rest` follows it."""

    domain: str
    triple: Triple
    opening: str
    rest: str

    @property
    def text(self) -> str:
        """The whole document."""
        return f"{self.opening}{self.separator}{self.rest}"

    @property
    def separator(self) -> str:
        """What stands between the opening and the rest: stories run on, others start a line."""
        return " " if self.domain == "stories" else "\n"


def document(domain: str, index: int, split: str, seed: int) -> Document:
    """Document number `index` of a domain; its triple belongs to the split."""
    tell = Teller(f"{seed}/{domain}/{split}/{index}")
    draw, write = DOMAINS[domain]
    about = draw(tell)
    while held_out(about) != (split == "held-out"):
        about = draw(tell)
    return Document(domain, about, *write(tell, about))


def documents(
    split: str, seed: int, start: int = 0, mixture: Mapping[str, int] = MIXTURE
) -> Iterator[Document]:
    """The endless stream of a split from document `start` on, domains drawn by their weights."""
    names = [name for name, weight in mixture.items() for _ in range(weight)]
    for index in itertools.count(start):
        domain = Teller(f"{seed}/order/{split}/{index}").one(names)
        yield document(domain, index, split, seed)


def main() -> None:
    """Print documents, to be read by a person."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("domain", choices=[*DOMAINS])
    parser.add_argument("--split", choices=SPLITS, default="train")
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for index in range(arguments.count):
        print(document(arguments.domain, index, arguments.split, arguments.seed).text, end="\n\n\n")


if __name__ == "__main__":
    main()
