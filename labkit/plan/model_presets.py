"""Public models by the names they are known by: their configs, and what their makers say of them.

The configs in `configs/` keep the fields that matter for sizes. Standard library only.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
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
            _preset("smollm2-135m", "SmolLM2 135M", "HuggingFaceTB/SmolLM2-135M-Instruct"),
            _preset("smollm2-360m", "SmolLM2 360M", "HuggingFaceTB/SmolLM2-360M"),
            _preset("qwen2.5-0.5b", "Qwen2.5 0.5B", "Qwen/Qwen2.5-0.5B"),
            _preset("llama-2-7b", "Llama 2 7B", "meta-llama/Llama-2-7b-hf"),
            _preset("llama-3.1-8b", "Llama 3.1 8B", "meta-llama/Llama-3.1-8B"),
            _preset("llama-3.1-70b", "Llama 3.1 70B", "meta-llama/Llama-3.1-70B"),
            _preset("llama-3.1-405b", "Llama 3.1 405B", "meta-llama/Llama-3.1-405B"),
            _preset("qwen2.5-72b", "Qwen2.5 72B", "Qwen/Qwen2.5-72B"),
            _preset("qwen3-32b", "Qwen3 32B", "Qwen/Qwen3-32B"),
            _preset("mixtral-8x7b", "Mixtral 8x7B", "mistralai/Mixtral-8x7B-v0.1"),
            _preset("qwen3-30b-a3b", "Qwen3 30B-A3B", "Qwen/Qwen3-30B-A3B"),
            _preset("qwen3-235b-a22b", "Qwen3 235B-A22B", "Qwen/Qwen3-235B-A22B"),
            _preset("deepseek-v3", "DeepSeek-V3", "deepseek-ai/DeepSeek-V3"),
            _preset("gpt-oss-120b", "gpt-oss-120b", "openai/gpt-oss-120b"),
            _preset("gemma-4-26b-a4b", "Gemma 4 26B-A4B", "google/gemma-4-26B-A4B"),
            _preset("qwen3.5-397b-a17b", "Qwen3.5 397B-A17B", "Qwen/Qwen3.5-397B-A17B"),
        ]
    )
)
"""By name, rising in size within a kind."""


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


@lru_cache(maxsize=None)
def _known_names() -> Mapping[str, str]:
    """Preset names by everything they may be called by, in lower case."""
    ids = {hf_id: preset.name for preset in MODELS.values() for hf_id in preset.hf_ids}
    short = {hf_id.split("/")[-1]: name for hf_id, name in ids.items()}
    own = {name: name for name in MODELS}
    return {called.lower(): name for called, name in (short | ids | own).items()}


@lru_cache(maxsize=None)
def _preset_model(name: str) -> ModelSpec:
    return ModelSpec.from_hf(MODELS[name].config)
