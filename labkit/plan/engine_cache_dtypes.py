"""What each engine calls the types of a KV cache, and which it does not have.

A type that only the planner knows must not reach a command line: vLLM and SGLang stop at it with a
list of their own, and TensorRT-LLM keeps the cache in the model's dtype and says so in its log.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from labkit.plan.engine_options import CACHE_BYTES
from labkit.plan.hardware import unknown_name

_TITLES: Mapping[str, str] = MappingProxyType(
    {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
)
_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "vllm": "--kv-cache-dtype",
        "sglang": "--kv-cache-dtype",
        "tensorrt-llm": "kv_cache_config.dtype",
    }
)
_WORDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "vllm": MappingProxyType(
            {name: name for name in ("bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2")}
        ),
        "sglang": MappingProxyType(
            {
                "bfloat16": "bf16",
                "fp8": "fp8_e4m3",
                "fp8_e4m3": "fp8_e4m3",
                "fp8_e5m2": "fp8_e5m2",
            }
        ),
        "tensorrt-llm": MappingProxyType({"fp8": "fp8", "fp8_e4m3": "fp8"}),
    }
)
"""The engine's word for each type of `EngineOptions`; its "fp8" is E4M3 everywhere."""
_AS_THE_MODEL = ("bfloat16", "float16")


def cache_dtype_word(engine: str, dtype: str, model_dtype: str) -> str:
    """What to tell an engine; "" where its default, the model's dtype, is meant.

    Args:
        engine: one of `engine_flags.ENGINES`.
        dtype: as in `EngineOptions.kv_cache_dtype`.
        model_dtype: of the checkpoint, which every engine takes for its cache unless told.

    Raises:
        ValueError: an engine that is not known, or one that lacks the type, with what it has.
    """
    if engine not in _WORDS:
        raise unknown_name("engine", engine, _WORDS)
    words = _WORDS[engine]
    if dtype in words:
        return words[dtype]
    if dtype == "auto" or (dtype == model_dtype and dtype in _AS_THE_MODEL):
        return ""
    taken = ", ".join(("auto", *dict.fromkeys(words.values())))
    raise ValueError(
        f"{_TITLES[engine]} has no KV cache in {dtype}: {_SETTINGS[engine]} takes {taken}, and "
        f"auto is {model_dtype} here; nearest: {_nearest(words, dtype)}"
    )


def missing_cache_dtype(engine: str, dtype: str, model_dtype: str) -> str:
    """Why an engine cannot keep its KV cache so, in a sentence; "" where it can."""
    try:
        cache_dtype_word(engine, dtype, model_dtype)
    except ValueError as error:
        return str(error)
    return ""


def _nearest(words: Mapping[str, str], dtype: str) -> str:
    """The planner's name of a type that the engine has, of as many bytes or the next fewer."""
    fitting = [name for name in words if CACHE_BYTES[name] <= CACHE_BYTES[dtype]]
    wide = [name for name in fitting if CACHE_BYTES[name] > 1]
    if CACHE_BYTES[dtype] > 1:
        return wide[0] if wide else "auto"
    return fitting[0]
