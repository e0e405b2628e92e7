"""Lesson 02: tensor parallelism. Map, guide, trade-offs, references."""

from __future__ import annotations

from course.lessons.content import Edge, Guide, Lesson, LessonMap, Node, Reference
from course.lessons.figures import modelled_bytes
from course.lessons.tensor_parallel_figures import (
    BATCH_OF_TOKENS,
    EVEN_TP,
    KV_PER_RANK,
    LARGE_BATCH,
    ONE_TOKEN,
    REPLICATED_TP,
    SMALL_MODEL_TOKEN,
    SMOLLM2,
)
from course.lessons.tensor_parallel_pitfalls import PITFALLS
from course.lessons.tensor_parallel_questions import QUESTIONS, QUIZZES

_INSIDE = "none: inside a rank"
_SUM = "all-reduce (sum)"
_EVERYONE = "every rank to every rank"
_payload = modelled_bytes(SMALL_MODEL_TOKEN.payload_bytes_each)

MAP = LessonMap(
    title="A token through one tensor parallel layer",
    nodes=(
        Node(
            "embedding",
            "Embedding rows",
            "Each rank holds a block of the vocabulary's rows. It looks up the ids that are its "
            "own and has zeros for all others.",
            (0, 0),
        ),
        Node(
            "x",
            "x, whole",
            "The residual stream: the same vector on every rank. Norms are computed by each rank "
            "for itself, since they need all of it.",
            (1, 0),
        ),
        Node(
            "qkv",
            "QKV, column parallel",
            "Cut by output: every rank computes queries, keys and values of its own heads from "
            "the whole vector.",
            (2, 0),
        ),
        Node(
            "heads",
            "Own heads, own cache",
            "Attention runs head by head, so a rank needs no other rank's heads. It caches the "
            "keys and values of its own KV heads only.",
            (2, 1),
        ),
        Node(
            "o-proj",
            "O projection, row parallel",
            "Cut by input, where the heads' outputs already lie. Each rank gets a partial sum of "
            "every output.",
            (1, 1),
        ),
        Node(
            "x-between",
            "x + attention, whole",
            "The sum is on every rank again, ready for the second norm.",
            (0, 1),
        ),
        Node(
            "gate-up",
            "Gate and up, column parallel",
            "Both are cut at the same columns, so `silu(gate) * up` needs no other rank.",
            (0, 2),
        ),
        Node(
            "down",
            "Down, row parallel",
            "Cut by input again: a partial sum of every output on each rank.",
            (1, 2),
        ),
        Node(
            "x-after",
            "x + MLP, whole",
            f"Goes back to QKV as the next layer's input until all {SMOLLM2.num_layers} layers of "
            "SmolLM2 are done, and then to the head.",
            (2, 2),
        ),
        Node(
            "head",
            "LM head rows",
            "Each rank has the logits of its own block of the vocabulary; padding rows are minus "
            "infinity.",
            (2, 3),
        ),
        Node(
            "token",
            "Next token",
            "Every rank picks the same one, and all go on to the next step with it.",
            (1, 3),
        ),
    ),
    edges=(
        Edge(
            "embedding",
            "x",
            "all-reduce",
            protocol=_SUM,
            direction=_EVERYONE,
            effect="One rank had the row, the others had zeros: the sum is the row.",
            consequence="One more meeting for each step, whatever the number of layers.",
        ),
        Edge(
            "x",
            "qkv",
            "nothing sent",
            protocol=_INSIDE,
            direction="from the whole vector to this rank's columns",
            effect="Queries, keys and values exist once, spread over the ranks by head.",
            consequence="Query heads must divide by the degree.",
        ),
        Edge(
            "qkv",
            "heads",
            "nothing sent",
            protocol=_INSIDE,
            direction="from this rank's projections to this rank's cache",
            effect="The cache is cut by KV head.",
            consequence="With more ranks than KV heads, heads are copied: Llama-3.1-70B in bf16 "
            f"caches {KV_PER_RANK} a token on each rank at TP {EVEN_TP} and at TP {REPLICATED_TP}.",
        ),
        Edge(
            "heads",
            "o-proj",
            "nothing sent",
            protocol=_INSIDE,
            direction="from this rank's heads to this rank's input columns",
            effect="The output of a column-parallel layer is the input of a row-parallel one.",
            consequence="Gathering here would add a meeting and change nothing.",
        ),
        Edge(
            "o-proj",
            "x-between",
            "all-reduce",
            protocol=_SUM,
            direction=_EVERYONE,
            effect="Partial sums become attention's output, whole on every rank.",
            consequence="The first meeting of the layer. Everybody waits for the slowest: "
            f"{_payload} for one token of SmolLM2 in fp32.",
        ),
        Edge(
            "x-between",
            "gate-up",
            "nothing sent",
            protocol=_INSIDE,
            direction="from the whole vector to this rank's columns",
            effect="Each rank has its columns of the MLP's inside.",
            consequence="The MLP's width must divide by the degree.",
        ),
        Edge(
            "gate-up",
            "down",
            "nothing sent",
            protocol=_INSIDE,
            direction="from this rank's columns to this rank's input columns",
            effect="Gating is done element by element, on the rank itself.",
            consequence="Works only if gate and up are cut each on its own.",
        ),
        Edge(
            "down",
            "x-after",
            "all-reduce",
            protocol=_SUM,
            direction=_EVERYONE,
            effect="Partial sums become the MLP's output, whole on every rank.",
            consequence="The second meeting. With the embedding's, Llama-3.1-70B has "
            f"{ONE_TOKEN.all_reduces} in a step, of {modelled_bytes(ONE_TOKEN.payload_bytes_each)} "
            f"each at batch 1 and {modelled_bytes(BATCH_OF_TOKENS.payload_bytes_each)} at batch "
            f"{LARGE_BATCH}, bf16.",
        ),
        Edge(
            "x-after",
            "head",
            "nothing sent",
            protocol=_INSIDE,
            direction="from the whole vector to this rank's rows",
            effect="Logits exist once, spread over the ranks by token id.",
            consequence="Nobody needs all of them to find the largest.",
        ),
        Edge(
            "x-after",
            "qkv",
            "next layer",
            protocol=_INSIDE,
            direction="from the end of a layer to the start of the next one, on every rank",
            effect="The vector is whole already, so nothing is sent.",
            consequence=f"SmolLM2 goes this way back {SMOLLM2.num_layers - 1} times: "
            f"{SMOLLM2.num_layers} layers, each with its two all-reduces.",
        ),
        Edge(
            "head",
            "token",
            "all-gather",
            protocol="all-gather of one pair for each request: best logit, its id",
            direction=_EVERYONE,
            effect="All ranks see all candidates and choose the same winner.",
            consequence="A few bytes. Sampling with a temperature gathers the logits instead.",
        ),
    ),
)

