"""Public models by the names they are known by: their configs, and what their makers say of them.

The configs in `configs/` keep the fields that matter for sizes. Standard library only.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from labkit.plan.model import ModelSpec
from labkit.plan.presets import Source


class UnknownModelError(ValueError):
    """A name that is no preset, no Hugging Face id of one and no path."""


@dataclass(frozen=True)
class ModelPreset:
    """A public model.

    Attributes:
        name: its own, in lower case.
        hf_ids: what Hugging Face calls it, and those that have its shape and format.
        source: of its config.
        published_total: parameters, exact, or None where nothing public says so.
        published_active: that one token uses, as printed, such as "37B".
    """

    name: str
    title: str
    hf_ids: tuple[str, ...]
    source: Source
    published_total: int | None = None
    published_active: str = ""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its Hugging Face config, without what changes no size."""
        file = resources.files("labkit.plan").joinpath("configs", f"{self.name}.json")
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return values

    @property
    def model(self) -> ModelSpec:
        """The model its config describes."""
        return _preset_model(self.name)


_DATE = "2026-12-01"
_AICONFIGURATOR = "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0)"


_LLAMA = "meta-llama/Llama-3.1-{0} meta-llama/Meta-Llama-3.1-{0} meta-llama/Llama-3.1-{0}-Instruct"


def _preset(
    name: str,
    title: str,
    hf_ids: str,
    total: int | None = None,
    active: str = "",
    read_in: str = _AICONFIGURATOR,
) -> tuple[str, ModelPreset]:
    ids = tuple(hf_ids.split())
    source = Source(f"https://huggingface.co/{ids[0]}/blob/main/config.json", read_in, _DATE)
    return name, ModelPreset(name, title, ids, source, total, active)


