"""A config is taken at its word or refused by the field's name: nothing is guessed or converted."""

import json
from typing import Any

import pytest

from labkit.plan.decoder import DecoderSpec, RopeScaling, UnsupportedModelError

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "max_position_embeddings": 512,
}
NAN, INF = float("nan"), float("inf")
NOT_POSITIVE = [0, -1, NAN, INF, -INF, "2", None, True, [2.0], 10**400]
LINEAR = {"rope_type": "linear", "factor": 2.0}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
YARN = {"rope_type": "yarn", "factor": 4.0}


def refusal(**changes: Any) -> UnsupportedModelError:
    with pytest.raises(UnsupportedModelError) as error:
        DecoderSpec.from_hf(LLAMA | changes)
    assert str(error.value).startswith(f"config field {error.value.field} = ")
    assert len(str(error.value)) < 400
    return error.value


@pytest.mark.parametrize("value", NOT_POSITIVE)
@pytest.mark.parametrize("field", ["rope_theta", "rms_norm_eps", "partial_rotary_factor"])
def test_a_number_in_a_formula_must_be_finite_and_positive(field, value):
    assert refusal(**{field: value}).field == field


@pytest.mark.parametrize("value", [*NOT_POSITIVE, 0.5])
def test_a_rotary_factor_must_stretch(value):
    assert refusal(rope_scaling=LINEAR | {"factor": value}).field == "rope_scaling.factor"


@pytest.mark.parametrize("value", NOT_POSITIVE)
def test_the_base_among_the_rotary_settings_is_checked_too(value):
    settings = {"rope_type": "default", "rope_theta": value}
    assert refusal(rope_parameters=settings).field == "rope_scaling.rope_theta"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (LLAMA3 | {"low_freq_factor": NAN}, "low_freq_factor"),
        (LLAMA3 | {"low_freq_factor": 4.0}, "high_freq_factor"),
        (LLAMA3 | {"high_freq_factor": "4"}, "high_freq_factor"),
        (LLAMA3 | {"original_max_position_embeddings": 128.0}, "original_max_position_embeddings"),
        (LLAMA3 | {"original_max_position_embeddings": 0}, "original_max_position_embeddings"),
        (YARN | {"beta_fast": 0}, "beta_fast"),
        (YARN | {"beta_fast": 1.0}, "beta_fast"),
        (YARN | {"beta_slow": -1}, "beta_slow"),
        (YARN | {"attention_factor": INF}, "attention_factor"),
        (YARN | {"mscale": "1"}, "mscale"),
        (YARN | {"mscale_all_dim": -10.0}, "mscale_all_dim"),
        (YARN | {"truncate": "no"}, "truncate"),
        ({"rope_type": 3}, "rope_type"),
        ({"factor": 8.0}, "factor"),
        ({"rope_type": "default", "mrope_section": [16, 24, 24]}, "mrope_section"),
    ],
)
def test_every_rotary_setting_is_typed(settings, field):
    assert refusal(rope_scaling=settings).field == f"rope_scaling.{field}"


