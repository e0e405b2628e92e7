"""Lesson 01: self-check questions and quizzes."""

from __future__ import annotations

from course.lessons.collectives_figures import (
    ASSUMED_BANDWIDTH,
    BUS_AT_LARGEST,
    BUS_AT_MIB,
    CROSSING_AT_MOST,
    DECODE_BYTES_TIME,
    DECODE_PAYLOAD_TEXT,
    EAGER,
    GRAPH_FLOORS,
    GRAPH_STEP,
    GRAPH_TITLE,
    GRAPHED,
    LARGE_BATCH,
    LARGEST,
    MOST,
    NCCL_FLOORS,
    NCCL_STEP,
    NCCL_TITLE,
    ONE_TOKEN,
    PRESET_ERROR,
    TEXTBOOK_FLOOR,
    TEXTBOOK_STEP,
    TEXTBOOK_TIMES_TOO_LONG,
    WIRE_OF_FOUR,
)
from course.lessons.content import Option, Question, Quiz
from course.lessons.figures import modelled_bytes

_TOKEN_BYTES = modelled_bytes(ONE_TOKEN.payload_bytes_each)

QUESTIONS = (
    Question(
        "Where does `2 (n-1)/n` come from?",
        "A ring cuts the tensor into n chunks. In each of `n-1` steps a rank passes one chunk on, "
        "until every rank has one finished chunk: `(n-1)/n` of the tensor sent. The finished "
        "chunks then go round once more, which is as much again.",
    ),
    Question(
        "Why does a ring's time hardly depend on the number of ranks for large messages, and so "
        "much for small ones?",
        "Its bytes, `2 (n-1)/n` of the payload, come close to twice the payload and stay there. "
        "Its steps, `2 (n-1)`, go on growing with every rank, and each has a latency that no "
        "bandwidth shortens.",
    ),
    Question(
        "When is one shot faster than two?",
        "While its single step saves more than its bytes cost: it sends `n-1` times the payload, "
        "two shots send `2 (n-1)/n` of it. With two ranks both send the same, so one shot loses "
        f"nothing. For {GRAPH_TITLE} and {MOST} GPUs the fitted models cross at about "
        f"{CROSSING_AT_MOST}.",
    ),
    Question(
        f"Decode of {LARGE_BATCH} sequences of a large model all-reduces {DECODE_PAYLOAD_TEXT}. "
        "Is that a large message?",
        f"At {ASSUMED_BANDWIDTH} its bytes take {DECODE_BYTES_TIME} over {MOST} GPUs. A textbook "
        f"ring's steps take {TEXTBOOK_FLOOR}. So it is still on the latency side.",
    ),
    Question(
        "What is wrong with the textbook's hop, and what is right with it?",
        f"It prices {MOST} GPUs at {TEXTBOOK_FLOOR} for the smallest message. {NCCL_TITLE}, which "
        f"does run in steps, takes {NCCL_FLOORS[-1]}; a one-shot kernel ({GRAPH_TITLE}) takes "
        f"{GRAPH_FLOORS[-1]}, and hardly less with two GPUs ({GRAPH_FLOORS[0]}). That small "
        "messages cost latency and not bandwidth is right; that each GPU adds a hop is not, for "
        "kernels in which all read from all.",
    ),
    Question(
        "Why is a fit of relative errors not enough to trust a model?",
        f"It says how far off the model is where you measured: {PRESET_ERROR} on average for the "
        f"preset of {GRAPH_TITLE}. Beyond the largest or the smallest point it says nothing, and "
        "a single wild point must not move it. So look at the worst miss, at what was set aside, "
        "and at the range.",
    ),
    Question(
        "What can overlap hide?",
        "At best the shorter of the two: a collective beside a computation that does not need "
        "its result. In decode the next product needs it at once, so there is little to put "
        "beside it. On CPUs sending also takes cores from the computation.",
    ),
    Question(
        "Which transport does a mesh take, and why not always the same?",
        "NCCL when tensors live on GPUs. On CPUs shared memory when all ranks of a group are on "
        "one host, since a copy and a signal are all it takes; gloo across hosts, and when torch "
        "is asked to compare the ranks' calls. `Mesh.explain()` says it for each axis.",
    ),
)

