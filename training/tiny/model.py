"""The tiny model as a trainable torch module, under the Hugging Face Llama parameter names.

`labkit.models` holds the inference model; this one exists because training needs autograd. It is
one process, one device, no cache. `state_dict()` is what `model.safetensors` stores, name for name.

Shape suffixes: B sequences, T positions, D features, H heads, K key/value heads, V vocabulary.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class TinyConfig:
    """Sizes of the tiny model, under the field names of a Hugging Face Llama `config.json`."""

    vocab_size: int = 2048
    hidden_size: int = 256
    intermediate_size: int = 512
    num_hidden_layers: int = 4
    num_attention_heads: int = 8
    num_key_value_heads: int = 2
    max_position_embeddings: int = 2048
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def head_dim(self) -> int:
        """Features per attention head."""
        return self.hidden_size // self.num_attention_heads

    def to_hf(self) -> dict[str, object]:
        """The `config.json` that `transformers.AutoModelForCausalLM` and labkit read."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            **asdict(self),
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 1,
            "torch_dtype": "bfloat16",
        }


class RMSNorm(nn.Module):
    """x / rms(x) * weight."""

    def __init__(self, features: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


def rotary_tables(config: TinyConfig, length: int) -> tuple[Tensor, Tensor]:
    """cos and sin, each [length, head_dim], in the rotate-half convention."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = torch.outer(torch.arange(length, dtype=torch.float32), config.rope_theta**-exponents)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each (i, i + head_dim/2) pair of x [B, H, T, head_dim] by its position's angle."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    """Causal grouped-query attention."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        kv_features = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_features, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_features, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def forward(self, x_BTD: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        heads = (*x_BTD.shape[:2], -1, self.head_dim)
        q_BHTd = rotate(self.q_proj(x_BTD).view(heads).transpose(1, 2), cos, sin)
        k_BKTd = rotate(self.k_proj(x_BTD).view(heads).transpose(1, 2), cos, sin)
        v_BKTd = self.v_proj(x_BTD).view(heads).transpose(1, 2)
        group = q_BHTd.shape[1] // k_BKTd.shape[1]
        k_BHTd = k_BKTd.repeat_interleave(group, dim=1)
        v_BHTd = v_BKTd.repeat_interleave(group, dim=1)
        mixed_BHTd = F.scaled_dot_product_attention(q_BHTd, k_BHTd, v_BHTd, is_causal=True)
        return self.o_proj(mixed_BHTd.transpose(1, 2).reshape(x_BTD.shape))


class MLP(nn.Module):
    """SwiGLU: down(silu(gate(x)) * up(x))."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderLayer(nn.Module):
    """Attention, then MLP, each behind a norm and added to the residual stream."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Everything below `model.` in the checkpoint."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)


class TinyLlama(nn.Module):
    """The trainable model; logits use the embedding matrix again (tied weights)."""

    def __init__(self, config: TinyConfig, seed: int) -> None:
        super().__init__()
        self.config = config
        self.model = Decoder(config)
        self.initialise(seed)

    def initialise(self, seed: int) -> None:
        """Normal(0, 0.02) weights; projections into the residual stream are scaled by depth."""
        generator = torch.Generator().manual_seed(seed)
        into_residual = 0.02 / (2 * self.config.num_hidden_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                narrow = name.endswith(("o_proj.weight", "down_proj.weight"))
                std = into_residual if narrow else 0.02
                nn.init.normal_(parameter, std=std, generator=generator)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Logits [B, T, V] of the token after each position."""
        cos, sin = rotary_tables(self.config, ids_BT.shape[1])
        x_BTD = self.model.embed_tokens(ids_BT)
        for layer in self.model.layers:
            x_BTD = layer(x_BTD, cos, sin)
        return F.linear(self.model.norm(x_BTD), self.model.embed_tokens.weight)

    def loss(self, ids_BT: Tensor, reduction: str = "mean") -> Tensor:
        """Cross-entropy in nats of each token given those before it; ids [B, T + 1]."""
        logits_BTV = self(ids_BT[:, :-1])
        return F.cross_entropy(
            logits_BTV.flatten(0, 1), ids_BT[:, 1:].flatten(), reduction=reduction
        )
