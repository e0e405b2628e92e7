"""Whether a layout fits, and how many tokens its KV cache holds, rank by rank and stage by stage.

    usable = gpu_memory_utilization * memory
    pool   = usable - weights - activations - runtime

Every attention copy can hold only what its fullest stage can: the capacity is the minimum over the
stages, each with its own weights and its own layers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from labkit.plan import memory_overhead
from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec, require_count
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.rank_weights import StageShare, stage_shares

_GIB = 2**30
_LONG_REQUEST = 4096
"""Tokens of a request by which stages are compared."""


@dataclass(frozen=True)
class StageMemory:
    """One rank of one pipeline stage, in bytes.

    Attributes:
        weight_bytes: by part.
        kv_pool_bytes: what is left for the cache; below 0 where the rest does not fit.
        element_bytes: of the KV cache.
    """

    share: StageShare
    usable_bytes: float
    activation_bytes: float
    runtime_bytes: float
    element_bytes: float
    block_size: int

    @property
    def stage(self) -> int:
        return self.share.stage

    @property
    def layers(self) -> range:
        """Indices of its layers in the model."""
        return self.share.layers

    @property
    def weight_bytes(self) -> Mapping[str, float]:
        return self.share.weight_bytes

    @cached_property
    def total_weight_bytes(self) -> float:
        """All parts."""
        return self.share.total_weight_bytes

    @property
    def parts(self) -> Mapping[str, float]:
        """Everything that shares `usable_bytes`, the KV pool last; they sum to it."""
        return {
            **self.weight_bytes,
            "activations": self.activation_bytes,
            "runtime": self.runtime_bytes,
            "KV pool": self.kv_pool_bytes,
        }

    @property
    def taken_bytes(self) -> float:
        """All but the KV pool."""
        return self.total_weight_bytes + self.activation_bytes + self.runtime_bytes

    @property
    def kv_pool_bytes(self) -> float:
        return self.usable_bytes - self.taken_bytes

    @cached_property
    def kv_bytes_per_token(self) -> float:
        """Of this stage's layers whose cache grows without end, on one rank."""
        return self.share.bytes_per_token(self.element_bytes)

    @cached_property
    def state_bytes_per_sequence(self) -> float:
        """Recurrent states, whatever the length."""
        return sum(cache.state_bytes for cache in self.share.caches)

    def sequence_bytes(self, length: int) -> float:
        """That one sequence of `length` tokens takes, in whole blocks; windows and states too."""
        blocks = -(-length // self.block_size)
        return self.share.sequence_bytes(blocks * self.block_size, self.element_bytes)

    @property
    def kv_blocks(self) -> int:
        """Whole blocks of the layers that keep every token, were the pool theirs alone; 0 where
        there are none."""
        return self.blocks_in(self.kv_pool_bytes)

    def blocks_in(self, pool_bytes: float) -> int:
        """Whole blocks in a pool of `pool_bytes`."""
        if pool_bytes <= 0 or not self.kv_bytes_per_token:
            return 0
        return math.floor(pool_bytes / (self.kv_bytes_per_token * self.block_size))

    @property
    def kv_tokens(self) -> int:
        """Tokens of these blocks."""
        return self.kv_blocks * self.block_size


@dataclass(frozen=True)
class MemoryPlan:
    """One replica. `stages` has a rank of each pipeline stage; the other ranks are like it."""

    model: ModelSpec
    device: DeviceSpec
    layout: Layout
    options: EngineOptions
    stages: tuple[StageMemory, ...]

    @property
    def limiting_stage(self) -> int:
        """Index of the stage that sets the capacity: room for the fewest long requests."""
        length = min(self.model.max_position_embeddings, _LONG_REQUEST)

        def room(stage: StageMemory) -> tuple[float, float]:
            return stage.kv_pool_bytes / _least(stage.sequence_bytes(length)), stage.kv_pool_bytes

        return min(self.stages, key=room).stage

    @property
    def fits(self) -> bool:
        """Whether every stage has room for the cache of one block, or of one short sequence."""
        return all(
            stage.kv_pool_bytes > 0
            and stage.sequence_bytes(self.options.block_size) <= stage.kv_pool_bytes
            for stage in self.stages
        )

    @property
    def missing_bytes(self) -> float:
        """Bytes that a rank of the tightest stage lacks for the cache of one block; 0: it fits."""
        block = self.options.block_size
        return max(
            0.0, *(stage.sequence_bytes(block) - stage.kv_pool_bytes for stage in self.stages)
        )

    @property
    def reason(self) -> str:
        """Why it does not fit, with the numbers; "" where it does."""
        if self.fits:
            return ""
        stage = min(self.stages, key=lambda s: s.kv_pool_bytes)
        where = f"stage {stage.stage}: " if len(self.stages) > 1 else ""
        usable, weights = stage.usable_bytes / _GIB, stage.total_weight_bytes / _GIB
        of = f"{self.options.gpu_memory_utilization:.0%} of a {self.device.title}"
        if stage.total_weight_bytes > stage.usable_bytes:
            over = weights - usable
            return (
                f"{where}the weights of a rank, {weights:.1f} GiB, are more than the "
                f"{usable:.1f} GiB that are usable ({of}), by {over:.1f} GiB"
            )
        rest = (stage.activation_bytes + stage.runtime_bytes) / _GIB
        missing = (stage.sequence_bytes(self.options.block_size) - stage.kv_pool_bytes) / _GIB
        return (
            f"{where}weights of {weights:.1f} GiB and {rest:.1f} GiB of activations and runtime "
            f"leave no room for a KV cache in {usable:.1f} GiB ({of}): "
            f"{missing:.1f} GiB are missing"
        )

    @property
    def kv_blocks(self) -> int:
        """Blocks of one attention copy: the minimum over stages, 0 where it does not fit."""
        if not self.fits:
            return 0
        return min((s.kv_blocks for s in self.stages if s.kv_bytes_per_token), default=0)

    @property
    def kv_tokens(self) -> int:
        """Tokens of one attention copy's blocks."""
        return self.kv_blocks * self.options.block_size

    @property
    def replica_kv_tokens(self) -> int:
        """Tokens of all attention copies of the replica."""
        return self.layout.dp * self.kv_tokens

    @property
    def keeps_every_token(self) -> bool:
        """Whether all caches grow with every token: no windows, no states, so `kv_tokens` is what
        requests of any length share."""
        return all(
            cache.window is None and not cache.state_bytes
            for stage in self.stages
            for cache in stage.share.caches
        )

    def tokens_of_requests(self, length: int) -> int:
        """Tokens that one attention copy holds in whole requests of `length` tokens.

        As many as `kv_tokens` where every layer keeps every token. Windows and states take room by
        the request, so there short requests hold fewer.
        """
        if self.keeps_every_token:
            return self.kv_tokens
        return int(self.max_concurrency(length)) * length

    def max_concurrency(self, length: int) -> float:
        """Sequences of `length` tokens that one attention copy holds, with fractions.

        Raises ValueError for a length that is no whole number of at least 1.
        """
        require_count("length", length)
        if not self.fits:
            return 0.0
        return min(
            stage.kv_pool_bytes / _least(stage.sequence_bytes(length)) for stage in self.stages
        )

    def longest_context(self) -> int:
        """Tokens of the longest single sequence that fits, at most the model's positions."""
        if not self.fits:
            return 0
        low, high = 0, self.model.max_position_embeddings
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.max_concurrency(middle) >= 1 else (low, middle - 1)
        return low


def plan_memory(
    model: ModelSpec,
    device: DeviceSpec,
    layout: Layout | None = None,
    options: EngineOptions | None = None,
) -> MemoryPlan:
    """The memory of a layout on a device; whether the layout is legal is another question.

    Raises:
        PartitionError: a pipeline stage would hold no layer.
    """
    layout, options = layout or Layout(), options or EngineOptions()
    activations = options.activation_bytes
    if activations is None:
        activations = memory_overhead.activation_bytes(
            model, layout, options.max_num_batched_tokens, options.max_num_seqs
        )
    stages = []
    for share in stage_shares(model, layout, options.num_redundant_experts):
        runtime = options.runtime_bytes
        if runtime is None:
            runtime = memory_overhead.runtime_bytes(model, share.total_weight_bytes, layout)
        stages.append(
            StageMemory(
                share=share,
                usable_bytes=options.gpu_memory_utilization * device.memory_bytes,
                activation_bytes=activations,
                runtime_bytes=runtime,
                element_bytes=options.cache_element_bytes(model),
                block_size=options.block_size,
            )
        )
    return MemoryPlan(model, device, layout, options, tuple(stages))


def _least(size: float) -> float:
    return size if size > 0 else 1.0
