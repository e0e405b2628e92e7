"""Lesson 00: what ranks and collectives are, and the map of the course."""

from __future__ import annotations

from course.labels import quantity
from course.lessons import overview
from course.lessons.content import (
    Guide,
    Lesson,
    Option,
    Pitfall,
    Question,
    Quiz,
    Reference,
)
from course.lessons.figures import modelled_bytes
from labkit.plan.collectives import ring_wire_bytes

_PAYLOAD = 2**20
_RANKS = 4
_wire = ring_wire_bytes(_PAYLOAD, _RANKS)

_BROUGHT = (1, 2, 3)
_PARTS = ((2, 4), (6,))
"""Numbers of rank 0 and of rank 1, for the mean of uneven parts."""
_all = [number for part in _PARTS for number in part]
_mean = sum(_all) / len(_all)
_part_means = [sum(part) / len(part) for part in _PARTS]
_mean_of_means = sum(_part_means) / len(_part_means)
_sum_of_means = sum(_part_means)

_PITFALLS = (
    Pitfall(
        "A collective inside an `if`",
        symptom="The job stands still. Nothing is printed, no rank has an error.",
        cause="Some ranks enter an all-reduce that another rank never calls. A collective ends "
        "only when all ranks of its group are in it.",
        remedy="Let every rank call it, also a rank with nothing to add: it brings zeros.",
    ),
    Pitfall(
        "Two collectives in another order",
        symptom="Wrong numbers, a mismatch error, or a standstill, depending on the backend.",
        cause="Ranks are matched by the order of their calls, not by what the calls are for.",
        remedy="The same calls, in the same order, with the same shapes and dtypes, on all ranks.",
    ),
    Pitfall(
        "`y = comm.all_reduce(x)` and then using the old `x`",
        symptom="`x` no longer holds what this rank computed.",
        cause="An all-reduce works in place: the tensor that you pass in becomes the sum.",
        remedy="Clone the tensor first where you still need this rank's own part.",
    ),
    Pitfall(
        "The mean of the ranks' means",
        symptom="A loss or an accuracy is off by a little, and only on some data.",
        cause="Ranks hold different numbers of items, and a mean of means gives each rank the "
        "same weight.",
        remedy="All-reduce the sum and the count, then divide once.",
    ),
    Pitfall(
        "Blaming the rank that complains",
        symptom="The log shows a time-out on one rank, and you search there.",
        cause="The rank that waits is healthy. The cause is the one that failed or stayed away.",
        remedy="Ask where every rank stood. The messages of `RankPool` name the one to blame.",
    ),
    Pitfall(
        "Timing a collective once",
        symptom="A figure that is ten times as large the next time.",
        cause="The first calls open connections, and a rank that arrives late makes all wait.",
        remedy="Warm up, start from a barrier, repeat, and say which of the repeats you report.",
    ),
)

_QUESTIONS = (
    Question(
        "What is a rank, and how does it differ from a GPU?",
        "A rank is a process with a number in a group. Usually it drives one GPU; on this page it "
        "drives one CPU thread. All ranks run the same function and differ only by their number.",
    ),
    Question(
        "Why does an all-reduce leave the same value on every rank?",
        "Because every rank goes on with the same computation afterwards. If only one rank had "
        "the sum, the others would have to wait for a second message.",
    ),
    Question(
        f"In a ring of {_RANKS} ranks, how much does one rank send for an all-reduce of "
        f"{quantity(_PAYLOAD, 'B', short=True)}?",
        f"{modelled_bytes(_wire)}. A ring moves `2(n-1)/n` of the payload on each rank: nearly "
        "twice the payload, however many ranks there are. What grows with the ranks is the number "
        "of hops, and so the latency.",
    ),
    Question(
        "A job over many ranks hangs. What do you want to know first?",
        "Which rank is not in the collective that the others are in, and where it is instead. The "
        "ranks that wait all show the same line and tell you nothing more.",
    ),
    Question(
        "Why does this course run several processes on a laptop, where that is slower?",
        "Because correctness, counts and bytes are the same as on a cluster, and you can see them. "
        "Times are not the same: they are labelled as measured on this machine.",
    ),
    Question(
        "What does the label modelled ask of you?",
        "To look at the formula and at its constants. A modelled figure repeats exactly, which "
        "says nothing about whether the model is right; a measured one next to it does.",
    ),
)

