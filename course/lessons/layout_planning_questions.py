"""Lesson 03: self-check questions."""

from __future__ import annotations

from course.labels import quantity
from course.lessons.content import Question
from course.lessons.figures import modelled_bytes
from course.lessons.layout_planning_figures import (
    ALONE,
    BATCH,
    BOUNDARY,
    CALIBRATED_LARGE,
    CALIBRATED_MEETINGS,
    CALIBRATED_SMALL,
    CONTEXT,
    DIVIDED,
    FEW,
    FIXED,
    FULL_SMALL,
    GATHERED,
    GATHERED_TIMES,
    GROUPS,
    HALF_WEIGHTS,
    INT4_GROUP,
    KV_CONTEXT,
    KV_RANK,
    KV_TOKEN,
    LARGE_TP,
    LESS_TOKENS,
    LOOSE_BATCH,
    LOOSE_SLO,
    MANY,
    MEETING_BYTES,
    MEETINGS,
    MEETINGS_LARGE,
    MLP,
    MLP_RANK,
    MORE_TOKENS,
    PADDED_MLP,
    SAME_USERS_STEP,
    SMALL_TP,
    STAGES,
    STEP_LARGE,
    STEP_SMALL,
    TIGHT_SLO,
    TOO_SMALL_TP,
    USABLE,
)
from labkit.plan.pipeline_time import bubble_fraction

_LOOSE, _TIGHT = quantity(LOOSE_SLO, "s"), quantity(TIGHT_SLO, "s")

