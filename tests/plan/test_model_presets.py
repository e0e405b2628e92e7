"""Parameter counts against what the models' makers and checkpoints say."""

from __future__ import annotations

import json
import math
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS, UnknownModelError, resolve_model
from labkit.plan.presets import PRESETS
from tests.plan.transformers_oracle import oracle_parameters

# Exact totals of checkpoints. "hub": the total that huggingface.co's API gives of the checkpoint's
# tensors, as public repositories quote it; "headers": an audit of all tensors' headers, without
# scales and without the multi-token prediction layer; "index": half of the bytes in
# model.safetensors.index.json, 16 bits a weight; "transformers": the text part alone, which no
# page gives, counted by transformers on the meta device with the buffers that checkpoints hold.
EXACT_TOTALS = {
    "qwen3-235b-a22b": (235_093_634_560, "hub; index: 470187269120 bytes"),
    "qwen3-30b-a3b": (30_532_122_624, "hub"),
    "qwen3-32b": (32_762_123_264, "hub"),
    "qwen3.5-397b-a17b": (396_346_350_336, "transformers"),
    "deepseek-v3": (671_026_419_200, "headers"),
    "gemma-4-26b-a4b": (25_233_141_790, "transformers"),
    "llama-3.1-405b": (405_853_388_800, "index: 811706777600 bytes"),
    "llama-3.1-70b": (70_553_706_496, "index: 141107412992 bytes"),
    "llama-3.1-8b": (8_030_261_248, "hub"),
    "mixtral-8x7b": (46_702_792_704, "hub"),
    "gpt-oss-120b": (116_829_156_672, "GGUF metadata general.parameter_count"),
}
# Active counts as their makers print them, in billions, with how they count and cut digits.
# "all": everything a token uses; "no embedding": without the input embedding, of which it reads
# one row. Qwen prints 3.35 as 3.3 and so cuts digits off; the others round.
PUBLISHED_ACTIVE = {
    "qwen3-235b-a22b": ("22", "all", ROUND_HALF_UP, "arXiv 2505.09388"),
    "qwen3-30b-a3b": ("3.3", "all", ROUND_DOWN, "arXiv 2505.09388, model card"),
    "qwen3.5-397b-a17b": ("17", "all", ROUND_HALF_UP, "model card"),
    "deepseek-v3": ("36.6", "no embedding", ROUND_HALF_UP, "README_WEIGHTS.md, corrected"),
    "gemma-4-26b-a4b": ("3.8", "all", ROUND_HALF_UP, "model card"),
    "mixtral-8x7b": ("12.9", "all", ROUND_HALF_UP, "arXiv 2401.04088: 13B; blog: 12.9B"),
    "gpt-oss-120b": ("5.13", "no embedding", ROUND_HALF_UP, "arXiv 2508.10925, table 1"),
    "gpt-oss-20b": ("3.61", "no embedding", ROUND_HALF_UP, "arXiv 2508.10925, table 1"),
    "llama-4-scout": ("17", "all", ROUND_HALF_UP, "model card"),
    "llama-4-maverick": ("17", "all", ROUND_HALF_UP, "model card"),
    "mixtral-8x22b": ("39", "all", ROUND_HALF_UP, "mistral.ai/news/mixtral-8x22b"),
    "kimi-k2": ("32", "no embedding", ROUND_HALF_UP, "arXiv 2507.20534: 32B"),
}


@pytest.mark.parametrize("name", EXACT_TOTALS)
def test_totals_are_the_checkpoints_to_the_last_parameter(name: str) -> None:
    total, _ = EXACT_TOTALS[name]
    assert MODELS[name].model.num_parameters == total


@pytest.mark.parametrize("name", EXACT_TOTALS)
def test_totals_are_those_of_transformers_too(name: str) -> None:
    config = dict(MODELS[name].config)
    config = dict(config.get("text_config", config))
    for field in ("quantization_config", "dtype", "torch_dtype"):
        config.pop(field, None)
    counted = oracle_parameters(config)
    assert MODELS[name].model.num_parameters == counted


