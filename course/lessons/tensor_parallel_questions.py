"""Lesson 02: self-check questions and quizzes."""

from __future__ import annotations

from course.labels import quantity
from course.lessons.content import Option, Question, Quiz
from course.lessons.figures import modelled_bytes
from course.lessons.tensor_parallel_figures import (
    ALL_REPLICAS_KV,
    ALL_REPLICAS_WEIGHTS,
    BATCH_OF_TOKENS,
    EVEN_TP,
    GATHERED,
    GATHERED_TIMES,
    HALF_SAME_DOUBLE_KV,
    KV_PER_RANK,
    LARGE_BATCH,
    LLAMA_70B,
    ODD_VOCAB,
    ONE_TOKEN,
    PADDED,
    QWEN_HALF_B,
    QWEN_LEGAL,
    REPLICA_KV,
    REPLICA_WEIGHTS,
    REPLICATED,
    REPLICATED_TP,
    SMOLLM2,
)

QUESTIONS = (
    Question(
        "What exactly does one replica of a KV head cost?",
        "A second copy of its key and value projection in every layer, and a second copy of its "
        "cache for every token. For Llama-3.1-70B in bf16: "
        f"{REPLICA_WEIGHTS} of weights (`layers x 2 x head_dim x hidden x bytes`) and "
        f"{REPLICA_KV} of cache for each token (`2 x layers x head_dim x bytes`). "
        f"TP {REPLICATED_TP} needs {REPLICATED.extra_kv_heads} such copies: "
        f"{ALL_REPLICAS_WEIGHTS} of weights and {ALL_REPLICAS_KV} a token over all ranks. "
        "It sends nothing extra.",
    ),
    Question(
        "Why does a layer need an all-reduce after attention and another after the MLP, and none "
        "in between?",
        "A column-parallel layer leaves each rank with its own columns, which is what the "
        "row-parallel layer behind it wants as input. Only that second layer ends in partial sums. "
        "What follows (the norm and the residual sum) needs the whole vector, so the sums must be "
        "made there: once for each half of the layer.",
    ),
    Question(
        "Could one all-reduce a layer do?",
        "Not with this architecture: the norm before the MLP needs the whole output of attention. "
        "Some models compute attention and MLP from the same input, side by side; there the two "
        "partial sums can be added first and reduced once.",
    ),
    Question(
        "What is held whole on every rank?",
        f"The norms, the code, and the vector between the halves of a layer. With more ranks than "
        f"KV heads, KV heads are on several ranks too. Of Llama-3.1-70B at TP {EVEN_TP} "
        f"{modelled_bytes(REPLICATED.ranks[0].weight_bytes['norms'])} of norms are on each rank.",
    ),
    Question(
        "How many bytes does one decode step of Llama-3.1-70B bring to its all-reduces, and how "
        "many does a rank send?",
        f"{ONE_TOKEN.all_reduces} all-reduces (two a layer and the embedding's), each of "
        "`batch x hidden x bytes`: "
        f"{modelled_bytes(ONE_TOKEN.payload_bytes_each)} each at batch 1 in bf16, and "
        f"{modelled_bytes(BATCH_OF_TOKENS.payload_bytes_each)} each at batch {LARGE_BATCH}. In a "
        f"ring a rank sends `2(n-1)/n` of the payload: "
        f"{modelled_bytes(ONE_TOKEN.wire_bytes_per_rank)} a step at batch 1 and TP {EVEN_TP}.",
    ),
    Question(
        "Why can the greedy choice do without gathering the logits?",
        "The largest logit of all is the largest of the ranks' largest ones. Each rank sends its "
        "best value with its id, and all pick the same winner from those pairs. Sampling with a "
        "temperature needs more: here it gathers the logits once.",
    ),
    Question(
        "When does tensor parallelism over a slow link still beat one GPU?",
        "When cutting saves more computation time than the all-reduces cost. That is a question "
        "of both figures, not of the link alone: a large model saves a lot, a small one hardly "
        "anything.",
    ),
    Question(
        "Why is FSDP no tool for the latency of serving?",
        "It keeps weights cut and gathers whole layers before using them, so weights cross the "
        f"wire in every step: {modelled_bytes(GATHERED)} into each of {EVEN_TP} GPUs for one pass "
        "of Llama-3.1-70B in bf16. Tensor parallelism leaves weights where they are and sends "
        f"activations: {modelled_bytes(ONE_TOKEN.wire_bytes_per_rank)} for one token. In training "
        "the gathering hides behind a large batch; a decode step has none.",
    ),
    Question(
        "Your model has fewer KV heads than you have GPUs. What are your choices?",
        "Accept replicas (cache for each rank stops shrinking), use a smaller degree and more "
        "copies of the model, or split the GPUs another way, by layers (pipeline stages).",
    ),
)

