"""Where the flags of each engine were looked up."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labkit.plan.presets import Source

_DATE = "2026-12-01"
_VLLM = "https://docs.vllm.ai/en/latest"
SOURCES: Mapping[str, tuple[Source, ...]] = MappingProxyType(
    {
        "vllm": (
            Source(f"{_VLLM}/serving/data_parallel_deployment/", "the repository's docs", _DATE),
            Source(f"{_VLLM}/serving/expert_parallel_deployment/", "a stored copy", _DATE),
            Source(f"{_VLLM}/features/nixl_connector_usage/", "the repository's docs", _DATE),
            Source(
                "https://github.com/vllm-project/vllm/blob/main/vllm/config/cache.py",
                "a stored copy: the types of a KV cache",
                _DATE,
            ),
        ),
        "sglang": (
            Source(
                "https://docs.sglang.io/advanced_features/server_arguments.html",
                "the repository's docs",
                _DATE,
            ),
            Source(
                "https://docs.sglang.io/advanced_features/expert_parallelism.html",
                "a stored copy",
                _DATE,
            ),
        ),
        "tensorrt-llm": (
            Source(
                "https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve/trtllm-serve.html",
                "stored copies of several releases",
                _DATE,
            ),
            Source(
                "https://nvidia.github.io/TensorRT-LLM/features/parallel-strategy.html",
                "a stored copy",
                _DATE,
            ),
            Source(
                "https://nvidia.github.io/TensorRT-LLM/features/disagg-serving.html",
                "the repository's docs",
                _DATE,
            ),
            Source(
                "https://nvidia.github.io/TensorRT-LLM/features/quantization.html",
                "a stored copy: the types of a KV cache",
                _DATE,
            ),
        ),
    }
)
"""By engine."""