QUIZZES = (
    Quiz(
        "wire-bytes",
        "Four ranks all-reduce a tensor of S bytes as a ring. How much does each rank send?",
        (
            Option("S", "That is the payload: what a rank passes in, and not what it sends."),
            Option(
                f"{WIRE_OF_FOUR} S",
                "Three chunks of a quarter in the reduce-scatter, and three in the all-gather.",
                is_right=True,
            ),
            Option(
                "Three times S",
                "One shot sends the whole tensor to each of the others. A ring does not.",
            ),
        ),
    ),
    Quiz(
        "faster-link",
        f"Each of {ONE_TOKEN.all_reduces} all-reduces of a decode step carries {_TOKEN_BYTES}. You "
        "may double the link's bandwidth, or halve its latency. Which helps?",
        (
            Option(
                "Half the latency",
                "So few bytes take next to no time on any link; steps and launches are the cost.",
                is_right=True,
            ),
            Option(
                "Double the bandwidth",
                "It shortens the part that is small already.",
            ),
            Option(
                "Both help as much",
                "Only where the two parts of the time are equally long, which is at a far "
                "larger message.",
            ),
        ),
    ),
    Quiz(
        "bus-bandwidth",
        f"{NCCL_TITLE} with {MOST} GPUs: the bus bandwidth is {BUS_AT_LARGEST} at {LARGEST}. What "
        f"do you expect for a decode message of {DECODE_PAYLOAD_TEXT}?",
        (
            Option(
                "The same: the link is the same",
                "A bandwidth is what bytes over time comes to, and the time has a part that no "
                "byte causes.",
            ),
            Option(
                "A little more, as there is less to send",
                "Less to send means that the fixed part weighs more, so the quotient falls.",
            ),
            Option(
                "Far less",
                f"It is {BUS_AT_MIB}: most of the time goes to steps.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "eager",
        f"The same all-reduce kernel takes {GRAPHED} or {EAGER} with two GPUs. What is the "
        "difference?",
        (
            Option(
                "The link was slower",
                "Link, message and kernel are the same. What differs is who starts it.",
            ),
            Option(
                "The host launched it each time, instead of a CUDA graph",
                "A launch by the host costs more than the whole meeting.",
                is_right=True,
            ),
            Option(
                "One of them was not warmed up",
                "Warming up is paid once. A launch by the host is paid at every call.",
            ),
        ),
    ),
    Quiz(
        "other-bits",
        "Three ranks all-reduce the same fp32 values in two messages, once alone and once with "
        "more elements behind them. May a ring give an element other bits?",
        (
            Option(
                "No: addition is the same everywhere",
                "Each addition rounds, so from three numbers on the order decides the last bits.",
            ),
            Option(
                "Yes: it may fall into another chunk, which is added in another order",
                "A ring adds chunk c in the order that begins behind rank c. Sums in rank order "
                "do not have this.",
                is_right=True,
            ),
            Option(
                "Only in bf16",
                "bf16 rounds more coarsely, so it shows more often. fp32 rounds as well.",
            ),
        ),
    ),
    Quiz(
        "textbook-tp",
        f"A textbook ring prices a decode step of a large model at TP {MOST} at {TEXTBOOK_STEP}. "
        f"It prices small messages about {TEXTBOOK_TIMES_TOO_LONG} times as high as a one-shot "
        "kernel was recorded. What follows for the step?",
        (
            Option(
                "Nothing, since weights dominate",
                f"The collectives were a large part: with NCCL the step is {NCCL_STEP}, with the "
                f"one-shot kernel {GRAPH_STEP}.",
            ),
            Option(
                "Its collectives shrink, and TP at this degree pays more than the textbook says",
                f"The step is {GRAPH_STEP} with the one-shot kernel and {NCCL_STEP} with NCCL.",
                is_right=True,
            ),
            Option(
                "It becomes as many times shorter",
                "Only the collectives do; reading the weights takes what it took.",
            ),
        ),
    ),
)
