"""Shapes of public models, each with the place it was read from. Weights are not needed for them.

Only what changes a layout or a byte count is written down; rotary settings and context lengths
stay at their defaults, so load weights with `DecoderSpec.from_hf` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from labkit.plan.decoder import DecoderSpec


@dataclass(frozen=True)
class Source:
    """Where figures come from. url: the original; read_in: the copy that was read; date: when."""

    url: str
    read_in: str
    date: str

    def __str__(self) -> str:
        return f"{self.url}, read on {self.date} in {self.read_in}"


@dataclass(frozen=True)
class Preset:
    """A model's shape under the name it is known by, with the source of the figures."""

    name: str
    title: str
    spec: DecoderSpec
    source: Source


_DATE = "2026-11-30"
_AICONFIGURATOR = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0)"


def _llama_3_1(
    size: str, *, layers: int, hidden: int, heads: int, intermediate: int
) -> tuple[str, Preset]:
    name = f"llama-3.1-{size.lower()}"
    spec = DecoderSpec(
        model_type="llama",
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=8,
        head_dim=128,
        intermediate_size=intermediate,
        vocab_size=128256,
        dtype="bfloat16",
    )
    url = f"https://huggingface.co/meta-llama/Llama-3.1-{size}/blob/main/config.json"
    return name, Preset(name, f"Llama 3.1 {size}", spec, Source(url, _AICONFIGURATOR, _DATE))


_SMOLLM2_135M = Preset(
    "smollm2-135m",
    "SmolLM2 135M",
    DecoderSpec(
        model_type="llama",
        num_layers=30,
        hidden_size=576,
        num_heads=9,
        num_kv_heads=3,
        head_dim=64,
        intermediate_size=1536,
        vocab_size=49152,
        tie_word_embeddings=True,
        dtype="bfloat16",
    ),
    Source(
        "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct/blob/main/config.json",
        "the file that `labkit fetch smollm2-135m` brings",
        _DATE,
    ),
)
_SMOLLM2_360M = Preset(
    "smollm2-360m",
    "SmolLM2 360M",
    DecoderSpec(
        model_type="llama",
        num_layers=32,
        hidden_size=960,
        num_heads=15,
        num_kv_heads=5,
        head_dim=64,
        intermediate_size=2560,
        vocab_size=49152,
        tie_word_embeddings=True,
        dtype="bfloat16",
    ),
    Source(
        "https://huggingface.co/HuggingFaceTB/SmolLM2-360M/blob/main/config.json",
        "a stored copy of that page",
        _DATE,
    ),
)
_QWEN_2_5_HALF_B = Preset(
    "qwen2.5-0.5b",
    "Qwen2.5 0.5B",
    DecoderSpec(
        model_type="qwen2",
        num_layers=24,
        hidden_size=896,
        num_heads=14,
        num_kv_heads=2,
        head_dim=64,
        intermediate_size=4864,
        vocab_size=151936,
        tie_word_embeddings=True,
        qkv_bias=True,
        dtype="bfloat16",
    ),
    Source(
        "https://huggingface.co/Qwen/Qwen2.5-0.5B/blob/main/config.json",
        "a public repository that quotes the file",
        _DATE,
    ),
)
_LLAMA_2_7B = Preset(
    "llama-2-7b",
    "Llama 2 7B",
    DecoderSpec(
        model_type="llama",
        num_layers=32,
        hidden_size=4096,
        num_heads=32,
        num_kv_heads=32,
        head_dim=128,
        intermediate_size=11008,
        vocab_size=32000,
        dtype="float16",
    ),
    Source(
        "https://huggingface.co/meta-llama/Llama-2-7b-hf/blob/main/config.json",
        "microsoft/Olive, examples/llm/config.py",
        _DATE,
    ),
)
_QWEN_2_5_72B = Preset(
    "qwen2.5-72b",
    "Qwen2.5 72B",
    DecoderSpec(
        model_type="qwen2",
        num_layers=80,
        hidden_size=8192,
        num_heads=64,
        num_kv_heads=8,
        head_dim=128,
        intermediate_size=29568,
        vocab_size=152064,
        qkv_bias=True,
        dtype="bfloat16",
    ),
    Source(
        "https://huggingface.co/Qwen/Qwen2.5-72B/blob/main/config.json",
        "the config of BitStack/BitStack-Qwen2.5-72B on huggingface.co, which keeps the shape",
        _DATE,
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "smollm2-135m": _SMOLLM2_135M,
        "smollm2-360m": _SMOLLM2_360M,
        "qwen2.5-0.5b": _QWEN_2_5_HALF_B,
        "llama-2-7b": _LLAMA_2_7B,
        **dict(
            [
                _llama_3_1("8B", layers=32, hidden=4096, heads=32, intermediate=14336),
                _llama_3_1("70B", layers=80, hidden=8192, heads=64, intermediate=28672),
            ]
        ),
        "qwen2.5-72b": _QWEN_2_5_72B,
        **dict([_llama_3_1("405B", layers=126, hidden=16384, heads=128, intermediate=53248)]),
    }
)
"""Rising in size. `llama-2-7b` has as many KV heads as query heads, the others fewer; at TP 5
`smollm2-360m` is the one whose vocabulary needs padding rows."""