@pytest.mark.parametrize("name", PUBLISHED_ACTIVE)
def test_active_counts_agree_to_their_printed_digits(name: str) -> None:
    printed, counting, rounding, _ = PUBLISHED_ACTIVE[name]
    spec = MODELS[name].model
    words = spec.embedding[0].num_parameters if counting == "no embedding" else 0
    active = Decimal(spec.num_active_parameters - words) / 10**9
    assert active.quantize(Decimal(printed), rounding=rounding) == Decimal(printed)


@pytest.mark.parametrize("name", [n for n, p in MODELS.items() if p.published_total])
def test_every_published_total_is_met(name: str) -> None:
    assert MODELS[name].model.num_parameters == MODELS[name].published_total


def test_the_multi_token_prediction_layer_is_counted_beside_the_model() -> None:
    spec = MODELS["deepseek-v3"].model
    copies_of_vocabulary = 2 * 129280 * 7168
    assert spec.num_mtp_parameters == 13_463_426_304
    # README_WEIGHTS.md: 11.5B of its own, which leaves out the projection of 2 x 7168 to 7168.
    own = spec.num_mtp_parameters - copies_of_vocabulary - 2 * 7168 * 7168
    assert round(own / 1e9, 1) == 11.5
    assert spec.num_parameters + spec.num_mtp_parameters == 684_489_845_504  # the hub's total


@pytest.mark.parametrize("name", MODELS)
def test_every_preset_has_a_source_and_a_config_that_is_sized(name: str) -> None:
    preset = MODELS[name]
    assert preset.source.url.startswith("https://huggingface.co/")
    assert preset.source.read_in
    assert preset.source.date
    parts = preset.model.weight_bytes_by_part
    assert math.isclose(sum(parts.values()), preset.model.weight_bytes)
    assert preset.model.num_active_parameters <= preset.model.num_parameters


@pytest.mark.parametrize("name", PRESETS)
def test_models_that_labkit_runs_are_sized_as_their_decoder_spec(name: str) -> None:
    ours, spec = PRESETS[name].spec, MODELS[name].model
    assert spec.num_parameters == ours.num_parameters
    assert spec.kv_bytes_per_token(2) == ours.kv_bytes_per_token(2)


def test_published_totals_of_bytes() -> None:
    # model.safetensors.index.json of meta-llama/Llama-3.1-70B-Instruct and of Qwen3-235B-A22B.
    assert MODELS["llama-3.1-70b"].model.weight_bytes == 141_107_412_992
    assert MODELS["qwen3-235b-a22b"].model.weight_bytes == 470_187_269_120
    # gpt-oss-120b: the paper gives 60.8 GiB for the checkpoint.
    assert round(MODELS["gpt-oss-120b"].model.weight_bytes / 2**30, 1) == 60.8


@pytest.mark.parametrize(
    "called",
    ["llama-3.1-70b", "meta-llama/Llama-3.1-70B", "Meta-Llama-3.1-70B", "LLAMA-3.1-70B-Instruct"],
)
def test_a_model_is_found_by_preset_name_or_hub_id_in_any_case(called: str) -> None:
    assert resolve_model(called) is MODELS["llama-3.1-70b"].model


def test_a_model_is_found_by_the_path_of_its_config_or_folder(tmp_path: Path) -> None:
    config = MODELS["qwen3-8b"].config
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert resolve_model(tmp_path) == resolve_model(str(tmp_path / "config.json"))
    assert resolve_model(tmp_path) == MODELS["qwen3-8b"].model


def test_a_quantisation_file_beside_the_config_counts(tmp_path: Path) -> None:
    config = dict(MODELS["llama-3.1-70b-fp8"].config)
    beside = config.pop("quantization_config")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(beside), encoding="utf-8")
    assert ModelSpec.from_hf(tmp_path) == MODELS["llama-3.1-70b-fp8"].model


def test_an_unknown_name_lists_the_names_near_it() -> None:
    with pytest.raises(UnknownModelError, match=r"near it: llama-3\.1-70b"):
        resolve_model("lama-3.1-70b")
    with pytest.raises(UnknownModelError, match="known are"):
        resolve_model("zzz")
    with pytest.raises(UnknownModelError):
        resolve_model("")
