"""The map of the whole course, and the five levers it teaches to pull."""

from __future__ import annotations

from course.labels import quantity
from course.lessons.content import Edge, LessonMap, Lever, Node
from course.lessons.figures import modelled_bytes, modelled_seconds, times
from labkit.plan.presets import PRESETS
from labkit.plan.traffic import decode_traffic, gathered_weight_bytes

_LLAMA = PRESETS["llama-3.1-70b"].spec
_BF16 = 2
_TP = 8
_PROMPT = 8192
_LINK = 50e9
"""Bytes per second: an assumed network between two machines."""

_weights = _LLAMA.num_parameters * _BF16
_traffic = decode_traffic(_LLAMA, _TP, 1, _BF16)
_gathered = gathered_weight_bytes(_LLAMA, _TP, _BF16)
_kv_per_token = _LLAMA.kv_bytes_per_token(_BF16)
_hop = _PROMPT * _kv_per_token
_kv_of_8b = PRESETS["llama-3.1-8b"].spec.kv_bytes_per_token(_BF16)

MAP = LessonMap(
    title="One token through a served model: nine steps",
    nodes=(
        Node(
            "shards",
            "1 Weight shards",
            "A large model is cut so that it fits, and so that every GPU reads only its part for "
            f"each token: Llama-3.1-70B in bf16 has {modelled_bytes(_weights)} of weights, "
            f"{modelled_bytes(_weights / _TP)} a rank when cut over {_TP}.",
            (0, 0),
        ),
        Node(
            "kv-heads",
            "2 KV heads",
            "Keys and values of past tokens are kept, so that no token is computed twice. They are "
            "cut by head, and with more ranks than KV heads they are copied.",
            (1, 0),
        ),
        Node(
            "all-reduce",
            "3 All-reduce",
            "Each rank has a partial sum of every output. Adding them up makes it whole: twice a "
            "layer under tensor parallelism.",
            (2, 0),
        ),
        Node(
            "router",
            "4 Router",
            "In a mixture of experts a small layer picks a few experts for each token. It decides "
            "which weights are read and which GPU gets work.",
            (2, 1),
        ),
        Node(
            "all-to-all",
            "5 All-to-all",
            "Tokens travel to the GPUs that hold their experts, and the results travel back. Every "
            "rank sends something different to every other.",
            (1, 1),
        ),
        Node(
            "experts",
            "6 Experts",
            "Feed-forward networks of which each token uses a few. Kept whole on different GPUs, "
            "they need no all-reduce inside.",
            (0, 1),
        ),
        Node(
            "prefill",
            "7 Prefill",
            "All tokens of a prompt pass the layers at once. It is limited by arithmetic, and it "
            "decides how long you wait for the first token (TTFT).",
            (0, 2),
        ),
        Node(
            "kv-transfer",
            "8 KV transfer",
            "Where prefill and decode run on different GPUs, the prompt's keys and values must "
            f"move once: {modelled_bytes(_hop)} for {_PROMPT:,} tokens of Llama-3.1-70B in bf16.",
            (1, 2),
        ),
        Node(
            "decode",
            "9 Decode",
            "One token per request and step. It is limited by reading weights and cache, and it "
            "decides the time per output token (TPOT).",
            (2, 2),
        ),
    ),
    edges=(
        Edge(
            "shards",
            "kv-heads",
            "own heads",
            protocol="none: inside a rank",
            direction="each rank, from its weight slice to its own heads",
            effect="A rank computes queries, keys and values of its own heads only.",
            consequence="The number of heads decides into how many parts you may cut.",
        ),
        Edge(
            "kv-heads",
            "all-reduce",
            "partial sums",
            protocol="all-reduce (sum) over the tensor parallel ranks",
            direction="every rank to every rank",
            effect="Attention's output is whole on every rank.",
            consequence="Two a layer, one after the other. With the embedding's, "
            f"{_traffic.all_reduces} for one decode step of Llama-3.1-70B (modelled). Keep them "
            "on the fastest link.",
        ),
        Edge(
            "all-reduce",
            "router",
            "whole vector",
            protocol="none: inside a rank",
            direction="from the summed vector to the router's small matrix",
            effect="All ranks score the same token alike and choose the same experts.",
            consequence="If ranks choose differently, the exchange that follows does not match.",
        ),
        Edge(
            "router",
            "all-to-all",
            "top-k choice",
            protocol="none: expert ids and weights, then counts for each destination",
            direction="from each token to the ranks of its experts",
            effect="Every rank knows how many tokens it sends where.",
            consequence="A popular expert means a busy rank, and the step waits for the busiest.",
        ),
        Edge(
            "all-to-all",
            "experts",
            "dispatch and combine",
            protocol="two all-to-alls for each layer with experts",
            direction="tokens to their experts' ranks, results back to the tokens' ranks",
            effect="Each expert sees all tokens that chose it, from all ranks.",
            consequence="Bytes grow with the tokens and with how many experts each one picks.",
        ),
        Edge(
            "experts",
            "prefill",
            "all layers",
            protocol="none: the same layers, for all tokens of a prompt at once",
            direction="from one layer to the next, then to the first new token",
            effect="A prompt is read, and its keys and values are in the cache.",
            consequence="A long prompt holds up every request that shares the GPU.",
        ),
        Edge(
            "prefill",
            "kv-transfer",
            "KV blocks out",
            protocol="point-to-point send of cache blocks",
            direction="from the prefill GPUs",
            effect="The prompt's cache leaves the GPUs that computed it.",
            consequence=f"At {quantity(_LINK, 'B/s')} (assumed) those {_PROMPT:,} tokens take "
            f"{modelled_seconds(_hop / _LINK)}: once for a request, not for every token.",
        ),
        Edge(
            "kv-transfer",
            "decode",
            "KV blocks in",
            protocol="point-to-point receive, after both sides agreed on the blocks' meaning",
            direction="to the decode GPUs",
            effect="Decoding goes on as if the prompt had been read there.",
            consequence="Block size, head order and dtype must match, or the hand-off is refused.",
        ),
        Edge(
            "decode",
            "all-reduce",
            "next token",
            protocol="all-reduce (sum) again, for every token",
            direction="each step runs through the layers once more",
            effect="One more token for each request of the batch.",
            consequence="What a step pays here, it pays for every token that is ever generated.",
        ),
    ),
)