MODELS: Mapping[str, ModelPreset] = MappingProxyType(
    dict(
        [
            _preset(
                "smollm2-135m",
                "SmolLM2 135M",
                "HuggingFaceTB/SmolLM2-135M-Instruct HuggingFaceTB/SmolLM2-135M",
                134_515_008,
                read_in="the file that `labkit fetch smollm2-135m` brings",
            ),
            _preset(
                "smollm2-360m",
                "SmolLM2 360M",
                "HuggingFaceTB/SmolLM2-360M HuggingFaceTB/SmolLM2-360M-Instruct",
                361_821_120,
                read_in="a stored copy of that page",
            ),
            _preset(
                "qwen2.5-0.5b",
                "Qwen2.5 0.5B",
                "Qwen/Qwen2.5-0.5B Qwen/Qwen2.5-0.5B-Instruct",
                494_032_768,
                read_in="a public repository that quotes the file",
            ),
            _preset(
                "starcoder2-3b",
                "StarCoder2 3B",
                "bigcode/starcoder2-3b",
                3_030_371_328,
                read_in="its model card and the defaults of its class in transformers 5.24",
            ),
            _preset(
                "llama-2-7b",
                "Llama 2 7B",
                "meta-llama/Llama-2-7b-hf meta-llama/Llama-2-7b-chat-hf",
                6_738_415_616,
                read_in="microsoft/Olive, examples/llm/config.py",
            ),
            _preset(
                "deepseek-coder-6.7b",
                "DeepSeek-Coder 6.7B",
                "deepseek-ai/deepseek-coder-6.7b-base deepseek-ai/deepseek-coder-6.7b-instruct",
                6_740_512_768,
                read_in="public repositories that quote its shape and its total",
            ),
            _preset(
                "qwen2.5-7b",
                "Qwen2.5 7B",
                "Qwen/Qwen2.5-7B Qwen/Qwen2.5-7B-Instruct",
                7_615_616_512,
                read_in="public repositories that quote its shape and its total",
            ),
            _preset("llama-3.1-8b", "Llama 3.1 8B", _LLAMA.format("8B"), 8_030_261_248),
            _preset("qwen3-8b", "Qwen3 8B", "Qwen/Qwen3-8B", 8_190_735_360),
            _preset("gpt-oss-20b", "gpt-oss-20b", "openai/gpt-oss-20b", 20_914_757_184, "3.6B"),
            _preset(
                "gemma-4-26b-a4b",
                "Gemma 4 26B-A4B, text part",
                "google/gemma-4-26B-A4B google/gemma-4-26B-A4B-it",
                active="3.8B",
            ),
            _preset("qwen3-30b-a3b", "Qwen3 30B-A3B", "Qwen/Qwen3-30B-A3B", 30_532_122_624, "3.3B"),
            _preset(
                "qwen2.5-32b",
                "Qwen2.5 32B",
                "Qwen/Qwen2.5-32B Qwen/Qwen2.5-32B-Instruct",
                32_763_876_352,
                read_in="public repositories that quote its shape and its total",
            ),
            _preset(
                "qwq-32b",
                "QwQ 32B",
                "Qwen/QwQ-32B",
                32_763_876_352,
                read_in="public repositories that quote its shape and its total",
            ),
            _preset("qwen3-32b", "Qwen3 32B", "Qwen/Qwen3-32B", 32_762_123_264),
            _preset("qwen3-32b-fp8", "Qwen3 32B FP8", "Qwen/Qwen3-32B-FP8", 32_762_123_264),
            _preset(
                "mixtral-8x7b",
                "Mixtral 8x7B",
                "mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1",
                46_702_792_704,
                "12.9B",
            ),
            _preset("llama-3.1-70b", "Llama 3.1 70B", _LLAMA.format("70B"), 70_553_706_496),
            _preset(
                "llama-3.1-70b-fp8",
                "Llama 3.1 70B FP8",
                "nvidia/Llama-3.1-70B-Instruct-FP8",
                70_553_706_496,
            ),
            _preset(
                "qwen2.5-72b",
                "Qwen2.5 72B",
                "Qwen/Qwen2.5-72B Qwen/Qwen2.5-72B-Instruct",
                72_706_203_648,
                read_in="the config of BitStack/BitStack-Qwen2.5-72B, which keeps the shape",
            ),
            _preset(
                "qwen2.5-72b-awq",
                "Qwen2.5 72B INT4 (AWQ), MLP padded to 29,696",
                "Qwen/Qwen2.5-72B-Instruct-AWQ",
                read_in="a public repository that quotes the file",
            ),
            _preset(
                "qwen2.5-72b-gptq-int4",
                "Qwen2.5 72B INT4 (GPTQ), MLP padded to 29,696",
                "Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4",
                read_in="the configs of its siblings, AWQ of the same and GPTQ-Int8 of Qwen2-VL",
            ),
            _preset(
                "llama-4-scout",
                "Llama 4 Scout, text part",
                "meta-llama/Llama-4-Scout-17B-16E-Instruct meta-llama/Llama-4-Scout-17B-16E",
                active="17B",
            ),
            _preset("gpt-oss-120b", "gpt-oss-120b", "openai/gpt-oss-120b", 116_829_156_672, "5.1B"),
            _preset(
                "mixtral-8x22b",
                "Mixtral 8x22B",
                "mistralai/Mixtral-8x22B-v0.1 mistralai/Mixtral-8x22B-Instruct-v0.1",
                140_620_634_112,
                "39B",
            ),
            _preset(
                "qwen3-235b-a22b", "Qwen3 235B-A22B", "Qwen/Qwen3-235B-A22B", 235_093_634_560, "22B"
            ),
            _preset(
                "qwen3-235b-a22b-fp8",
                "Qwen3 235B-A22B FP8",
                "Qwen/Qwen3-235B-A22B-FP8",
                235_093_634_560,
                "22B",
            ),
            _preset(
                "qwen3.5-397b-a17b",
                "Qwen3.5 397B-A17B, text part",
                "Qwen/Qwen3.5-397B-A17B",
                active="17B",
            ),
            _preset(
                "llama-4-maverick",
                "Llama 4 Maverick, text part",
                "meta-llama/Llama-4-Maverick-17B-128E-Instruct"
                " meta-llama/Llama-4-Maverick-17B-128E",
                active="17B",
            ),
            _preset("llama-3.1-405b", "Llama 3.1 405B", _LLAMA.format("405B"), 405_853_388_800),
            _preset(
                "deepseek-v3",
                "DeepSeek-V3",
                "deepseek-ai/DeepSeek-V3 deepseek-ai/DeepSeek-R1 deepseek-ai/DeepSeek-V3-0324",
                671_026_419_200,
                "37B",
            ),
            _preset(
                "kimi-k2",
                "Kimi K2",
                "moonshotai/Kimi-K2-Instruct moonshotai/Kimi-K2-Base",
                active="32B",
            ),
        ]
    )
)
"""By name, rising in size."""


def resolve_model(name_or_path: str | Path) -> ModelSpec:
    """A model by preset name, Hugging Face id, or path of a `config.json` or its folder.

    Raises:
        UnknownModelError: it is none of them; lists the names near it.
        UnsupportedModelError: a config that cannot be sized.
        ValueError: a file that holds no JSON object.
    """
    name = str(name_or_path).strip()
    preset = _known_names().get(name.lower())
    if preset is not None:
        return MODELS[preset].model
    if name and Path(name).exists():
        return ModelSpec.from_hf(Path(name))
    near = difflib.get_close_matches(name.lower(), _known_names(), n=4, cutoff=0.5)
    hint = f"near it: {', '.join(near)}" if near else f"known are {', '.join(MODELS)}"
    raise UnknownModelError(
        f"{name!r} is no preset, no Hugging Face id of one and no path of a config.json; {hint}"
    )


@cache
def _known_names() -> Mapping[str, str]:
    """Preset names by everything they may be called by, in lower case."""
    ids = {hf_id: preset.name for preset in MODELS.values() for hf_id in preset.hf_ids}
    short = {hf_id.split("/")[-1]: name for hf_id, name in ids.items()}
    own = {name: name for name in MODELS}
    return {called.lower(): name for called, name in (short | ids | own).items()}


@cache
def _preset_model(name: str) -> ModelSpec:
    return ModelSpec.from_hf(MODELS[name].config)
