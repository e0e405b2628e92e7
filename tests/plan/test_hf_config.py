from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from labkit.plan.class_defaults import CLASS_DEFAULTS
from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.hf_config import READERS
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 96,
    "hidden_size": 48,
    "intermediate_size": 56,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "torch_dtype": "bfloat16",
}


def refused(config: Any) -> UnsupportedModelError:
    with pytest.raises(UnsupportedModelError) as error:
        ModelSpec.from_hf(config)
    return error.value


@pytest.mark.parametrize(
    "config",
    [
        {"model_type": "llava", "text_config": LLAMA, "vision_config": {"hidden_size": 9}},
        {"model_type": "internvl_chat", "llm_config": LLAMA, "vision_config": {"hidden_size": 9}},
        {"model_type": "deepseek_vl", "language_config": LLAMA, "vision_config": {"depth": 1}},
        {
            "model_type": "qwen_omni",
            "thinker_config": {"text_config": LLAMA, "vision_config": {"depth": 1}},
        },
    ],
)
def test_the_text_part_of_a_multimodal_config_is_sized_and_what_is_left_out_said(
    config: dict[str, Any],
) -> None:
    spec = ModelSpec.from_hf(config)
    assert spec == ModelSpec.from_hf(LLAMA)
    assert spec.notes == ("only the text decoder is sized; left out: vision_config",)


def test_what_the_outer_config_says_of_all_parts_holds_for_the_text_part() -> None:
    outer = {"model_type": "llava", "dtype": "float16", "tie_word_embeddings": True}
    spec = ModelSpec.from_hf({**outer, "text_config": LLAMA})
    assert (spec.dtype, spec.tie_word_embeddings) == ("float16", True)
    own = {**LLAMA, "dtype": "float32", "tie_word_embeddings": False}
    spec = ModelSpec.from_hf({**outer, "text_config": own})
    assert (spec.dtype, spec.tie_word_embeddings) == ("float32", False)
    assert spec.weight_bytes == 4 * spec.num_parameters


def test_sizes_missing_from_an_inner_config_are_its_classs_and_are_noted() -> None:
    """As google/gemma-3-4b-it and llava-hf/llava-1.5-7b-hf are written."""
    gemma = {
        "model_type": "gemma3",
        "text_config": {
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "model_type": "gemma3_text",
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {"hidden_size": 1152},
    }
    spec = ModelSpec.from_hf(gemma)
    assert (spec.num_heads, spec.num_kv_heads, spec.vocab_size) == (8, 4, 262208)
    assert spec.num_parameters == 3_880_263_168  # the hub's 4.3B, less vision and projector
    assert "class's defaults: vocab_size, num_attention_heads" in spec.notes[1]
    assert "no dtype" in spec.notes[2]
    llava = {"model_type": "llava", "text_config": {"vocab_size": 32064, "model_type": "llama"}}
    assert ModelSpec.from_hf(llava).num_parameters == 6_738_939_904


def test_class_defaults_are_those_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    mapping = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    for model_type, sizes in CLASS_DEFAULTS.items():
        if model_type in mapping:
            built = mapping[model_type]()
            assert {name: getattr(built, name) for name in sizes} == dict(sizes)


def test_a_wide_dtype_is_noted_and_other_configs_are_no_parts_of_a_model() -> None:
    wide = ModelSpec.from_hf({**LLAMA, "torch_dtype": "float32", "rope_config": {"theta": 1e4}})
    assert wide.notes == ("stored in float32; engines load it in 16 bits unless told otherwise",)


def test_sizes_missing_from_an_outer_config_are_refused_by_name() -> None:
    for field in ("hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"):
        config = {name: value for name, value in LLAMA.items() if name != field}
        assert refused(config).field == field


@pytest.mark.parametrize("value", [None, True, 0, -1, 1.5, "64", [64], 10**30, math.nan])
@pytest.mark.parametrize(
    "field",
    ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"],
)
def test_a_size_that_is_no_positive_whole_number_is_refused_by_name(
    field: str, value: object
) -> None:
    assert refused({**LLAMA, field: value}).field == field


def test_fields_of_an_inner_config_are_named_with_their_path() -> None:
    config = {"text_config": {**LLAMA, "hidden_size": -1}}
    assert refused(config).field == "text_config.hidden_size"
    config = {"thinker_config": {"text_config": {**LLAMA, "head_dim": 0}}}
    assert refused(config).field == "thinker_config.text_config.head_dim"


def test_an_unknown_family_is_refused_with_the_names_near_it() -> None:
    error = refused({**LLAMA, "model_type": "qwen33"})
    assert error.field == "model_type"
    assert "qwen3" in error.why
    assert "among the" in refused({**LLAMA, "model_type": "zzzz"}).why
    for value in (None, 3, ["llama"]):
        assert refused({**LLAMA, "model_type": value}).field == "model_type"


def test_a_new_family_is_not_guessed_from_familiar_fields() -> None:
    assert refused({**LLAMA, "model_type": "llama5"}).field == "model_type"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"is_encoder_decoder": True}, "is_encoder_decoder"),
        ({"torch_dtype": "float64"}, "torch_dtype"),
        ({"dtype": 16}, "dtype"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"text_config": ["llama"]}, "text_config"),
        ({"max_position_embeddings": -5}, "max_position_embeddings"),
        ({"use_sliding_window": True}, "use_sliding_window"),
        ({"some_new_expert_rank": 7}, "some_new_expert_rank"),
    ],
)
def test_other_values_are_refused_by_name(change: dict[str, Any], field: str) -> None:
    assert refused({**LLAMA, **change}).field == field


@pytest.mark.parametrize("config", [[], None, 3, "{}"])
def test_what_is_no_json_object_is_refused(config: Any, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match="not an object"):
        ModelSpec.from_hf(file)


BAD: tuple[Any, ...] = (None, True, -1, "x", [1], 10**30, math.nan, 3)


def broken(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The config with each field, inner ones too, left out or given each bad value."""
    found = []
    for name, value in config.items():
        if isinstance(value, dict):
            found += [{**config, name: inner} for inner in broken(value)]
        found += [{**config, name: bad} for bad in BAD]
        found.append({other: kept for other, kept in config.items() if other != name})
    return found


@pytest.mark.parametrize("name", ["qwen2.5-72b-awq", "deepseek-v3", "llama-4-scout"])
def test_a_broken_config_is_sized_or_refused_by_a_field_and_nothing_else(name: str) -> None:
    sizes, fields = [], []
    for config in broken(dict(MODELS[name].config)):
        try:
            sizes.append(ModelSpec.from_hf(config).weight_bytes)
        except UnsupportedModelError as error:
            fields.append(error.field)
    assert sizes
    assert all(0 < size < math.inf for size in sizes)
    assert fields
    assert all(fields)


def test_families_that_people_serve_are_read() -> None:
    named = (
        "llama mistral qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 granite cohere cohere2 "
        "starcoder2 gpt2 gpt_neox gpt_bigcode falcon bloom mpt opt stablelm olmo olmo2 olmo3 glm "
        "glm4 smollm3 exaone4 nemotron internlm2 ernie4_5 seed_oss hunyuan_v1_dense apertus "
        "mixtral qwen2_moe qwen3_moe deepseek_v2 deepseek_v3 kimi_k2 gpt_oss llama4_text "
        "qwen3_next qwen3_5_moe_text gemma4_text jamba"
    )
    assert {*named.split()} <= READERS.keys()