LEVERS = (
    Lever(
        name="Continuous batching on one GPU",
        gain="One read of the weights serves every request of the batch; a new request joins at "
        "the next step. Most tokens per second for the least trouble, and nothing is sent.",
        cost="Each request holds KV cache "
        f"({modelled_bytes(_kv_of_8b)} a token for Llama-3.1-8B in bf16), and the time for "
        "each token rises with the batch.",
        when="First, whenever the model fits on one GPU. More load: more copies of it (replicas).",
    ),
    Lever(
        name="Tensor parallelism in serving",
        gain="Each GPU reads a share of the weights for every token, so a single request gets "
        "faster, and a model that fits on no single GPU fits.",
        cost="Two all-reduces a layer in every step (with the embedding's "
        f"{_traffic.all_reduces} for Llama-3.1-70B, modelled), in line with the computation.",
        when="The model does not fit, or one user's latency matters, and the GPUs share a fast "
        "link. Lesson 02 does it, lesson 03 says over how many.",
    ),
    Lever(
        name="Expert parallelism",
        gain="Each GPU holds some experts whole and serves them to all tokens: large products "
        "instead of thin slices.",
        cost="Two all-to-alls for each layer with experts, and every step waits for the GPU with "
        "the most tokens.",
        when="Mixture-of-experts models with enough tokens in flight to keep all experts busy.",
    ),
    Lever(
        name="Prefill and decode on separate GPUs",
        gain="Long prompts no longer hold up running answers, and each pool is sized for its own "
        "target: time to first token, or time per output token.",
        cost=f"The cache of each prompt crosses a link ({modelled_bytes(_hop)} for {_PROMPT:,} "
        "tokens of Llama-3.1-70B in bf16), and there is one more thing that can fail.",
        when="Long prompts together with a strict limit on the time per token.",
    ),
    Lever(
        name="FSDP in training",
        gain="Weights, gradients and optimiser state are cut over all GPUs, so that large models "
        "can be trained at all; gathering hides behind large batches.",
        cost="Whole layers are gathered in every pass: "
        f"{modelled_bytes(_gathered)} received by each of {_TP} GPUs for one pass of "
        f"Llama-3.1-70B in bf16, {times(_gathered / _traffic.wire_bytes_per_rank)} times what "
        "tensor parallelism sends for one token.",
        when="Training. Not for the latency of serving: a decode step has no large batch to hide "
        "behind.",
    ),
)
