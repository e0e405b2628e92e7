"""Tensor parallelism on one model: do all sizes agree, what does a rank hold, what is sent?

The functions that take a `comm` first run on ranks (`pool.run`, `pool.put`); the others compare and
explain what came back. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from labkit.layers.norm import RMSNorm
from labkit.layers.weight import PackedWeight
from labkit.models.checkpoint import Checkpoint
from labkit.models.generate import complete
from labkit.models.llama import DecoderLayer, Llama, load_model
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import LayoutError, validate
from labkit.plan.shard import partition_heads
from labkit.ranks.comm import Comm
from labkit.ranks.trace import Trace, TracedComm

PASSAGE = (
    "Water boils when the pressure of its vapour reaches the pressure of the air above it. On a "
    "mountain the air is thinner, so water boils at a lower temperature, and food takes longer to "
    "cook. In a closed pot the steam cannot leave, the pressure rises, and the food is done sooner."
)
"""Ordinary English to read, written for this course."""


def question_ids(checkpoint: Checkpoint, question: str) -> list[int]:
    """Token ids of a question, in the model's conversation format where it has one."""
    chat = checkpoint.chat_format()
    return checkpoint.load_tokenizer().encode(question if chat is None else chat.ask(question))


def load_traced(comm: Comm, name: str | Path, *, allow_uneven_heads: bool = False) -> Llama:
    """On a rank: this rank's part of a model in fp32, whose collectives are recorded."""
    traced: Comm = TracedComm(comm)
    return load_model(name, traced, allow_uneven_heads=allow_uneven_heads)


@dataclass(frozen=True)
class Reading:
    """What a model said at one tensor parallel size."""

    tensor_parallel_size: int
    logits_TV: Tensor
    """After every position of the text, over the whole vocabulary."""
    new_ids: tuple[int, ...]
    """Greedy continuation of the prompt."""


def read(
    comm: Comm, model: Llama, text: Sequence[int], prompt: Sequence[int], max_new_tokens: int
) -> Reading | None:
    """On every rank: logits over `text`, then continue `prompt` greedily. Rank 0 returns both."""
    cache = model.new_cache(1, len(text))
    ids = torch.tensor([list(text)], device=comm.device)
    logits_1TV = model.lm_head.gather(model(ids, cache, all_positions=True))
    new_ids = complete(model, [prompt], max_new_tokens)[0]
    if comm.rank != 0:
        return None
    return Reading(comm.size, logits_1TV[0].float().cpu(), tuple(new_ids))


@dataclass(frozen=True)
class Agreement:
    """How two readings of the same text and prompt compare."""

    sizes: tuple[int, int]
    positions: int
    max_abs_difference: float
    """Over every logit of every position."""
    same_argmax: int
    """Positions whose most likely next token is the same."""
    new_tokens: int
    same_new_tokens: int
    """Length of the common beginning of the two continuations."""

    @property
    def is_same_text(self) -> bool:
        """Whether both continuations are equal token by token."""
        return self.same_new_tokens == self.new_tokens


def compare(reference: Reading, other: Reading) -> Agreement:
    """Compare a reading with a reference, usually the one at TP 1."""
    if reference.logits_TV.shape != other.logits_TV.shape:
        raise ValueError(
            f"logits of shape {tuple(reference.logits_TV.shape)} and "
            f"{tuple(other.logits_TV.shape)} come from different texts or models"
        )
    pairs = list(zip(reference.new_ids, other.new_ids, strict=False))
    common = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
    difference = (reference.logits_TV - other.logits_TV).abs().max().item()
    same = (reference.logits_TV.argmax(-1) == other.logits_TV.argmax(-1)).sum().item()
    return Agreement(
        sizes=(reference.tensor_parallel_size, other.tensor_parallel_size),
        positions=reference.logits_TV.shape[0],
        max_abs_difference=difference,
        same_argmax=int(same),
        new_tokens=max(len(reference.new_ids), len(other.new_ids)),
        same_new_tokens=common,
    )


