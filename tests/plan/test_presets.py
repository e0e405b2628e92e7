"""Presets carry a source, and their shapes give the published sizes."""

from pathlib import Path

import pytest

from labkit.plan.decoder import DecoderSpec
from labkit.plan.presets import PRESETS

# Parameters, from the safetensors metadata that each model's page on huggingface.co shows.
PUBLISHED_PARAMETERS = {
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "qwen2.5-0.5b": 494_032_768,
    "llama-2-7b": 6_738_415_616,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "qwen2.5-72b": 72_706_203_648,
    "llama-3.1-405b": 405_853_388_800,
}


def test_every_preset_has_a_link_a_copy_and_a_date():
    for name, preset in PRESETS.items():
        assert preset.name == name
        assert preset.source.url.startswith("https://")
        assert preset.source.read_in
        assert preset.source.date in str(preset.source)


@pytest.mark.parametrize("name", PRESETS)
def test_preset_has_the_published_number_of_parameters(name: str):
    assert PRESETS[name].spec.num_parameters == PUBLISHED_PARAMETERS[name]


def test_presets_rise_in_size():
    sizes = [preset.spec.num_parameters for preset in PRESETS.values()]
    assert sizes == sorted(sizes)


def test_smollm2_preset_has_the_shape_of_the_fetched_model(smollm2: Path):
    preset, fetched = PRESETS["smollm2-135m"].spec, DecoderSpec.from_hf(smollm2)
    for field in (
        "num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "intermediate_size",
        "vocab_size", "tie_word_embeddings", "qkv_bias", "o_bias", "mlp_bias", "qk_norm",
    ):  # fmt: skip
        assert getattr(preset, field) == getattr(fetched, field), field