@pytest.mark.parametrize("field", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("value", ["linear", ["linear"], 2, True])
def test_rotary_settings_are_an_object(field, value):
    assert refusal(**{field: value}).field == field


def test_two_rotary_settings_must_agree():
    assert DecoderSpec.from_hf(LLAMA | {"rope_scaling": LINEAR, "rope_parameters": LINEAR})
    assert refusal(rope_scaling=LINEAR, rope_parameters=YARN).field == "rope_scaling"


def test_yarn_needs_a_base_whose_logarithm_is_positive():
    assert refusal(rope_scaling=YARN, rope_theta=1.0).field == "rope_theta"


def test_whole_numbers_serve_where_floats_are_meant():
    spec = DecoderSpec.from_hf(
        LLAMA | {"rope_theta": 10000, "rope_scaling": LINEAR | {"factor": 2}}
    )
    assert (spec.rope_theta, spec.rope_scaling) == (10000.0, RopeScaling("linear", 2.0, 512))


@pytest.mark.parametrize(
    "field",
    ["tie_word_embeddings", "attention_bias", "mlp_bias", "is_causal"],
)
@pytest.mark.parametrize("value", ["false", 0, 1, [], {}])
def test_a_flag_is_true_or_false(field, value):
    assert refusal(**{field: value}).field == field


@pytest.mark.parametrize("field", ["eos_token_id", "bos_token_id"])
@pytest.mark.parametrize(
    "value", ["abc", 10**9, 300, -1, 1.5, 1.0, True, {"a": 1}, [1, "2"], [[1]]]
)
def test_a_token_id_is_inside_the_vocabulary(field, value):
    assert refusal(**{field: value}).field == field


def test_ending_tokens_are_one_id_a_list_or_none():
    assert DecoderSpec.from_hf(LLAMA | {"eos_token_id": 299}).eos_token_ids == (299,)
    assert DecoderSpec.from_hf(LLAMA | {"eos_token_id": [0, 5]}).eos_token_ids == (0, 5)
    assert DecoderSpec.from_hf(LLAMA | {"eos_token_id": None}).eos_token_ids == ()
    assert refusal(bos_token_id=[0]).field == "bos_token_id"


@pytest.mark.parametrize(
    "value", ["full_attention", ["full_attention", 1], ["full_attention"], [["full_attention"]]]
)
def test_layer_types_are_a_list_with_one_for_each_layer(value):
    assert refusal(layer_types=value).field == "layer_types"


def test_a_window_that_llama_would_ignore_is_refused():
    assert refusal(layer_types=["sliding_attention"] * 2).field == "layer_types"


@pytest.mark.parametrize("value", ["12", 1.0, -1, 1, None])
def test_the_layers_with_a_window_are_counted(value):
    config = {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8}
    assert refusal(**config, max_window_layers=value).field == "max_window_layers"
    assert refusal(**config | {"use_sliding_window": "yes"}).field == "use_sliding_window"
    none = DecoderSpec.from_hf(LLAMA | config | {"max_window_layers": 2})
    every = DecoderSpec.from_hf(LLAMA | config | {"max_window_layers": 0})
    assert (none.sliding_window, every.sliding_window) == (None, 8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("attn_logit_softcapping", 50.0),
        ("final_logit_softcapping", 30.0),
        ("query_pre_attn_scalar", 256),
        ("logits_scaling", 8.0),
        ("residual_multiplier", 0.22),
        ("embedding_multiplier", 12.0),
        ("attention_multiplier", 0.015625),
        ("position_embedding_type", "alibi"),
        ("logit_scale", 0.0625),
        ("use_qk_norm", True),
        ("scale_emb", 12),
        ("qk_layernorm", True),
        ("use_parallel_residual", True),
        ("no_rope_layers", [1, 0]),
        ("attention_chunk_size", 8192),
        ("clip_qkv", 8.0),
        ("use_mrope", True),
        ("rope_interleaved", True),
        ("is_encoder_decoder", True),
        ("is_causal", False),
        ("logits_scaling", NAN),
    ],
)
def test_what_would_change_the_arithmetic_is_refused(field, value):
    assert refusal(**{field: value}).field == field


def test_fields_that_change_nothing_are_no_obstacle():
    neutral = {
        "attn_logit_softcapping": None,
        "final_logit_softcapping": 0.0,
        "logits_scaling": 1.0,
        "residual_multiplier": 1,
        "position_embedding_type": "rope",
        "use_mrope": False,
        "no_rope_layers": [],
        "rope_interleaved": False,
        "pretraining_tp": 1,
        "attention_dropout": 0.1,
    }
    assert DecoderSpec.from_hf(LLAMA | neutral) == DecoderSpec.from_hf(LLAMA)


def test_biases_a_family_does_not_have_are_refused():
    assert refusal(model_type="qwen2", mlp_bias=True).field == "mlp_bias"


@pytest.mark.parametrize("value", [16, ["bfloat16"]])
def test_a_dtype_is_a_word(value):
    assert refusal(torch_dtype=value).field == "torch_dtype"


def test_a_long_value_is_cut_in_the_message():
    assert "..." in str(refusal(hidden_size="x" * 10_000))


@pytest.mark.parametrize("text", ["{", "[" * 200_000, "[1]", "\0", '{"a": 1' + "0" * 5000 + "}"])
def test_a_file_that_is_no_json_object_is_named(tmp_path, text):
    file = tmp_path / "config.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"config\.json (is not readable JSON|holds a JSON)"):
        DecoderSpec.from_hf(file)


def test_json_constants_beyond_numbers_are_refused(tmp_path):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA | {"rope_theta": NAN}))
    with pytest.raises(UnsupportedModelError, match="rope_theta = nan"):
        DecoderSpec.from_hf(tmp_path)