_QUIZZES = (
    Quiz(
        "sum-on-all",
        f"Three ranks bring {_BROUGHT[0]}, {_BROUGHT[1]} and {_BROUGHT[2]} to an all-reduce. What "
        "does rank 1 hold afterwards?",
        (
            Option(
                f"{sum(_BROUGHT)}, as every rank does",
                "The sum of what all ranks brought, and each of them gets it.",
                is_right=True,
            ),
            Option(
                f"Its own {_BROUGHT[1]}; only rank 0 gets the sum",
                "That would be a reduce to one rank. In an all-reduce no rank is special.",
            ),
            Option(
                "All three numbers, side by side",
                "That is an all-gather: it joins the parts and adds nothing up.",
            ),
        ),
    ),
    Quiz(
        "who-is-to-blame",
        "Ranks 0 and 2 wait in an all-reduce. Rank 1 has returned from its function. Which rank "
        "is to blame for the standstill?",
        (
            Option(
                "Rank 0, because it came first",
                "The first to wait is the first to show a time-out, which is why it gets blamed. "
                "It did what it should.",
            ),
            Option(
                "Rank 1, though it raised no error",
                "It left without the collective, and nobody else can end the wait.",
                is_right=True,
            ),
            Option(
                "Rank 2, because it waits too",
                "Waiting is the symptom. Every healthy rank shows it.",
            ),
        ),
    ),
    Quiz(
        "small-messages",
        "Each rank brings a thousand bytes to an all-reduce. You make it ten times as much. About "
        "how much longer does it take?",
        (
            Option(
                "Ten times as long",
                "That holds for large payloads, where bytes are what takes the time. A small one "
                "waits for the meeting itself.",
            ),
            Option(
                "Hardly longer",
                "A small all-reduce costs latency. The curve of this page starts flat.",
                is_right=True,
            ),
            Option(
                "Less long",
                "Larger messages use a link better for each byte, yet none gets faster by growing.",
            ),
        ),
    ),
    Quiz(
        "uneven-mean",
        f"Rank 0 holds the numbers {' and '.join(map(str, _PARTS[0]))}, rank 1 holds "
        f"{_PARTS[1][0]}. What is the mean of all of them, and how do the ranks get it?",
        (
            Option(
                f"{_mean_of_means:g}: the mean of both means",
                "It gives rank 1's single number the weight of rank 0's two.",
            ),
            Option(
                f"{_mean:g}: all-reduce sums and counts, then divide",
                "Each number counts once, whichever rank holds it.",
                is_right=True,
            ),
            Option(
                f"{_sum_of_means:g}: all-reduce the means",
                "An all-reduce adds: what you get is the sum of the means.",
            ),
        ),
    ),
    Quiz(
        "label-of-a-prediction",
        "You compute how long an all-reduce takes from a link's data sheet and a formula. Which "
        "label does the result carry?",
        (
            Option(
                "captured, because the data sheet was written elsewhere",
                "The link's speed may be captured. What you computed from it was never observed "
                "anywhere.",
            ),
            Option(
                "measured, because it has a unit of time",
                "A label says where a figure comes from, not what it counts. Nobody ran this.",
            ),
            Option(
                "modelled, because a formula made it",
                "As good as the formula and its constants, and no better.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "first-lever",
        "A model fits on one GPU, and you want more answers per second for many users. Which "
        "lever do you pull first?",
        (
            Option(
                "Tensor parallelism",
                "It makes one request faster, and pays two all-reduces a layer for it. Many users "
                "are better served by copies of the model.",
            ),
            Option(
                "FSDP, because it needs the least memory",
                "It gathers whole layers in every pass: bearable behind a training batch, not in "
                "a decode step.",
            ),
            Option(
                "Continuous batching on one GPU, then more copies",
                "One read of the weights serves the whole batch, and nothing is sent.",
                is_right=True,
            ),
        ),
    ),
)

_REFERENCES = (
    Reference(
        "Distributed communication package: torch.distributed",
        "PyTorch contributors",
        2026,
        "https://docs.pytorch.org/docs/stable/distributed.html",
        "What every collective does, with shapes, and which backend offers it.",
    ),
    Reference(
        "Bandwidth optimal all-reduce algorithms for clusters of workstations",
        "Pitch Patarasuk, Xin Yuan",
        2009,
        "https://doi.org/10.1016/j.jpdc.2008.09.002",
        "The ring, and why no algorithm can send fewer bytes for an all-reduce.",
    ),
    Reference(
        "Orca: A Distributed Serving System for Transformer-Based Generative Models",
        "Gyeong-In Yu, Joo Seong Jeong, Geon-Woo Kim, Soojeong Kim, Byung-Gon Chun",
        2022,
        "https://www.usenix.org/conference/osdi22/presentation/yu",
        "Batching that lets requests join and leave at every step: the first lever.",
    ),
    Reference(
        "Switch Transformers: Scaling to Trillion Parameter Models with Simple and Efficient "
        "Sparsity",
        "William Fedus, Barret Zoph, Noam Shazeer",
        2021,
        "https://arxiv.org/abs/2101.03961",
        "Router, experts and the exchange between them, in their plainest form.",
    ),
    Reference(
        "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language "
        "Model Serving",
        "Yinmin Zhong, Shengyu Liu, Junda Chen, Jianbo Hu, Yibo Zhu, Xuanzhe Liu, Xin Jin, "
        "Hao Zhang",
        2024,
        "https://arxiv.org/abs/2401.09670",
        "Why prefill and decode disturb each other, and what splitting them brings.",
    ),
    Reference(
        "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel",
        "Yanli Zhao et al.",
        2023,
        "https://arxiv.org/abs/2304.11277",
        "The training lever, by those who built it.",
    ),
)

LESSON = Lesson(
    name="00_start_here",
    title="Start here",
    question="What does it take to run one piece of work on several processes, and how do you "
    "know that each of them did its part?",
    gist=(
        "A **rank** is a process with a number. All ranks run the same function, each on its own "
        "part of the data.",
        "They meet in **collectives**, such as an all-reduce. Nothing else keeps them in step.",
        "When one rank fails or stays away, **the others wait**. You want to be told who, and "
        "where.",
    ),
    decisions=(
        "Whether a piece of work deserves several ranks, and how many make sense on a machine.",
        "Which rank is to blame when a job fails or stands still.",
        "How far to trust a figure: measured, captured, modelled or assumed.",
        "Which of the five levers of this course a question is about.",
    ),
    guide=Guide(
        prefer=(
            "The work, or the memory it needs, is too much for one device.",
            "Every rank can run the same function, with its number deciding its part.",
            "Everything that waits has a deadline and names who is missing.",
        ),
        avoid=(
            "One device does it in time: each meeting of ranks costs latency.",
            "Only some ranks would reach a collective: the others wait for ever.",
            "Large data would travel with every call: let each rank keep its part.",
        ),
    ),
    map=overview.MAP,
    pros=(
        "More memory and more bandwidth than any single device has.",
        "One function to read and to test: the same on a laptop and on a cluster.",
        "Results that can be compared with a single rank, number by number.",
    ),
    cons=(
        "Each collective waits for the slowest rank.",
        "One rank that fails or leaves stops all of them.",
        "Sums in another order round differently: close to a single rank, not the same bits.",
    ),
    pitfalls=_PITFALLS,
    questions=_QUESTIONS,
    quizzes=_QUIZZES,
    references=_REFERENCES,
    levers=overview.LEVERS,
)
