"""What a decoder of `labkit.models` needs to load and run a model: sizes, biases, rotary settings.

`labkit.plan.decoder_config` reads them from a Hugging Face config; one that asks for something the
decoder does not do is refused by the name of the field, never approximated. To size any other
model without running it, see `labkit.plan.model.ModelSpec`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.plan.config_fields import UnsupportedModelError

__all__ = ["DecoderSpec", "RopeScaling", "UnsupportedModelError"]


@dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched beyond the trained context.

    Field names are those of Hugging Face's `rope_scaling`; `low_freq_factor` and
    `high_freq_factor` belong to `llama3`, the rest below them to `yarn`.
    """

    rope_type: str
    factor: float
    original_max_position_embeddings: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True


@dataclass(frozen=True)
class DecoderSpec:
    """A dense decoder of the Llama family. Sizes count elements; `dtype` names the file's."""

    model_type: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    tie_word_embeddings: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling | None = None
    sliding_window: int | None = None
    max_position_embeddings: int = 2048
    hidden_act: str = "silu"
    bos_token_id: int | None = None
    eos_token_ids: tuple[int, ...] = ()
    dtype: str = "float32"

    @classmethod
    def from_hf(cls, config: Mapping[str, Any] | str | Path) -> DecoderSpec:
        """Read a config: its mapping, its `config.json`, or the directory that holds one.

        Raises:
            UnsupportedModelError: names the field and the value that cannot be honoured.
            FileNotFoundError: there is no such file.
            ValueError: the file holds no JSON object.
        """
        from labkit.plan.decoder_config import (  # which imports this module
            read_config_file,
            read_spec,
        )

        return read_spec(config if isinstance(config, Mapping) else read_config_file(config))

    @property
    def num_parameters(self) -> int:
        """Weights, biases and norms; tied embeddings are counted once."""
        hidden, width = self.hidden_size, self.intermediate_size
        q_size, kv_size = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        attention = hidden * (q_size + 2 * kv_size) + q_size * hidden
        attention += (q_size + 2 * kv_size) * self.qkv_bias + hidden * self.o_bias
        attention += 2 * self.head_dim * self.qk_norm
        mlp = 3 * hidden * width + (2 * width + hidden) * self.mlp_bias
        tables = 1 if self.tie_word_embeddings else 2
        layers = self.num_layers * (attention + mlp + 2 * hidden)
        return layers + tables * self.vocab_size * hidden + hidden

    def kv_bytes_per_token(self, bytes_per_element: float) -> float:
        """Bytes of keys and values that one token leaves in the cache, over all layers."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_element
