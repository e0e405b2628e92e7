"""Generation: prefill the prompts, then one token per sequence and step.

Every rank runs this loop and comes to the same tokens without being told: greedy choice compares
one candidate per rank, sampling draws the same number on every rank. Sequences that are done stay
in the batch as padding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from labkit.layers.kv_cache import KVCache
from labkit.layers.sampling import Sampler
from labkit.layers.whole_number import whole_number
from labkit.models.llama import Llama
from labkit.plan.decoder import DecoderSpec

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class Tokens:
    """What one step brought: `token_ids[i]` for prompt i, None once it had finished.

    `finish_reasons[i]` is set in the step that gave prompt i its last token: "stop" when that
    token ends a text (it is among `token_ids`), "length" when there is no room for another.
    """

    token_ids: tuple[int | None, ...]
    finish_reasons: tuple[FinishReason | None, ...]


def generate(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    *,
    sampler: Sampler | None = None,
    eos_token_ids: Sequence[int] | None = None,
    prefill_chunk: int | None = None,
) -> Iterator[Tokens]:
    """Continue a batch of prompts of any lengths, greedily unless a sampler is given.

    Each sequence stops at a token of `eos_token_ids` (the model's own by default; an empty list
    for none), after `max_new_tokens`, or at the end of the model's context. `prefill_chunk` feeds
    prompts at most that many tokens at a time: less memory for attention, the same result up to
    rounding. A sampler begins its random streams anew: the same call gives the same tokens.
    Raises ValueError, before any work, for what cannot be continued.
    """
    ids, room = check_prompts(model.spec, prompts, max_new_tokens)
    if prefill_chunk is not None:
        prefill_chunk = whole_number(prefill_chunk, "prefill_chunk", at_least=1)
    stops = model.spec.eos_token_ids if eos_token_ids is None else eos_token_ids
    return _steps(
        model,
        ids,
        room,
        (sampler or Sampler()).restarted(len(ids)),
        frozenset(_whole_numbers(stops, "eos_token_ids")),
        prefill_chunk,
    )


def complete(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    max_new_tokens: int,
    *,
    sampler: Sampler | None = None,
    eos_token_ids: Sequence[int] | None = None,
    prefill_chunk: int | None = None,
) -> list[list[int]]:
    """`generate` run to its end: the new ids of each prompt, an ending token included."""
    completions: list[list[int]] = [[] for _ in prompts]
    for tokens in generate(
        model,
        prompts,
        max_new_tokens,
        sampler=sampler,
        eos_token_ids=eos_token_ids,
        prefill_chunk=prefill_chunk,
    ):
        for completion, token in zip(completions, tokens.token_ids, strict=True):
            if token is not None:
                completion.append(token)
    return completions


def check_prompts(
    spec: DecoderSpec, prompts: Sequence[Sequence[int]], max_new_tokens: int
) -> tuple[list[list[int]], list[int]]:
    """The ids of each prompt, and how many tokens it may get; no model is needed to ask.

    Raises ValueError for a prompt that is empty, holds what is no token id of this model, or
    leaves no room in the context.
    """
    context, vocab_size = spec.max_position_embeddings, spec.vocab_size
    max_new_tokens = whole_number(max_new_tokens, "max_new_tokens", at_least=1)
    checked = [_whole_numbers(prompt, f"prompt {index}") for index, prompt in enumerate(prompts)]
    for index, prompt in enumerate(checked):
        if not prompt:
            raise ValueError(f"prompt {index} is empty; give it at least one token")
        if len(prompt) >= context:
            raise ValueError(
                f"prompt {index} has {len(prompt)} tokens; the model's context of {context} "
                f"leaves room to continue at most {context - 1}"
            )
        for foreign in (min(prompt), max(prompt)):
            if not 0 <= foreign < vocab_size:
                raise ValueError(
                    f"prompt {index} holds token id {foreign}, outside a vocabulary of {vocab_size}"
                )
    return checked, [min(max_new_tokens, context - len(prompt)) for prompt in checked]


def _whole_numbers(ids: Iterable[int], what: str) -> list[int]:
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise ValueError(f"{what} must be a list of token ids, not {ids!r:.80}")
    return [whole_number(token, f"{what}: token id") for token in ids]


def _steps(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    room: list[int],
    sampler: Sampler,
    stops: frozenset[int],
    prefill_chunk: int | None,
) -> Iterator[Tokens]:
    if not prompts:
        return
    # The last token generated is never fed back, hence the one place less.
    max_len = max(len(prompt) + left - 1 for prompt, left in zip(prompts, room, strict=True))
    cache = model.new_cache(len(prompts), max_len)
    logits = _prefill(model, prompts, cache, prefill_chunk)
    running = list(range(len(prompts)))
    column = torch.zeros(len(prompts), 1, dtype=torch.long, device=model.comm.device)
    num_generated = 0
    while True:
        everyone = len(running) == len(prompts)
        chosen = sampler(logits if everyone else logits[running], model.lm_head, running)
        num_generated += 1
        tokens, column[running, 0] = chosen.tolist(), chosen
        token_ids: list[int | None] = [None] * len(prompts)
        reasons: list[FinishReason | None] = [None] * len(prompts)
        for index, token in zip(running, tokens, strict=True):
            token_ids[index] = token
            if token in stops:
                reasons[index] = "stop"
            elif num_generated == room[index]:
                reasons[index] = "length"
        running = [index for index in running if reasons[index] is None]
        yield Tokens(tuple(token_ids), tuple(reasons))
        if not running:
            return
        counts = [0] * len(prompts)
        for index in running:
            counts[index] = 1
        logits = model(column, cache, counts)


def _prefill(
    model: Llama, prompts: Sequence[Sequence[int]], cache: KVCache, chunk: int | None
) -> Tensor:
    """Run the prompts through the model; local logits after each one's last token, `[B, V/r]`."""
    longest = max(map(len, prompts))
    ids = torch.zeros(len(prompts), longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt)] = torch.tensor(prompt)
    ids = ids.to(model.comm.device)
    chunk = chunk or longest
    result: Tensor | None = None
    for start in range(0, longest, chunk):
        part = ids[:, start : start + chunk]
        counts = [min(max(len(prompt) - start, 0), part.shape[1]) for prompt in prompts]
        logits = model(part, cache, counts)
        took_part = torch.tensor(counts, device=logits.device)[:, None] > 0
        result = logits if result is None else torch.where(took_part, logits, result)
    assert result is not None
    return result
