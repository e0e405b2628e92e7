"""Dense decoders with rotary positions: every layer attends, then runs one MLP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from labkit.plan.attention_windows import (
    rotary_layers_slide,
    upper_layers_slide,
    window_on_all,
    window_pattern,
)
from labkit.plan.config_fields import ConfigFields
from labkit.plan.dense_decoder import Family, Flag, read_dense
from labkit.plan.model import ModelSpec
from labkit.plan.size_fields import all_sizes_read

_ATTENTION_BIAS = Flag("attention_bias")
_PRE_AND_POST = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
_POST = ("post_attention_layernorm", "post_feedforward_layernorm")

_BIASED = Family(qkv_bias=_ATTENTION_BIAS, o_bias=_ATTENTION_BIAS)
LLAMA = replace(_BIASED, mlp_bias=Flag("mlp_bias"), kv_heads="query")
_MISTRAL = Family(windows=window_on_all(4096))
QWEN2 = Family(qkv_bias=True, windows=upper_layers_slide)
QWEN3 = replace(_BIASED, qk_norm="head", derives_head_dim=False, windows=upper_layers_slide)
_GEMMA = replace(_BIASED, tied=True, derives_head_dim=False)
_GEMMA2 = replace(_GEMMA, norms=_PRE_AND_POST, windows=window_pattern(2, 4096))
_PHI = Family(
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    norm_bias=True,
    head_bias=True,
    norms=("input_layernorm",),
    qk_norm="head",
    qk_norm_flag=Flag("qk_layernorm"),
    qk_norm_bias=True,
    gated=False,
    mlp_names=("mlp.fc1", "mlp.fc2"),
    kv_heads="query",
    square_attention=True,
)
_PHI3 = Family(kv_heads="query", windows=window_on_all())
_COHERE = replace(
    _BIASED,
    norms=("input_layernorm",),
    qk_norm="width",
    qk_norm_flag=Flag("use_qk_norm"),
    tied=True,
    kv_heads="query",
)
_OLMO2 = replace(_BIASED, norms=_POST, qk_norm="width", kv_heads="query")
_GLM = Family(qkv_bias=Flag("attention_bias", True))
_GLM4 = replace(_GLM, norms=(*_PRE_AND_POST[:2], "post_self_attn_layernorm", "post_mlp_layernorm"))
_HUNYUAN = replace(_BIASED, qk_norm="head", kv_heads="query")

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "llama": LLAMA,
        "mistral": _MISTRAL,
        "ministral": _MISTRAL,
        "ministral3": Family(windows=window_on_all()),
        "qwen2": QWEN2,
        "qwen2_vl": QWEN2,
        "qwen2_vl_text": QWEN2,
        "qwen2_5_vl": QWEN2,
        "qwen2_5_vl_text": QWEN2,
        "qwen2_5_omni_text": QWEN2,
        "qwen3": QWEN3,
        "qwen3_vl_text": QWEN3,
        "gemma": _GEMMA,
        "gemma2": _GEMMA2,
        "gemma3_text": replace(_GEMMA2, qk_norm="head", windows=window_pattern(6, 4096)),
        "vaultgemma": replace(_GEMMA2, norms=("input_layernorm", "pre_feedforward_layernorm")),
        "phi": _PHI,
        "phi3": _PHI3,
        "phi3_v": _PHI3,
        "granite": LLAMA,
        "granite_swa": replace(
            LLAMA,
            tied=True,
            kv_heads="needed",
            windows=window_pattern(4, 128, full_first=True, every_fields=()),
            extra=(("self_attn.sinks", "heads"),),
        ),
        "cohere": _COHERE,
        "cohere2": replace(
            _COHERE,
            qk_norm="none",
            qk_norm_flag=None,
            windows=window_pattern(
                4,
                4096,
                every_fields=("sliding_window_pattern", "_sliding_window_pattern", "layer_switch"),
            ),
        ),
        "starcoder2": Family(
            qkv_bias=Flag("use_bias", True),
            o_bias=Flag("use_bias", True),
            mlp_bias=Flag("use_bias", True),
            norm_bias=True,
            gated=False,
            mlp_names=("mlp.c_fc", "mlp.c_proj"),
            tied=True,
            windows=window_on_all(),
        ),
        "stablelm": Family(
            qkv_bias=Flag("use_qkv_bias"),
            norm_bias=True,
            qk_norm="width",
            qk_norm_flag=Flag("qk_layernorm"),
            square_attention=True,
        ),
        "olmo": replace(_BIASED, norm_weights=False, kv_heads="query"),
        "olmo2": _OLMO2,
        "olmo3": replace(_OLMO2, windows=window_pattern(4, 4096, every_fields=())),
        "glm": _GLM,
        "glm4": _GLM4,
        "glm4v_text": replace(_GLM4, qkv_bias=True),
        "glm_ocr_text": replace(_GLM4, qkv_bias=False),
        "smollm3": replace(LLAMA, tied=True, kv_heads="needed", windows=rotary_layers_slide),
        "exaone": replace(
            LLAMA,
            kv_heads="needed",
            names={"num_hidden_layers": ("num_hidden_layers", "num_layers")},
        ),
        "exaone4": Family(
            norms=_POST, qk_norm="head", windows=window_pattern(4, 4096, null_is_full=True)
        ),
        "nemotron": replace(LLAMA, norm_bias=True, gated=False),
        "internlm3": Family(qkv_bias=Flag("qkv_bias"), o_bias=Flag("bias"), mlp_bias=Flag("bias")),
        "ernie4_5": Family(
            qkv_bias=Flag("use_bias"),
            o_bias=Flag("use_bias"),
            mlp_bias=Flag("use_bias"),
            tied=True,
        ),
        "seed_oss": Family(
            qkv_bias=Flag("attention_bias", True),
            o_bias=Flag("attention_out_bias"),
            mlp_bias=Flag("mlp_bias"),
        ),
        "hunyuan_v1_dense": _HUNYUAN,
        "apertus": replace(
            _HUNYUAN,
            gated=False,
            norms=("attention_layernorm", "feedforward_layernorm"),
            extra=(("mlp.act_fn.alpha_p", "one"), ("mlp.act_fn.alpha_n", "one")),
        ),
        "arcee": replace(LLAMA, gated=False),
        "helium": Family(
            qkv_bias=_ATTENTION_BIAS,
            mlp_bias=Flag("mlp_bias"),
            derives_head_dim=False,
            square_attention=True,
        ),
        "nanochat": replace(
            _BIASED,
            norm_weights=False,
            gated=False,
            mlp_names=("mlp.fc1", "mlp.fc2"),
            kv_heads="query",
        ),
        "bitnet": replace(
            _BIASED,
            extra=(("self_attn.attn_sub_norm", "hidden"), ("mlp.ffn_sub_norm", "intermediate")),
        ),
        "cwm": replace(
            Family(mlp_bias=Flag("mlp_bias")),
            windows=window_pattern(4, 8192, full_first=True, every_fields=()),
        ),
        "iquestcoder": replace(LLAMA, kv_heads="needed"),
        "hyperclovax": LLAMA,
        "jais2": replace(
            LLAMA,
            qkv_bias=Flag("attention_bias", True),
            o_bias=Flag("attention_bias", True),
            mlp_bias=Flag("mlp_bias", True),
            norm_bias=True,
            gated=False,
        ),
    }
)


def _read_hyperclovax(fields: ConfigFields) -> ModelSpec:
    posts = ("post_norm1", "post_norm2") if fields.flag("use_post_norm", True) else ()
    return read_dense(fields, replace(LLAMA, norms=(*LLAMA.norms, *posts)))


def _read_stablelm(fields: ConfigFields) -> ModelSpec:
    family = FAMILIES["stablelm"]
    if fields.flag("use_parallel_residual"):
        family = replace(family, norms=("input_layernorm",))
    return read_dense(fields, family)


READERS: Mapping[str, Callable[[ConfigFields], ModelSpec]] = all_sizes_read(
    {
        **{name: partial(read_dense, family=family) for name, family in FAMILIES.items()},
        "hyperclovax": _read_hyperclovax,
        "stablelm": _read_stablelm,
    }
)
"""By `model_type`."""
