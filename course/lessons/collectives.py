"""Lesson 01: collectives. Map, guide, trade-offs, references."""

from __future__ import annotations

from course.lessons.collectives_figures import (
    ASSUMED_HOP,
    DECODE_PAYLOAD_TEXT,
    GRAPH_FLOORS,
    GRAPH_TITLE,
    LARGE_BATCH,
    MOST,
    NCCL_FLOORS,
    NCCL_TITLE,
)
from course.lessons.collectives_pitfalls import PITFALLS
from course.lessons.collectives_questions import QUESTIONS, QUIZZES
from course.lessons.content import Edge, Guide, Lesson, LessonMap, Node, Reference

_EVERYONE = "every rank to every rank"

MAP = LessonMap(
    title="What each collective moves, and what it leaves where",
    nodes=(
        Node(
            "parts",
            "Partial sums, one a rank",
            "Every rank has a tensor of the full shape that is only its share of a sum. A "
            "row-parallel layer leaves the ranks like this.",
            (0, 0),
        ),
        Node(
            "pieces",
            "Finished pieces, one a rank",
            "Each rank has a different part of the result, and that part is complete.",
            (1, 1),
        ),
        Node(
            "whole",
            "The whole, on every rank",
            "All ranks hold the same complete tensor. The next norm needs this.",
            (2, 0),
        ),
        Node(
            "one",
            "The whole, on one rank",
            "One rank has something that the others do not: a sampled token, a prompt.",
            (2, 2),
        ),
        Node(
            "addressed",
            "Blocks with an address",
            "Each rank holds a block for every other rank: tokens that belong to experts "
            "elsewhere.",
            (0, 2),
        ),
        Node(
            "delivered",
            "Blocks at their address",
            "Each rank holds what all ranks had for it, in rank order.",
            (1, 3),
        ),
    ),
    edges=(
        Edge(
            "parts",
            "whole",
            "all-reduce",
            protocol="reduce-scatter, then all-gather; or one shot",
            direction=_EVERYONE,
            effect="The sum, whole, on every rank.",
            consequence="A ring sends `2 (n-1)/n` times the tensor from each rank, in "
            "`2 (n-1)` steps. In decode the steps cost more than the bytes.",
        ),
        Edge(
            "parts",
            "pieces",
            "reduce-scatter",
            protocol="sums travel round the ring",
            direction=_EVERYONE,
            effect="Rank r holds part r of the sum, finished.",
            consequence="Half the bytes and half the steps of an all-reduce. Enough, where what "
            "follows works on a part.",
        ),
        Edge(
            "pieces",
            "whole",
            "all-gather",
            protocol="finished pieces travel round the ring",
            direction=_EVERYONE,
            effect="All pieces on every rank, in rank order.",
            consequence="The other half of an all-reduce. Nothing is added, so it keeps every bit.",
        ),
        Edge(
            "one",
            "whole",
            "broadcast",
            protocol="a tree, or a copy that all read",
            direction="one rank to all others",
            effect="Everyone has what one rank had.",
            consequence="How ranks that must not disagree, such as on a random token, are made "
            "to agree.",
        ),
        Edge(
            "addressed",
            "delivered",
            "all-to-all",
            protocol="a message for each pair of ranks",
            direction=_EVERYONE,
            effect="Block s of rank r is now block r of rank s: a transposition.",
            consequence="Every pair of ranks pays a latency, and the busiest link sets the time. "
            "Experts live on this.",
        ),
    ),
)

LESSON = Lesson(
    name="01_collectives",
    title="Collectives: what moves, what it costs, and how to make it fast",
    question="What does a meeting of ranks really move, how long must it take, and which way of "
    "doing it is the fastest for the message at hand?",
    gist=(
        "**A time has two parts.** Steps take as long as they take, whatever is in them; bytes "
        "take longer the more there are. Small messages pay for steps, large ones for bytes.",
        "**Decode lives on the latency side.** An all-reduce of one token carries a few KiB, so "
        "what counts is how many times ranks wait for each other, and for the launch.",
        "**The algorithm is a choice.** A ring sends the fewest bytes in many steps, one shot "
        "sends more in a single one. Which is faster follows from the size and the link.",
    ),
    decisions=(
        "Which collective a program needs, and how many bytes each rank sends for it.",
        "Whether a message is bound by latency or by bandwidth, and so what would make it faster.",
        "How far to trust a model of a link, and how to fit one to points that you measured.",
    ),
    guide=Guide(
        prefer=(
            "One shot for small messages between ranks that all reach each other directly.",
            "Two shots, or a ring, when bytes dominate: long prompts, very large batches.",
            "Reduce-scatter or all-gather alone where a half of an all-reduce is enough.",
            "Kernels replayed in a CUDA graph, so that a launch is not paid each time.",
        ),
        avoid=(
            "Reading time from payload over peak bandwidth: it leaves out the steps, which are "
            "most of it in decode.",
            "One fit over several implementations or versions: they are different machines.",
            "Collectives inside a branch that not all ranks take.",
            "Comparing bits of sums whose order the message's size decides.",
        ),
    ),
    map=MAP,
    pros=(
        "One call says what is wanted, and the library picks the way.",
        "A ring sends from each rank less than twice the tensor, however many ranks there are.",
        f"Kernels made for small messages need one step: {GRAPH_TITLE} takes {GRAPH_FLOORS[0]} "
        f"with two GPUs and {GRAPH_FLOORS[-1]} with {MOST}.",
        "A fixed order of the sum makes the result the same bits on all ranks and in any message.",
    ),
    cons=(
        "Everybody waits for the slowest rank, in every call.",
        f"Steps add up: {NCCL_TITLE} takes {NCCL_FLOORS[0]} with two GPUs and "
        f"{NCCL_FLOORS[-1]} with {MOST}, for the same small message.",
        "One rank that stays away stops all.",
        f"What a textbook assumes ({ASSUMED_HOP} a hop) is several times off at sizes that decode "
        f"uses; at batch {LARGE_BATCH} a large model all-reduces {DECODE_PAYLOAD_TEXT} at a time.",
        "The same sum in another order has other bits.",
    ),
    pitfalls=PITFALLS,
    questions=QUESTIONS,
    quizzes=QUIZZES,
    references=(
        Reference(
            "Performance reported by NCCL tests",
            "NVIDIA",
            2025,
            "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md",
            "Algorithm bandwidth against bus bandwidth, with the factor for each collective.",
        ),
        Reference(
            "Bandwidth optimal all-reduce algorithms for clusters of workstations",
            "Pitch Patarasuk, Xin Yuan",
            2009,
            "https://doi.org/10.1016/j.jpdc.2008.09.002",
            "Why no all-reduce can send less than a ring does.",
        ),
        Reference(
            "Optimization of Collective Communication Operations in MPICH",
            "Rajeev Thakur, Rolf Rabenseifner, William Gropp",
            2005,
            "https://doi.org/10.1177/1094342005051521",
            "Which algorithm for which size, with costs in latency and bandwidth.",
        ),
        Reference(
            "customAllReduceKernels.cu",
            "NVIDIA, TensorRT-LLM",
            2024,
            "https://github.com/NVIDIA/TensorRT-LLM/blob/main/cpp/tensorrt_llm/kernels/customAllReduceKernels.cu",
            "One-shot and two-shot kernels as served: flags released and acquired between GPUs.",
        ),
        Reference(
            "PyTorch Symmetric Memory",
            "PyTorch",
            2025,
            "https://docs.pytorch.org/docs/stable/symmetric_memory.html",
            "Memory that all GPUs of a group can read, and collectives written on it.",
        ),
    ),
)
