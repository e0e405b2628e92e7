"""Single questions about memory, answered with the numbers and a sentence.

How long a context, how many requests, how many tokens in a pool, which layout an engine's log line
comes from. Whether a layout is legal is asked in `labkit.plan.legality`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec, require_count, require_number, require_positive
from labkit.plan.layout import Layout
from labkit.plan.legality import Legality, check
from labkit.plan.memory import MemoryPlan, plan_memory
from labkit.plan.model import ModelSpec
from labkit.plan.rank_weights import StageShare, stage_shares

_DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_CACHE_DTYPES = ("auto", "fp8")
_GIB = 2**30


@dataclass(frozen=True)
class PoolAnswer:
    """What a KV pool of a given size holds, on each rank.

    tokens: of whole blocks. concurrency: requests of `length` tokens, with fractions; None
    where no length was asked for.
    """

    pool_bytes: float
    bytes_per_token: float
    blocks: int
    tokens: int
    length: int | None
    concurrency: float | None
    sentence: str


def tokens_in_pool(
    model: ModelSpec,
    pool_bytes: float,
    layout: Layout | None = None,
    options: EngineOptions | None = None,
    *,
    length: int | None = None,
) -> PoolAnswer:
    """What `pool_bytes` of KV cache on every rank hold: tokens, and requests of `length` tokens.

    Raises ValueError for a pool below 0 or a length below 1.
    """
    layout, options = layout or Layout(), options or EngineOptions()
    require_number("pool_bytes", pool_bytes)
    if pool_bytes < 0:
        raise ValueError(f"pool_bytes is {pool_bytes}; it must be at least 0")
    if length is not None:
        require_count("length", length)
    element = options.cache_element_bytes(model)
    shares = stage_shares(model, layout)
    per_token = max(share.bytes_per_token(element) for share in shares)
    block = per_token * options.block_size
    blocks = int(pool_bytes // block) if block else 0
    tokens = blocks * options.block_size
    concurrency = None
    if length is not None:
        concurrency = min(
            pool_bytes / _in_blocks(share, length, element, options) for share in shares
        )
    sentence = (
        f"{pool_bytes / _GIB:.2f} GiB hold {blocks:,} blocks of {options.block_size} tokens, "
        f"{tokens:,} tokens at {per_token / 1024:g} KiB a token and rank"
    )
    if length is not None:
        sentence += f": {concurrency:.2f} requests of {length:,} tokens"
    return PoolAnswer(pool_bytes, per_token, blocks, tokens, length, concurrency, sentence)


def _in_blocks(
    share: StageShare, length: int, element_bytes: float, options: EngineOptions
) -> float:
    whole = -(-length // options.block_size) * options.block_size
    return share.sequence_bytes(whole, element_bytes)


@dataclass(frozen=True)
class FitAnswer:
    """Whether a layout can be and fits, and what it then holds.

    missing_bytes: on the fullest rank; 0 where it fits. longest_context: of a single request.
    concurrency: requests of `length` tokens in one replica, with fractions.
    """

    plan: MemoryPlan
    legality: Legality
    length: int
    missing_bytes: float
    longest_context: int
    concurrency: float
    sentence: str

    @property
    def fits(self) -> bool:
        """Whether the layout is legal and one request of `length` tokens can run."""
        return self.legality.is_legal and self.plan.fits and self.concurrency >= 1


def fit(
    model: ModelSpec,
    device: DeviceSpec,
    layout: Layout | None = None,
    options: EngineOptions | None = None,
    *,
    length: int | None = None,
) -> FitAnswer:
    """Does it fit, how long a context, how many requests of `length` tokens (the model's longest).

    Raises ValueError for a length below 1 or beyond the model's positions.
    """
    length = model.max_position_embeddings if length is None else length
    require_count("length", length)
    if length > model.max_position_embeddings:
        raise ValueError(
            f"length is {length:,}; the model has {model.max_position_embeddings:,} positions"
        )
    plan = plan_memory(model, device, layout, options)
    legality = check(model, plan.layout)
    missing = max(stage.sequence_bytes(length) - stage.kv_pool_bytes for stage in plan.stages)
    longest = plan.longest_context()
    concurrency = plan.layout.dp * plan.max_concurrency(length)
    if not plan.fits:
        sentence = f"It does not fit: {plan.reason}"
    elif not legality.is_legal:
        why = "; ".join(reason.text for reason in legality.reasons)
        sentence = f"Memory would do, but the layout is illegal: {why}"
    elif concurrency < 1:
        sentence = (
            f"The weights fit, one request of {length:,} tokens does not: {missing / _GIB:.2f} GiB "
            f"are missing on a rank; the longest that fits has {longest:,} tokens"
        )
    else:
        sentence = (
            f"It fits, with room for {concurrency:.2f} requests of {length:,} tokens: "
            f"{plan.layout.dp * plan.tokens_of_requests(length):,} tokens of KV cache"
        )
    return FitAnswer(plan, legality, length, max(0.0, missing), longest, concurrency, sentence)


@dataclass(frozen=True)
class BlockExplanation:
    """A layout that comes near a printed number of blocks.

    error: of the modelled number, relative to the printed one. pool_bytes: that the printed blocks
    take on a rank, exact for this layout.
    """

    layout: Layout
    kv_cache_dtype: str
    blocks: int
    error: float
    pool_bytes: float


def explain_blocks(
    model: ModelSpec,
    device: DeviceSpec,
    blocks: int,
    options: EngineOptions | None = None,
    *,
    degrees: Iterable[int] = _DEGREES,
) -> tuple[BlockExplanation, ...]:
    """Which TP explains `blocks` in an engine's log, and which KV dtype: legal ones, nearest first.

    Only layouts that fit are listed. How near is near enough is for the reader: activations and
    runtime are modelled.

    Raises ValueError for a number of blocks below 1.
    """
    require_count("blocks", blocks)
    options = options or EngineOptions()
    found = []
    for tp in degrees:
        layout = Layout(tp=tp)
        if not check(model, layout).is_legal:
            continue
        for dtype in _CACHE_DTYPES:
            chosen = replace(options, kv_cache_dtype=dtype)
            plan = plan_memory(model, device, layout, chosen)
            if not plan.kv_blocks:
                continue
            per_block = plan.stages[0].kv_bytes_per_token * options.block_size
            error = plan.kv_blocks / blocks - 1
            found.append(BlockExplanation(layout, dtype, plan.kv_blocks, error, blocks * per_block))
    return tuple(sorted(found, key=lambda one: abs(one.error)))


@dataclass(frozen=True)
class UnexplainedMemory:
    """What a log line leaves over: usable memory less weights, less the printed KV blocks."""

    usable_bytes: float
    weight_bytes: float
    pool_bytes: float

    @property
    def other_bytes(self) -> float:
        """Activations and runtime, as they must have been."""
        return self.usable_bytes - self.weight_bytes - self.pool_bytes


def unexplained_memory(
    model: ModelSpec,
    device: DeviceSpec,
    blocks: int,
    layout: Layout | None = None,
    options: EngineOptions | None = None,
    *,
    weight_bytes: float | None = None,
) -> UnexplainedMemory:
    """How much a rank used for neither weights nor cache, if it printed `blocks`.

    weight_bytes: of a rank as the log says; None takes those of the model.
    """
    require_count("blocks", blocks)
    if weight_bytes is not None:
        require_positive("weight_bytes", weight_bytes, "bytes")
    plan = plan_memory(model, device, layout, options)
    stage = plan.stages[plan.limiting_stage]
    return UnexplainedMemory(
        usable_bytes=stage.usable_bytes,
        weight_bytes=stage.total_weight_bytes if weight_bytes is None else weight_bytes,
        pool_bytes=blocks * plan.options.block_size * stage.kv_bytes_per_token,
    )
