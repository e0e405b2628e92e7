"""The corpus: the same everywhere, held-out combinations unseen, the judge worth trusting."""

from itertools import islice

import pytest

from training.tiny.corpus import DOMAINS, document, documents
from training.tiny.corpus_facts import answers_from_scene
from training.tiny.corpus_memory import lists_kept
from training.tiny.corpus_words import COLOURS, OBJECTS, PEOPLE, PLACES, Triple, held_out
from training.tiny.judge import judge

SAMPLE = 2000


@pytest.fixture(scope="module")
def train():
    return list(islice(documents("train", 0), SAMPLE))


@pytest.fixture(scope="module")
def unseen():
    return [document(name, i, "held-out", 2) for name in DOMAINS for i in range(SAMPLE // 8)]


def test_a_document_depends_on_seed_split_domain_and_index_only():
    again = list(islice(documents("train", 0), 50))
    assert again == list(islice(documents("train", 0), 50))
    assert list(islice(documents("train", 0, start=20), 30)) == again[20:]
    assert document("stories", 3, "train", 0) != document("stories", 3, "train", 1)


def test_no_held_out_triple_occurs_in_training(train, unseen):
    assert not any(held_out(d.triple) for d in train)
    assert all(held_out(d.triple) for d in unseen)
    assert {d.triple for d in train}.isdisjoint(d.triple for d in unseen)


def test_no_held_out_opening_occurs_in_training(train, unseen):
    assert {d.opening for d in train}.isdisjoint(d.opening for d in unseen)


def test_every_opening_names_its_triple(train, unseen):
    for d in [*train, *unseen]:
        assert d.triple.who in d.opening
        assert PLACES.get(d.triple.where, d.triple.where) in d.opening
        assert d.triple.what.split()[-1] in d.opening


def test_about_one_triple_in_sixteen_is_held_out():
    triples = [Triple(p.name, o, at) for p in PEOPLE for o in OBJECTS for at in PLACES]
    assert 0.055 < sum(map(held_out, triples)) / len(triples) < 0.07


def test_documents_do_not_repeat(train):
    assert len({d.text for d in train}) == len(train)


def test_some_documents_are_longer_than_a_thousand_tokens(train):
    words = [len(d.text.split()) for d in train]
    assert sum(count for count in words if count > 800) > 0.1 * sum(words)


def test_judge_passes_what_the_generator_writes(unseen):
    beginnings = [(d, " ".join(d.rest.split(" ")[:90])) for d in unseen]
    passed = sum(judge(d, text).passed for d, text in beginnings)
    assert passed >= 0.98 * len(beginnings)


@pytest.mark.parametrize("domain", DOMAINS)
def test_judge_refuses_loops_shuffles_and_the_wrong_document(domain):
    d = document(domain, 0, "held-out", 2)
    sentence = d.rest.split(".")[0] + ". "
    words = d.rest.split(" ")
    assert not judge(d, sentence * 12).passed
    assert not judge(d, " ".join(sorted(words))).passed
    assert not judge(d, d.rest.replace("the", "thx")).passed


def test_lists_of_the_memory_game_are_checked():
    assert lists_kept("Mia: cup.\nTom: cup owl.\nMia: cup owl red.\nTom: cup red owl key.") == (
        2,
        3,
    )
    d = document("memory", 0, "held-out", 2)
    right, made = lists_kept(d.rest)
    assert right == made >= 7


def test_judge_refuses_a_changed_colour_and_a_forgotten_name():
    d = document("stories", 0, "held-out", 2)
    colour = next(c for c in COLOURS if f"{c} {d.triple.what}" in d.text)
    other = next(c for c in COLOURS if c != colour)
    someone = next(p.name for p in PEOPLE if p.name not in d.text)
    assert not judge(d, d.rest.replace(colour, other)).colour_kept
    assert not judge(d, d.rest.replace(d.triple.who, someone)).on_subject


def test_answers_are_checked_against_the_scene():
    scene = "Mia is at the lake and has a red cup and a blue key. Tom is at the mill and has a map."
    good = "Question: Where is Mia?\nAnswer: Mia is at the lake.\n"
    bad = "Question: What colour is the cup?\nAnswer: The cup is blue.\n"
    assert answers_from_scene(scene, good + bad) == (1, 2)
    assert answers_from_scene(scene, "Question: Who has the hat?\nAnswer: Tom has the hat.") == (
        0,
        1,
    )
