"""What an inference engine is started with, as far as memory and time follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from labkit.plan.hardware import require_count, require_number, require_positive
from labkit.plan.model import ModelSpec

CACHE_BYTES = MappingProxyType(
    {
        "bfloat16": 2.0,
        "float16": 2.0,
        "float32": 4.0,
        "fp8": 1.0,
        "fp8_e4m3": 1.0,
        "fp8_e5m2": 1.0,
        "int8": 1.0,
    }
)
"""Bytes of one element of the KV cache, by `--kv-cache-dtype`."""


@dataclass(frozen=True)
class EngineOptions:
    """The settings of an engine, named as vLLM's flags.

    Attributes:
        gpu_memory_utilization: part of a GPU's memory that the engine may use for everything.
        kv_cache_dtype: of the KV cache; "auto" keeps it in the model's dtype.
        block_size: tokens of one block of the cache.
        max_num_batched_tokens: tokens of one step at most, which sets the activations' peak.
        max_num_seqs: sequences of one step at most.
        num_redundant_experts: copies of experts beyond the first of each, over all EP ranks.
        activation_bytes: the peak of activations on a rank; None models it.
        runtime_bytes: what a rank needs besides weights, activations and cache; None models it.
    """

    gpu_memory_utilization: float = 0.9
    kv_cache_dtype: str = "auto"
    block_size: int = 16
    max_num_batched_tokens: int = 8192
    max_num_seqs: int = 256
    num_redundant_experts: int = 0
    activation_bytes: float | None = None
    runtime_bytes: float | None = None

    def __post_init__(self) -> None:
        require_positive("gpu_memory_utilization", self.gpu_memory_utilization, "")
        if self.gpu_memory_utilization > 1:
            raise ValueError(
                f"gpu_memory_utilization is {self.gpu_memory_utilization}; it must be at most 1: "
                "a part of the memory, 0.9 for 90 %"
            )
        if self.kv_cache_dtype != "auto" and self.kv_cache_dtype not in CACHE_BYTES:
            known = ", ".join(("auto", *CACHE_BYTES))
            raise ValueError(f"kv_cache_dtype is {self.kv_cache_dtype!r}; there are {known}")
        for name in ("block_size", "max_num_batched_tokens", "max_num_seqs"):
            require_count(name, getattr(self, name))
        redundant = self.num_redundant_experts
        if isinstance(redundant, bool) or not isinstance(redundant, int) or redundant < 0:
            raise ValueError(
                f"num_redundant_experts is {redundant!r}; it must be a whole number of at least 0"
            )
        for name in ("activation_bytes", "runtime_bytes"):
            value = getattr(self, name)
            if value is not None:
                require_number(name, value)
                if value < 0:
                    raise ValueError(f"{name} is {value}; it must be at least 0")

    def cache_element_bytes(self, model: ModelSpec) -> float:
        """Bytes of one element of the KV cache."""
        if self.kv_cache_dtype != "auto":
            return CACHE_BYTES[self.kv_cache_dtype]
        return CACHE_BYTES.get(model.dtype, 2.0)
