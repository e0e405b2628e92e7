"""Lesson 03: quizzes."""

from __future__ import annotations

from course.labels import quantity
from course.lessons.content import Option, Quiz
from course.lessons.layout_planning_figures import (
    BATCH,
    CALIBRATED_LARGE,
    CALIBRATED_SMALL,
    GROUPS,
    HALF_WEIGHTS,
    INT4_GROUP,
    LARGE_TP,
    MEETINGS,
    MLP,
    MLP_RANK,
    MORE_TOKENS,
    PADDED_MLP,
    SMALL_TP,
    STEP_LARGE,
    STEP_SMALL,
    TIGHT_SLO,
    TOO_SMALL_TP,
    USABLE,
)

QUIZZES = (
    Quiz(
        "fits",
        f"Qwen2.5-72B in bf16, two GPUs of the worked example. Does TP {TOO_SMALL_TP} fit?",
        (
            Option(
                "Yes: both GPUs together have more memory than the weights",
                "They have, and each of them holds half of the weights alone. Memory is compared "
                "rank by rank.",
            ),
            Option(
                "Yes, with a small cache",
                f"A rank's weights are {HALF_WEIGHTS}; it may use {USABLE}. There is no room for "
                "any cache.",
            ),
            Option(
                "No: a rank's weights alone exceed what the engine may use",
                f"{HALF_WEIGHTS} of weights, {USABLE} to use.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "quantisation-groups",
        f"An INT4 checkpoint has groups of {INT4_GROUP} along an MLP of {MLP:,}. What do you do at "
        f"TP {LARGE_TP}?",
        (
            Option(
                "Pad the MLP, or take another degree",
                f"{PADDED_MLP:,} divides into whole groups for every rank; the added columns are "
                "zeros.",
                is_right=True,
            ),
            Option(
                "Nothing: the width divides by the degree",
                f"It does, into {MLP_RANK:,}. That ends inside a group, and a group shares one "
                "scale.",
            ),
            Option(
                "Let each rank work out its own group size",
                "A rank that divides its width by its number of scales gets a size that no "
                "checkpoint has, and wrong weights without an error.",
            ),
            Option(
                "Copy the MLP onto every rank",
                "Legal, and then most of the weights are read in full by each rank. What tensor "
                "parallelism was for is gone.",
            ),
        ),
    ),
    Quiz(
        "capacity",
        "Two pipeline stages. The second has a layer less and the LM head. How many tokens can the "
        "engine keep?",
        (
            Option(
                "Free memory of both stages over the bytes of a token in all layers",
                "That treats memory as one heap. A token needs room in both stages at once.",
            ),
            Option(
                "The mean of what the two stages can keep",
                "A token that finds no room in the fuller stage cannot be kept at all.",
            ),
            Option(
                "The lesser of the two, each by its own layers",
                "Free memory of a stage over the bytes that a token leaves in that stage's layers, "
                "then the minimum, then whole blocks.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "tight-slo",
        f"By the textbook, TP {SMALL_TP} takes {STEP_SMALL} at batch 1 and TP {LARGE_TP} "
        f"{STEP_LARGE}. Your limit is {quantity(TIGHT_SLO, 's')} per token. What follows?",
        (
            Option(
                f"{GROUPS} replicas of TP {SMALL_TP}: more tokens a second for the same GPUs",
                "True of tokens a second, and every single token misses the limit.",
            ),
            Option(
                f"TP {LARGE_TP}: of the two, only it meets the limit",
                "A limit on latency comes before throughput.",
                is_right=True,
            ),
            Option(
                f"{GROUPS} pipeline stages of TP {SMALL_TP}",
                f"A token passes both stages one after the other, and each reads its layers with "
                f"{SMALL_TP} GPUs: no faster than TP {SMALL_TP} alone.",
            ),
        ),
    ),
    Quiz(
        "calibrated",
        "You replace the textbook's hops by recorded all-reduces of a custom kernel in a CUDA "
        f"graph. What happens to the step at TP {LARGE_TP} against TP {SMALL_TP}?",
        (
            Option(
                "Nothing much: both get faster by the same factor",
                "The textbook's cost grows with the number of hops, so the larger group had far "
                "more to lose.",
            ),
            Option(
                f"TP {LARGE_TP} gains most: it goes further ahead",
                f"{CALIBRATED_LARGE} against {CALIBRATED_SMALL}: a custom kernel's latency is "
                "nearly the same for every number of GPUs.",
                is_right=True,
            ),
            Option(
                f"TP {SMALL_TP} wins, since it sends fewer messages",
                "Recorded latency of such a kernel is nearly flat in the number of GPUs, and "
                "halving the weights that are read still pays.",
            ),
        ),
    ),
    Quiz(
        "same-users",
        f"Two replicas at batch {BATCH} each make {MORE_TOKENS:.0%} more tokens a second than one "
        f"TP {LARGE_TP} group at batch {BATCH}. What should you ask first?",
        (
            Option(
                "What the group does with all users of both replicas",
                "The comparison gives the replicas twice the users. At equal users, the textbook's "
                "own formula turns it round.",
                is_right=True,
            ),
            Option(
                "Whether the GPUs are the same",
                "They are: eight of the same kind on both sides. What differs is the users.",
            ),
            Option(
                "Nothing: more tokens on the same GPUs is better",
                "More of what, for whom? Each user waits longer, and there are twice as many of "
                "them.",
            ),
        ),
    ),
    Quiz(
        "axes",
        "Two nodes of eight GPUs, fast links inside, a network between. The model needs all of "
        "them. Which order?",
        (
            Option(
                "Stages inside the node, tensor parallel across",
                f"Then {MEETINGS} all-reduces of every step cross the network.",
            ),
            Option(
                f"Tensor parallel over all {2 * LARGE_TP}: fewest weights to read for each GPU",
                "The same all-reduces, and every one of them waits for the network; KV heads are "
                "copied besides.",
            ),
            Option(
                "Tensor parallel inside the node, stages across",
                "One message of batch x hidden size crosses the network at the border between "
                "the stages.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "roofline-gap",
        "A roofline predicts half of the recorded step at a high degree, and nearly all of it at a "
        "low one. What is the likeliest cause?",
        (
            Option(
                "A fixed cost of each step and each layer that no degree divides",
                "The weights' part shrinks with the degree, the rest does not, so the share of the "
                "rest grows.",
                is_right=True,
            ),
            Option(
                "The memory is slower than its data sheet",
                "It is, by some percent, and by the same factor at every degree. The gap would "
                "shrink with the weights.",
            ),
            Option(
                "The KV cache was left out",
                "It matters at long context and large batch. It divides with the degree as the "
                "weights do.",
            ),
        ),
    ),
)