LESSON = Lesson(
    name="02_tensor_parallel",
    title="Tensor parallelism on a real model",
    question="If you cut every layer of a language model over several GPUs, does it still say the "
    "same, and what does every token then pay?",
    gist=(
        "**Each rank holds a slice** of every weight matrix and of the KV cache, and reads only "
        "that slice for each token. This is the gain.",
        "**Twice a layer the ranks add up** their partial sums in an all-reduce, and everybody "
        "waits. This is the price: latency while batches are small, bandwidth when they are large.",
        "**The model's shape decides** how many slices there may be: query heads and MLP width "
        "must divide, KV heads divide or are copied.",
    ),
    decisions=(
        "Over how many ranks a model may be cut, what each one holds, and what a KV-head replica "
        "costs.",
        "How many collectives a token needs, and how many bytes each of them carries.",
        "Whether tensor parallelism pays on a given link, and why FSDP is not the answer in "
        "serving.",
    ),
    guide=Guide(
        prefer=(
            "The model, or its cache, does not fit on one GPU.",
            "One user's time per token matters, and reading the weights is what takes it.",
            "The GPUs of a group share a fast link, inside one machine.",
            "The degree divides the query heads and stays at or below the KV heads.",
        ),
        avoid=(
            "The model fits, and you want more tokens a second for many users: run more copies.",
            "The group would span a slow link: use pipeline stages across "
            "it (each machine holds some of the layers).",
            "The model is so small that the computation hardly shrinks: meetings are all you add.",
            "Output must match another degree bit for bit.",
        ),
    ),
    map=MAP,
    pros=(
        "Weights a rank holds, and reads for each token, fall with the degree.",
        "It shortens a single request, which more copies of the model never do.",
        "The cache is cut too, up to the number of KV heads.",
        "Every rank runs the same code on the same token: no schedule, no idle stages.",
    ),
    cons=(
        "Two all-reduces a layer, in line with the computation, in every step.",
        "Each one waits for the slowest rank; a slow link or a busy core slows all.",
        "Beyond the number of KV heads, cache is copied and stops shrinking.",
        "The degree must divide heads and widths; odd shapes leave few choices.",
        "Another degree rounds differently.",
    ),
    pitfalls=PITFALLS,
    questions=QUESTIONS,
    quizzes=QUIZZES,
    references=(
        Reference(
            "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism",
            "Mohammad Shoeybi, Mostofa Patwary, Raul Puri, Patrick LeGresley, Jared Casper, "
            "Bryan Catanzaro",
            2019,
            "https://arxiv.org/abs/1909.08053",
            "Where column parallel before row parallel comes from. Section 3 is this lesson.",
        ),
        Reference(
            "Efficiently Scaling Transformer Inference",
            "Reiner Pope et al.",
            2022,
            "https://arxiv.org/abs/2211.05102",
            "Which way of cutting is best at which batch size, by counting bytes and time.",
        ),
        Reference(
            "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
            "Joshua Ainslie, James Lee-Thorp, Michiel de Jong, Yury Zemlyanskiy, "
            "Federico Lebrón, Sumit Sanghai",
            2023,
            "https://arxiv.org/abs/2305.13245",
            "Why models share KV heads, which then limits how far you can cut.",
        ),
        Reference(
            "Efficient Memory Management for Large Language Model Serving with PagedAttention",
            "Woosuk Kwon et al.",
            2023,
            "https://arxiv.org/abs/2309.06180",
            "What is done with the cache memory that cutting the weights sets free.",
        ),
        Reference(
            "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
            "Samyam Rajbhandari, Jeff Rasley, Olatunji Ruwase, Yuxiong He",
            2019,
            "https://arxiv.org/abs/1910.02054",
            "The idea behind FSDP, with its count of bytes moved.",
        ),
        Reference(
            "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel",
            "Yanli Zhao et al.",
            2023,
            "https://arxiv.org/abs/2304.11277",
            "How gathering is hidden behind computation in training.",
        ),
        Reference(
            "Bandwidth optimal all-reduce algorithms for clusters of workstations",
            "Pitch Patarasuk, Xin Yuan",
            2009,
            "https://doi.org/10.1016/j.jpdc.2008.09.002",
            "The ring, and its factor `2(n-1)/n`.",
        ),
    ),
)