QUIZZES = (
    Quiz(
        "two-a-layer",
        "Where does a decoder layer need its all-reduces under tensor parallelism?",
        (
            Option(
                "After each of its linear layers",
                "A column-parallel layer leaves whole results, only fewer of them on each rank. "
                "There is nothing to add up until a row-parallel layer made partial sums.",
            ),
            Option(
                "After the output projection of attention and after the down projection",
                "Both are row parallel, so both end in partial sums that the next norm "
                "needs whole.",
                is_right=True,
            ),
            Option(
                "Once, at the end of the layer",
                "The norm between attention and MLP would then see a partial sum. The norm of a "
                "part is not a part of the norm.",
            ),
            Option(
                "Between query, key and value and the attention itself",
                "Heads do not look at each other, so a rank with whole heads works alone there.",
            ),
        ),
    ),
    Quiz(
        "legal-degrees",
        f"A model has {QWEN_HALF_B.num_heads} query heads, {QWEN_HALF_B.num_kv_heads} KV heads "
        f"and an MLP of width {QWEN_HALF_B.intermediate_size}. Which degree is legal by default?",
        (
            Option(
                f"TP {max(QWEN_LEGAL)}",
                f"{QWEN_HALF_B.num_heads} heads, {QWEN_HALF_B.num_kv_heads} KV heads and "
                f"the MLP all divide. Legal are {' and '.join(map(str, QWEN_LEGAL))}.",
                is_right=True,
            ),
            Option(
                "TP 4",
                f"A common default on a machine with as many GPUs. {QWEN_HALF_B.num_heads} query "
                "heads do not divide by it.",
            ),
            Option(
                "TP 7",
                "It divides the query heads, and that is not enough: KV heads neither divide nor "
                "replicate evenly, and the MLP does not divide.",
            ),
            Option(
                "TP 14",
                "One query head a rank, and each KV head on equally many ranks: attention would "
                "agree. The MLP's width does not divide.",
            ),
        ),
    ),
    Quiz(
        "kv-replicas",
        f"Llama-3.1-70B has {LLAMA_70B.num_kv_heads} KV heads. You go from TP {EVEN_TP} to "
        f"TP {REPLICATED_TP}. How much cache does one token take on each rank, in bf16?",
        (
            Option(
                f"Half: {HALF_SAME_DOUBLE_KV[0]}",
                "The weights of a rank halve, its cache does not: a KV head is not cut, it is "
                "copied.",
            ),
            Option(
                f"The same: {HALF_SAME_DOUBLE_KV[1]}",
                f"Each rank still caches one whole KV head: {KV_PER_RANK}. All ranks together now "
                "hold every token twice.",
                is_right=True,
            ),
            Option(
                f"Double: {HALF_SAME_DOUBLE_KV[2]}",
                "All ranks together hold twice as much. Each single one holds what it held.",
            ),
        ),
    ),
    Quiz(
        "bias-once",
        "Four ranks run a row-parallel layer with a bias. Who adds it?",
        (
            Option(
                "Every rank, to its partial sum",
                "The all-reduce adds the four partial sums, and with them four biases.",
            ),
            Option(
                "Every rank, to its own output columns",
                "That is a column-parallel layer. Here no rank has columns of its own: each has a "
                "partial sum of every output.",
            ),
            Option(
                "One rank, before the sum",
                "The total then has it once. This library gives it to the first rank.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "padding-row",
        f"A vocabulary of {ODD_VOCAB:,} is padded to {PADDED.padded_size:,} rows for TP 2. All "
        "real logits happen to be negative. What must the logits of the padding rows be?",
        (
            Option(
                "Zero, as their weights are",
                "Zero beats every negative logit: a token that does not exist would be chosen.",
            ),
            Option(
                "The mean of the real ones",
                "It does not win, and it still takes a share of the probability in a softmax.",
            ),
            Option(
                "Minus infinity",
                "They never win, and their exponential adds nothing to a sum.",
                is_right=True,
            ),
        ),
    ),
    Quiz(
        "twice-the-bandwidth",
        "At batch 1 each all-reduce of Llama-3.1-70B in bf16 carries "
        f"{modelled_bytes(ONE_TOKEN.payload_bytes_each)}. You swap the link for one with twice "
        "the bandwidth and the same latency. What happens to the collectives' share of a step?",
        (
            Option(
                "It halves",
                "That holds when bytes take the time. Here almost all of it is waiting for each "
                "other, which bandwidth does not change.",
            ),
            Option(
                "Hardly anything",
                "Small messages cost latency, once for each hop of each all-reduce.",
                is_right=True,
            ),
            Option(
                "It disappears next to the weights",
                "The bytes were small before as well. The meetings stay, and they stay in line.",
            ),
        ),
    ),
    Quiz(
        "fsdp-or-tp",
        f"One decode step at batch 1, Llama-3.1-70B in bf16 on {EVEN_TP} GPUs. How do the bytes "
        "on the wire of FSDP compare with those of tensor parallelism?",
        (
            Option(
                "About the same: both cut every layer",
                "Both cut where weights are stored. They differ in what travels: weights with one, "
                "activations with the other.",
            ),
            Option(
                f"About {GATHERED_TIMES} times as many",
                f"{quantity(GATHERED, 'B', short=True)} of gathered weights against "
                f"{modelled_bytes(ONE_TOKEN.wire_bytes_per_rank)} of activations.",
                is_right=True,
            ),
            Option(
                "Fewer: it needs no all-reduce",
                "It has fewer meetings, one for each layer. Each of them carries a whole layer.",
            ),
        ),
    ),
    Quiz(
        "same-bits",
        f"SmolLM2 in fp32 at TP 3 and at TP 1: {SMOLLM2.num_layers} layers, same prompt. What do "
        "you expect of the logits?",
        (
            Option(
                "The same bits, since the weights are the same",
                "Three partial sums are added in another order than one long sum, and each order "
                "rounds in its own way.",
            ),
            Option(
                "Small differences; in fp32 the most likely token is almost always the same",
                "Differences of the size of rounding. With fewer bits a number, some "
                "decisions do change.",
                is_right=True,
            ),
            Option(
                "Differences that grow with the degree",
                "Another degree means another order of the same additions. Nothing makes that "
                "order worse as ranks are added.",
            ),
        ),
    ),
    Quiz(
        "slow-link",
        "Over a slow link, TP 4 of a large model is slower than over a fast link. Should you "
        "therefore stay on one GPU?",
        (
            Option(
                "Yes: the slow link is always worse",
                "It is always worse than the fast link. One GPU is another comparison, and it "
                "depends on how much computation time the cut saves.",
            ),
            Option(
                "It depends: compare the time saved with the time spent in collectives",
                "One of the three regimes is that the slow link still beats one GPU.",
                is_right=True,
            ),
            Option(
                "No: more GPUs are always faster",
                "When computation hardly shrinks, the collectives are what you add.",
            ),
        ),
    ),
)
