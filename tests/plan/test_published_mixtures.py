"""Counts of public checkpoints: the parameters Hugging Face lists for `huggingface.co/<id>`.

`tests/data/published_mixtures.json` has the fields of each config that change sizes. Totals are of
all tensors in the checkpoint, multi-token prediction included.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labkit.plan.model import ModelSpec

DATA = Path(__file__).parents[1] / "data" / "published_mixtures.json"
PUBLISHED = json.loads(DATA.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_checkpoints_have_as_many_parameters_as_their_configs_say(name: str) -> None:
    spec = ModelSpec.from_hf(PUBLISHED[name]["config"])
    assert spec.num_parameters + spec.num_mtp_parameters == PUBLISHED[name]["checkpoint_parameters"]


@pytest.mark.parametrize(
    ("name", "active"),
    [
        ("allenai/OLMoE-1B-7B-0924", "1.3"),
        ("microsoft/Phi-3.5-MoE-instruct", "6.6"),
        ("Qwen/Qwen1.5-MoE-A2.7B", "2.7"),
        ("deepseek-ai/DeepSeek-V2", "21"),
        ("databricks/dbrx-instruct", "36"),
        ("ai21labs/Jamba-v0.1", "12"),
        ("rednote-hilab/dots.llm1.inst", "14"),
        ("tencent/Hunyuan-A13B-Instruct", "13"),
    ],
)
def test_active_parameters_are_the_published_ones_to_their_printed_digits(
    name: str, active: str
) -> None:
    billions = ModelSpec.from_hf(PUBLISHED[name]["config"]).num_active_parameters / 1e9
    assert f"{billions:.{1 if '.' in active else 0}f}" == active
