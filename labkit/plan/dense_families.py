"""Readers of dense decoder families: every layer attends, then runs one MLP."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labkit.plan.config_fields import ConfigFields
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm, vocabulary
from labkit.plan.model import CacheKind, LayerCache, LayerSpec, ModelSpec


def read_llama(fields: ConfigFields) -> ModelSpec:
    model_type = fields.values["model_type"]
    hidden, heads = fields.positive_int("hidden_size"), fields.positive_int("num_attention_heads")
    kv_heads = fields.positive_int("num_key_value_heads", heads)
    head_dim = fields.positive_int("head_dim", hidden // heads)
    vocab, tied = fields.positive_int("vocab_size"), fields.flag("tie_word_embeddings")
    layer = LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *attention_matrices(
                hidden,
                heads,
                kv_heads,
                head_dim,
                qkv_bias=model_type == "qwen2" or fields.flag("attention_bias"),
                o_bias=model_type != "qwen2" and fields.flag("attention_bias"),
                qk_norm=model_type == "qwen3",
            ),
            norm("post_attention_layernorm", hidden),
            *gated_mlp_matrices(hidden, fields.positive_int("intermediate_size")),
        ),
        cache=LayerCache(CacheKind.FULL, kv_heads, 2 * head_dim),
        num_heads=heads,
        score_dim=head_dim,
        value_dim=head_dim,
    )
    head = vocabulary("lm_head", "LM head", vocab, hidden)
    return ModelSpec(
        model_type=str(model_type),
        hidden_size=hidden,
        vocab_size=vocab,
        layers=(layer,) * fields.positive_int("num_hidden_layers"),
        embedding=(vocabulary("model.embed_tokens", "embedding", vocab, hidden),),
        head=(norm("model.norm", hidden), *(() if tied else (head,))),
        tie_word_embeddings=tied,
        max_position_embeddings=fields.positive_int("max_position_embeddings"),
        dtype=fields.word("dtype", fields.word("torch_dtype", "bfloat16")),
    )


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = dict.fromkeys(
    ("llama", "mistral", "qwen2", "qwen3"), read_llama
)
