"""A small lesson for tests: every part is there, the map has all kinds of edges."""

from course.lessons.content import (
    Edge,
    Guide,
    Lesson,
    LessonMap,
    Lever,
    Node,
    Option,
    Pitfall,
    Question,
    Quiz,
    Reference,
)


def edge(source: str, target: str, title: str) -> Edge:
    return Edge(
        source,
        target,
        title,
        protocol=f"The protocol of {title}.",
        direction=f"From {source} to {target}.",
        effect=f"The effect of {title}: `x` is there.",
        consequence=f"The **consequence** of {title}.",
    )


MAP = LessonMap(
    "From weight shards to the next token",
    nodes=(
        Node("weights", "Weight shards", "Each rank loads `1/n` of every matrix.", (0, 0)),
        Node("kv", "KV heads of a rank", "The cache follows the heads.", (1, 0)),
        Node("embedding", "Embedding, cut by vocabulary", "Rows, not columns.", (2, 0)),
        Node("sum", "All-reduce after attention and after the MLP", "Partial sums.", (0, 1)),
        Node("router", "Router", "It picks experts.", (1, 1)),
        Node("dispatch", "All-to-all", "Tokens go to their experts.", (2, 1)),
        Node("prefill", "Prefill", "All tokens of the prompt at once.", (0, 2)),
        Node("transfer", "KV transfer", "Blocks move to the decode side.", (1, 2)),
        Node("decode", "Decode", "One token after the other.", (2, 2)),
        Node("sampler", "Sampler (picks 1 of 49,152 ids)", "Each rank has a candidate.", (1, 3)),
    ),
    edges=(
        edge("weights", "kv", "same heads on the same rank"),
        edge("weights", "embedding", "rows dealt out"),
        edge("weights", "sum", "partial sums"),
        edge("sum", "router", "whole hidden state"),
        edge("router", "dispatch", "token counts"),
        edge("dispatch", "router", "expert outputs, weighed"),
        edge("kv", "router", "attention output"),
        edge("sum", "prefill", "61 all-reduces"),
        edge("prefill", "transfer", "KV blocks"),
        edge("transfer", "decode", "KV blocks, other layout"),
        edge("dispatch", "decode", "hidden states"),
        edge("decode", "decode", "next position"),
        edge("decode", "sampler", "logits"),
        edge("sampler", "prefill", "request ends, a new one is admitted"),
        edge("embedding", "sampler", "shared rows"),
    ),
)

LESSON = Lesson(
    name="99_sample",
    title="A sample",
    question="Does a sample show **every** part of `Page`?",
    gist=("First line, with `code`.", "Second line.", "Third line: 1 < 2."),
    decisions=("whether to cut", "where to cut"),
    guide=Guide(prefer=("The weights do not fit.",), avoid=("One GPU is enough.",)),
    map=MAP,
    pros=("Less memory on each rank.",),
    cons=("Two all-reduces in each layer.",),
    pitfalls=(
        Pitfall(
            "Bias on every rank", "The sum is off by `n - 1` biases.", "Each adds it.", "Once."
        ),
        Pitfall("Padded row wins", "An id that does not exist.", "Zero beats -3.", "Mask it."),
    ),
    questions=(
        Question("Why **two** all-reduces?", "One per row-parallel layer: `o_proj`, `down_proj`."),
        Question("What is kept whole?", "The norms."),
    ),
    quizzes=(
        Quiz(
            "payload",
            "What does one all-reduce carry at batch 1?",
            (
                Option("`hidden_size` elements", "One hidden state of one token.", True),
                Option("All weights of a layer", "Trap: weights never travel in TP."),
                Option("The KV cache", "Trap: the cache stays with its heads."),
            ),
        ),
        Quiz(
            "replica",
            "TP 4 over 2 KV heads: what happens?",
            (
                Option("It is refused", "Trap: a multiple of the KV heads is legal."),
                Option("Each KV head is held twice", "Two ranks hold the same head.", True),
                Option("Half a head each", "Trap: a head is never torn apart."),
            ),
        ),
    ),
    references=(
        Reference(
            "Megatron-LM",
            "M. Shoeybi and others",
            2019,
            "https://arxiv.org/abs/1909.08053",
            "The cut that everybody uses.",
        ),
    ),
    levers=(
        Lever("Serving TP", "Less latency.", "Two all-reduces a layer.", "Fast links."),
        Lever("EP", "More experts.", "Two all-to-alls.", "Many tokens."),
    ),
)
