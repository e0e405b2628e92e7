"""Lesson 03: mistakes that people make when they choose a layout; most come from bug reports."""

from __future__ import annotations

from course.lessons.content import Pitfall
from course.lessons.layout_planning_figures import (
    BATCH,
    CONTEXT,
    HALF_WEIGHTS,
    INT4_GROUP,
    KV_CONTEXT,
    LARGE_TP,
    LESS_TOKENS,
    MLP,
    MLP_RANK,
    MORE_TOKENS,
    PADDED_MLP,
    USABLE,
    WEIGHTS,
)

PITFALLS = (
    Pitfall(
        "All memory counted as one heap",
        symptom="Two GPUs have more memory than the model needs, and the engine does not start.",
        cause=f"Qwen2.5-72B weighs {WEIGHTS}. Two GPUs have more than that together, but each rank "
        f"holds {HALF_WEIGHTS} and may use {USABLE}. Cache and activations come on top.",
        remedy="Compare rank by rank and stage by stage, with what the engine may use, not with "
        "what the data sheet says.",
    ),
    Pitfall(
        "Capacity taken from the average rank",
        symptom="The engine prints fewer KV blocks than the sum of free memory would give.",
        cause="A token needs room on every rank and in every stage. The fullest one decides: the "
        "stage with the embedding or the LM head, or the one with a layer more.",
        remedy="Divide each stage's free memory by its own layers' bytes per token; take the "
        "minimum; round down to whole blocks.",
    ),
    Pitfall(
        "A group size read off the shapes",
        symptom="An INT4 model loads at a degree that cuts a group, and answers nonsense.",
        cause="A loader divided the rank's width by its number of scales and took the result for "
        "the group size.",
        remedy="Take the group size from the checkpoint's metadata. Refuse a cut that leaves part "
        "of a group.",
    ),
    Pitfall(
        "Only the down projection checked for groups",
        symptom="The plan says legal, and loading fails in attention.",
        cause="Every row-parallel matrix is cut by its inputs, and so through its groups: "
        "`o_proj` as well.",
        remedy="Check every quantised matrix on the side that the cut goes through.",
    ),
    Pitfall(
        "The bf16 verdict used for the INT4 checkpoint",
        symptom=f"TP {LARGE_TP} works in bf16 and is refused in INT4, of the same model.",
        cause=f"The MLP of {MLP:,} divides over {LARGE_TP} into {MLP_RANK:,} columns. That is no "
        f"multiple of the group of {INT4_GROUP}.",
        remedy=f"Pad the MLP to {PADDED_MLP:,} with zeros, use smaller groups, or another degree.",
    ),
    Pitfall(
        "Clients mistaken for the running batch",
        symptom="At high concurrency TTFT explodes and TPOT stops rising.",
        cause="The KV pool is full. New requests wait outside; the running batch stays where "
        "memory capped it.",
        remedy="Cap the batch by capacity over mean sequence length before you predict a step.",
    ),
    Pitfall(
        "Replicas compared at the same batch each",
        symptom="A plan promises much more throughput from replicas than the fleet then gives.",
        cause=f"At batch {BATCH} in each group two replicas make {MORE_TOKENS:.0%} more tokens: "
        "with twice the users. Give one large group the same users, and by the same formula the "
        f"replicas make {-LESS_TOKENS:.0%} fewer.",
        remedy="Fix the users, the limit on time per token, or both, and say which.",
    ),
    Pitfall(
        "A latency wish put to a throughput search",
        symptom="The planner recommends a layout that misses the limit on time per token.",
        cause="Nobody said what to optimise. Tokens per second, latency and cost have different "
        "winners.",
        remedy="State objective and SLO first. A planner without them should refuse to answer.",
    ),
    Pitfall(
        "TP and PP the wrong way round",
        symptom="Two nodes are slower than one, and the network is busy in every step.",
        cause="Tensor parallelism was put across the nodes, so that every layer's all-reduces "
        "cross the slow link.",
        remedy="All-reduces inside the node, stage boundaries across it: the axis that talks most "
        "gets the fastest link.",
    ),
    Pitfall(
        "The cache forgotten at long context",
        symptom="It serves short prompts well, and a few long ones fill it.",
        cause=f"One sequence of {CONTEXT:,} tokens takes {KV_CONTEXT} of Qwen2.5-72B's cache. "
        "Weights were planned, sequences were not.",
        remedy="Ask the inverse question too: how many requests of this length fit, and how long "
        "may the longest be?",
    ),
)
