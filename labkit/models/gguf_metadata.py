"""The key-value part of a GGUF file, and the Hugging Face config it amounts to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFReader

from labkit.models.checkpoint import CheckpointError
from labkit.plan.config_fields import is_whole
from labkit.plan.decoder import UnsupportedModelError

# Mistral's files call themselves llama.
ARCHITECTURES = ("llama", "qwen2", "qwen3")


class GGUFMetadata:
    """Typed access to the fields; every error names the file and the key."""

    def __init__(self, reader: GGUFReader, path: Path) -> None:
        self._reader = reader
        self.path = path
        self.architecture = str(self.require("general.architecture"))
        if self.architecture not in ARCHITECTURES:
            raise UnsupportedModelError(
                "general.architecture",
                self.architecture,
                f"{path.name} is none of {', '.join(ARCHITECTURES)}",
            )
        if any(tensor.name == "rope_freqs.weight" for tensor in reader.tensors):
            raise UnsupportedModelError(
                "rope_freqs.weight",
                "present",
                f"{path.name} keeps Llama 3 rotary scaling as a table without its parameters; "
                "use the Hugging Face directory of this model",
            )

    def get(self, key: str, default: Any = None) -> Any:
        """Value of a full key such as `tokenizer.ggml.model`."""
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def require(self, key: str) -> Any:
        """Value of a full key; CheckpointError without it."""
        value = self.get(key)
        if value is None:
            raise CheckpointError(f"{self.path} has no metadata {key}")
        return value

    def hf_config(self, *, tied: bool, attention_bias: bool) -> dict[str, Any]:
        """The model as the mapping a `config.json` would hold."""
        arch = self.architecture
        heads = self.require(f"{arch}.attention.head_count")
        hidden = self.require(f"{arch}.embedding_length")
        window = self.get(f"{arch}.attention.sliding_window")
        config: dict[str, Any] = {
            "model_type": "mistral" if arch == "llama" and window else arch,
            "hidden_size": hidden,
            "num_hidden_layers": self.require(f"{arch}.block_count"),
            "num_attention_heads": heads,
            "num_key_value_heads": self.get(f"{arch}.attention.head_count_kv", heads),
            "head_dim": self.get(f"{arch}.attention.key_length") or _quotient(hidden, heads),
            "intermediate_size": self.require(f"{arch}.feed_forward_length"),
            "vocab_size": self._vocab_size(),
            "max_position_embeddings": self.require(f"{arch}.context_length"),
            "rms_norm_eps": _shortest(self.require(f"{arch}.attention.layer_norm_rms_epsilon")),
            "rope_theta": _shortest(self.get(f"{arch}.rope.freq_base", 10000.0)),
            "hidden_act": "silu",
            "tie_word_embeddings": tied,
            "bos_token_id": self.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.get("tokenizer.ggml.eos_token_id"),
            "torch_dtype": "float32",
        }
        if arch == "llama":
            config["attention_bias"] = attention_bias
        if window:
            config |= {"sliding_window": window, "use_sliding_window": True, "max_window_layers": 0}
        scaling = self._rope_scaling()
        if scaling is not None:
            config["rope_scaling"] = scaling
        return config

    def _vocab_size(self) -> Any:
        size = self.get(f"{self.architecture}.vocab_size")
        return len(self.require("tokenizer.ggml.tokens")) if size is None else size

    def _rope_scaling(self) -> dict[str, Any] | None:
        prefix = f"{self.architecture}.rope.scaling"
        kind = self.get(f"{prefix}.type", "none")
        if kind == "none":
            return None
        if kind not in ("linear", "yarn"):
            raise UnsupportedModelError(f"{prefix}.type", kind, "readable here: none, linear, yarn")
        scaling = {"rope_type": kind, "factor": _shortest(self.require(f"{prefix}.factor"))}
        original = self.get(f"{prefix}.original_context_length")
        if original is not None:
            scaling["original_max_position_embeddings"] = original
        return scaling


def _quotient(size: Any, parts: Any) -> int | None:
    """None where the file holds something else than counts; the config's reader names it."""
    return size // parts if is_whole(size) and is_whole(parts) and parts > 0 else None


def _shortest(value: Any) -> Any:
    """The decimal somebody wrote before it became a float32: 9.99999975e-06 -> 1e-05."""
    return float(str(np.float32(value))) if isinstance(value, int | float) else value