QUESTIONS = (
    Question(
        "A config gives you the number of parameters. What else must you know before you can say "
        "what a GPU holds?",
        "How each matrix is stored (bits, scales of its groups), how it is cut (by columns, by "
        "rows, by vocabulary, or not at all), which KV heads are copied, which stage has the "
        "embedding and the LM head, and what the engine takes for activations and for itself.",
    ),
    Question(
        "What does one token of Qwen2.5-72B leave in the cache, and what does a long sequence "
        "take?",
        "`2 x layers x KV heads x head_dim x bytes`: "
        f"{KV_TOKEN} in bf16, {KV_RANK} on each rank of TP {LARGE_TP}. "
        f"{CONTEXT:,} tokens take {KV_CONTEXT}.",
    ),
    Question(
        f"Why is TP {TOO_SMALL_TP} rejected, although two GPUs have more memory than the weights?",
        f"Memory is no common heap. Each rank holds half the weights, {HALF_WEIGHTS}, and may use "
        f"{USABLE}. The weights alone exceed it; cache and activations are not even counted.",
    ),
    Question(
        "Why is the capacity in tokens a minimum over ranks and stages, and not a sum?",
        "A token's keys and values lie in every layer, so in every stage, and under tensor "
        "parallelism on every rank. It can be kept only where all of them have room. What is left "
        "over on the emptier ranks cannot be used.",
    ),
    Question(
        f"The model is legal at TP {LARGE_TP} in bf16. Why not in INT4 with groups of "
        f"{INT4_GROUP}?",
        f"A row-parallel matrix is cut by its inputs. {MLP:,} inputs over {LARGE_TP} ranks are "
        f"{MLP_RANK:,}, which is no multiple of {INT4_GROUP}: the border would go through a group "
        f"that shares one scale. Padding to {PADDED_MLP:,} makes it legal, and with zeros the "
        "outputs stay the same.",
    ),
    Question(
        "Padding repairs a vocabulary and an MLP. Why not query heads, or layers over stages?",
        "Rows of zeros in a vocabulary and columns of zeros in an MLP add nothing to a result. A "
        "head is a unit of attention: a made-up head would need weights, cache and a place in the "
        "output. Layers over stages need no padding: stages may differ by one.",
    ),
    Question(
        f"What makes the step at TP {LARGE_TP} hardly better than at TP {SMALL_TP} in the "
        "textbook, and what do recorded collectives change?",
        f"The textbook's ring pays for its hops: {MEETINGS_LARGE} of the step's {STEP_LARGE} at "
        f"TP {LARGE_TP}, against {STEP_SMALL} at TP {SMALL_TP}. With vLLM's kernel in a CUDA "
        f"graph, as recorded on H100, all meetings of the step take {CALIBRATED_MEETINGS}: the "
        f"steps are {CALIBRATED_LARGE} and {CALIBRATED_SMALL}, so that the larger degree is worth "
        "far more.",
    ),
    Question(
        f"Which layout of eight GPUs meets {_LOOSE} per token at batch 1, which one {_TIGHT}?",
        f"By the textbook TP {SMALL_TP} takes {STEP_SMALL} and TP {LARGE_TP} takes {STEP_LARGE}. "
        f"Both meet {_LOOSE}, and two replicas serve more users; only TP {LARGE_TP} meets "
        f"{_TIGHT}. With as large a batch as {_LOOSE} allows the answer turns: "
        f"{LOOSE_BATCH[SMALL_TP]} in each of {GROUPS} replicas, {LOOSE_BATCH[LARGE_TP]} in the one "
        "large group.",
    ),
    Question(
        f"Two replicas make {MORE_TOKENS:.0%} more tokens a second. What does that sentence leave "
        "out?",
        f"The users. It compares batch {BATCH} in each of {GROUPS} replicas with batch {BATCH} in "
        f"one group of {LARGE_TP}, which has half the users. With all of them the group's step "
        f"takes {SAME_USERS_STEP} instead of the replicas' {FULL_SMALL}, and the replicas make "
        f"{-LESS_TOKENS:.0%} fewer tokens.",
    ),
    Question(
        "What is in the gap between the roofline and a recorded step?",
        "In recorded steps of Llama-3.1-70B in FP8 on H100 the degree divides "
        f"{DIVIDED}, about what reading the weights takes, and leaves {FIXED} as they are. In "
        "those are kernels that start one after another and are too short to fill the memory's "
        "bandwidth, norms, rotary embedding and other small work, sampling, the scheduler on the "
        "host, prefills that share the step. None of it shrinks with the degree, so it counts "
        "most where the weights' part is smallest.",
    ),
    Question(
        "What does pipeline parallelism buy, if a token still passes all layers?",
        "Memory for each GPU, and messages that are few and small: one of batch x hidden size at "
        f"each border, {BOUNDARY} at batch {BATCH}, where tensor parallelism reduces "
        f"{MEETING_BYTES} in {MEETINGS} meetings. It never shortens one request. Stages must be "
        f"kept busy by other requests: with {STAGES} stages the bubble is "
        f"{bubble_fraction(STAGES, FEW):.0%} at {FEW} microbatches and "
        f"{bubble_fraction(STAGES, MANY):.0%} at {MANY}.",
    ),
    Question(
        "Why does tensor parallelism not divide the cache of a model with latent attention (MLA)?",
        "It keeps one latent vector for each token, which all heads share. There is one such head, "
        "so every rank needs all of it. Copies of attention for different requests (data parallel "
        "attention) divide the requests instead, and so the cache.",
    ),
    Question(
        "In which order do you use the GPUs of a cluster, and why?",
        "Replicas first, which send nothing to each other; then split a replica: tensor parallel "
        "inside the node, where the all-reduces of every layer find the fast link; stages across "
        "nodes, whose borders carry little; experts over ranks for a mixture of experts. The axis "
        "that talks most gets the fastest link. Latency limits and memory can force you to start "
        "further down.",
    ),
    Question(
        "Why is FSDP not on the list?",
        "It gathers weights in every step: "
        f"{modelled_bytes(GATHERED)} into each of {LARGE_TP} GPUs for one pass of Qwen2.5-72B, "
        f"{GATHERED_TIMES} times what tensor parallelism sends for one token "
        f"(a step that takes {quantity(ALONE[LARGE_TP].seconds, 's')} by the textbook).",
    ),
)
