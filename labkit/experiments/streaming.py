"""Text from a model cut over real ranks, handed over as it is made."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from labkit.layers.sampling import Sampler
from labkit.models.checkpoint import open_checkpoint
from labkit.models.generate import check_prompts, generate
from labkit.models.library import ModelNotFoundError, is_present, known_models, resolve
from labkit.models.llama import load_model
from labkit.plan.layout import validate
from labkit.plan.shard import counted
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool


@dataclass(frozen=True)
class Request:
    """What to generate, and over how many ranks. `temperature` 0 is greedy."""

    model: str
    prompt: str
    tensor_parallel_size: int = 1
    dtype: str = "float32"
    max_tokens: int = 128
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    allow_uneven_heads: bool = False
    chat: bool = True


@dataclass(frozen=True)
class Summary:
    """How it went. Seconds are measured on rank 0; the first token's include the prompt."""

    num_prompt_tokens: int
    num_new_tokens: int
    load_seconds: float
    first_token_seconds: float
    decode_seconds: float  # of the tokens after the first
    tensor_parallel_size: int

    def __str__(self) -> str:
        ranks = "1 rank" if self.tensor_parallel_size == 1 else f"{self.tensor_parallel_size} ranks"
        text = (
            f"[{self.num_prompt_tokens} prompt tokens, {self.num_new_tokens} new, {ranks}; "
            f"loaded in {self.load_seconds:.1f} s, first token after "
            f"{self.first_token_seconds * 1e3:.0f} ms"
        )
        if self.num_new_tokens > 1 and self.decode_seconds > 0:
            text += f", then {(self.num_new_tokens - 1) / self.decode_seconds:.1f} tokens/s"
        return f"{text}; measured]"


def stream(
    request: Request,
    on_text: Callable[[str], None],
    *,
    say: Callable[[str], None] = print,
    timeout: float = 600.0,
) -> Summary:
    """Generate over a pool of ranks; `on_text` gets each piece of text as soon as it is final.

    Everything is checked before a process starts. A known model that is not on this machine is
    replaced by the tiny one, and `say` tells how to get it. `timeout` in seconds covers loading
    and generating.

    Raises:
        LayoutError: the model does not divide over that many ranks.
        ModelNotFoundError, CheckpointError, ValueError: the request cannot be met.
        RankError: a rank failed.
    """
    name, folder = _find(request.model, say)
    checkpoint = open_checkpoint(folder)
    validate(
        checkpoint.spec,
        tp=request.tensor_parallel_size,
        allow_uneven_heads=request.allow_uneven_heads,
    )
    _check_sampling(request)
    if request.max_tokens < 1:
        raise ValueError(f"--max-tokens is {request.max_tokens}; it must be at least 1")
    _check_text(request.prompt)
    tokenizer = checkpoint.load_tokenizer()
    chat = checkpoint.chat_format() if request.chat else None
    prompt_ids = tokenizer.encode(chat.ask(request.prompt) if chat else request.prompt)
    if not prompt_ids:
        raise ValueError("the prompt is empty; give the model at least one character")
    check_prompts(checkpoint.spec, [prompt_ids], request.max_tokens)
    decoder = tokenizer.stream()

    def show(rank: int, token_id: Any) -> None:
        on_text(decoder.push(token_id))

    ranks = counted(request.tensor_parallel_size, "rank")
    say(f"{name} over {ranks}, {request.dtype} ...")
    with RankPool(request.tensor_parallel_size, timeout=timeout) as pool:
        summary = pool.run(run_rank, request, folder, prompt_ids, on_progress=show)[0]
    on_text(decoder.flush())
    return summary


def run_rank(comm: Comm, request: Request, folder: Path, prompt_ids: list[int]) -> Summary:
    """On every rank: load this rank's part and generate. Rank 0 reports each token id."""
    started = monotonic()
    model = load_model(
        folder,
        comm,
        dtype=getattr(torch, request.dtype),
        allow_uneven_heads=request.allow_uneven_heads,
    )
    comm.barrier()
    loaded = first = last = monotonic()
    num_tokens = 0
    for tokens in generate(model, [prompt_ids], request.max_tokens, sampler=_sampler(request)):
        last = monotonic()
        first = last if num_tokens == 0 else first
        num_tokens += 1
        if comm.rank == 0:
            comm.report(tokens.token_ids[0])
    return Summary(
        num_prompt_tokens=len(prompt_ids),
        num_new_tokens=num_tokens,
        load_seconds=loaded - started,
        first_token_seconds=first - loaded,
        decode_seconds=last - first,
        tensor_parallel_size=comm.size,
    )


def _find(name: str, say: Callable[[str], None]) -> tuple[str, Path]:
    """The model asked for, or `tiny` where it is known but not on this machine."""
    try:
        return name, resolve(name)
    except ModelNotFoundError as missing:
        if name not in known_models() or not is_present("tiny"):
            raise
        say(f"{missing}. Using tiny.")
        return "tiny", resolve("tiny")


def _sampler(request: Request) -> Sampler:
    return Sampler(request.temperature, request.top_k, request.top_p, request.seed)


def _check_text(prompt: str) -> None:
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the prompt holds bytes that are not UTF-8 (at character {error.start}): "
            "give it as UTF-8 text"
        ) from None


def _check_sampling(request: Request) -> None:
    """Try each setting on its own, so that the error names the option it came by."""
    for name in ("temperature", "top_k", "top_p", "seed"):
        try:
            Sampler(**{name: getattr(request, name)})
        except ValueError as error:
            raise ValueError(f"--{name.replace('_', '-')}: {error}") from None