def trace_decode_step(comm: Comm, model: Llama, prompt: Sequence[int]) -> Trace:
    """On every rank: what one greedy decode step after `prompt` sends. Needs `load_traced`."""
    traced = model.comm
    if not isinstance(traced, TracedComm):
        raise TypeError("this model records no collectives: load it with load_traced")
    cache = model.new_cache(1, len(prompt) + 1)
    ids = torch.tensor([list(prompt)], device=comm.device)
    token = model.lm_head.argmax(model(ids, cache))
    traced.trace.clear()
    model.lm_head.argmax(model(token[:, None], cache))
    return traced.trace


@dataclass(frozen=True)
class Share:
    """What one rank holds."""

    rank: int
    q_heads: int
    kv_heads: int
    weight_bytes: dict[str, int]
    """Bytes of weights by part. A tied LM head counts as part of the embedding; where a faster
    layout makes the head keep a second copy of those rows, that copy is not counted."""

    @property
    def total_bytes(self) -> int:
        """Bytes of all parts."""
        return sum(self.weight_bytes.values())


def share(comm: Comm, model: Llama) -> Share:
    """On every rank: how many heads and bytes of each part of the model it holds."""
    bytes_of = {"embedding": _weight_bytes(model.embed_tokens)}
    if not model.spec.tie_word_embeddings:
        bytes_of["LM head"] = _weight_bytes(model.lm_head)
    layers = [layer for layer in model.layers if isinstance(layer, DecoderLayer)]
    bytes_of["attention"] = sum(_weight_bytes(layer.self_attn) for layer in layers)
    bytes_of["MLP"] = sum(_weight_bytes(layer.mlp) for layer in layers)
    norms = (norm for layer in layers for norm in layer.children() if isinstance(norm, RMSNorm))
    bytes_of["norms"] = _weight_bytes(model.norm) + sum(map(_weight_bytes, norms))
    attention = layers[0].self_attn
    return Share(comm.rank, attention.num_heads, attention.num_kv_heads, bytes_of)


def bytes_by_part(shares: Sequence[Share]) -> dict[str, list[int]]:
    """The shares of all ranks turned around: for each part its bytes on rank 0, 1, ..."""
    return {part: [s.weight_bytes[part] for s in shares] for part in shares[0].weight_bytes}


@dataclass(frozen=True)
class Verdict:
    """Whether a model may be cut into so many parts."""

    tensor_parallel_size: int
    refusal: str | None
    """Why not, with the legal sizes; None where it is legal."""
    refusal_uneven: str | None
    """The same once whole KV groups may be dealt out unevenly."""
    q_heads: tuple[int, ...] | None
    """Query heads of each rank, where either rule allows the size."""


def verdicts(spec: DecoderSpec, sizes: Iterable[int]) -> tuple[Verdict, ...]:
    """The rule's answer to each tensor parallel size; no process is started for it."""
    return tuple(_verdict(spec, size) for size in sizes)


def _verdict(spec: DecoderSpec, size: int) -> Verdict:
    refusal, refusal_uneven = _refusal(spec, size, False), _refusal(spec, size, True)
    heads = None
    if refusal_uneven is None:
        cut = partition_heads(spec.num_heads, spec.num_kv_heads, size, allow_uneven_heads=True)
        heads = tuple(len(cut.q_heads(rank)) for rank in range(size))
    return Verdict(size, refusal, refusal_uneven, heads)


def _refusal(spec: DecoderSpec, size: int, allow_uneven_heads: bool) -> str | None:
    try:
        validate(spec, tp=size, allow_uneven_heads=allow_uneven_heads)
    except LayoutError as error:
        return str(error)
    return None


def _weight_bytes(module: nn.Module) -> int:
    """Bytes of every weight in a module, counted by its shape and dtype, not by its layout."""
    total = 0
    for part in module.modules():
        for value in vars(part).values():
            if isinstance(value, PackedWeight):
                total += value.out_features * value.in_features * value.dtype.itemsize
                total += 0 if value.bias is None else value.bias.nbytes
            elif isinstance(value, Tensor):
                total += value.nbytes
    return total
