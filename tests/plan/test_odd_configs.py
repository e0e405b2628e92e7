"""Whatever a field of a config holds, it is read or refused by name: no other error escapes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import labkit.plan
from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.hf_config import read_model
from tests.plan.test_dense_families import CONFIGS as DENSE
from tests.plan.test_dense_families import config_of
from tests.plan.test_family_refusals import ALL as FAMILIES
from tests.plan.test_own_code_families import PUBLIC
from tests.plan.test_product_dtypes import LLAMA, WEIGHTS_ALONE, WITH_INPUTS

Path_ = tuple[str | int, ...]
Case = tuple[str, Mapping[str, Any], Path_, object]

PRESETS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted((Path(labkit.plan.__file__).parent / "configs").glob("*.json"))
}
QUANTIZED = {
    name: {**LLAMA, "quantization_config": config}
    for name, config in {
        **WEIGHTS_ALONE,
        **{name: config for name, (config, _) in WITH_INPUTS.items()},
        "GPTQ with exceptions": {
            **WEIGHTS_ALONE["GPTQ in 4 bits"],
            "dynamic": {r"-:.*\.0\..*": {}, r"+:.*\.1\..*": {"bits": 8, "group_size": 64}},
            "modules_in_block_to_quantize": [["self_attn.q_proj"]],
        },
        "MIXED_PRECISION": {
            "quant_algo": "MIXED_PRECISION",
            "quantized_layers": {"model.layers.0.mlp": {"quant_algo": "NVFP4", "group_size": 16}},
        },
        "MXFP4": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
    }.items()
}
OTHERS = {
    **FAMILIES,
    **{name: config_of(name) for name in DENSE},
    **{name: config for name, (config, _) in PUBLIC.items()},
    **QUANTIZED,
}
ODD: tuple[object, ...] = (
    *("x", "", "auto", "re:(", "torch.bfloat16"),
    *(-1, 0, 1, 7, 10**9, 10**40, 1.5, 1.0, float("nan"), float("inf"), None, True, False),
    *([], {}, [[]], [{}], [None], [0], [-1], ["x"], {"x": 1}, {"x": None}, {"full_attention": 5}),
)


class _Noted(dict[str, Any]):
    """A config that remembers which fields were looked for."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__(values)
        self.seen: dict[str, None] = {}

    def get(self, key: str, default: Any = None) -> Any:
        self.seen[key] = None
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.seen[key] = None
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.seen[str(key)] = None
        return super().__contains__(key)


def places(value: object, before: Path_ = ()) -> Iterator[Path_]:
    """The way to every field, nested ones too, and to the first and last entry of each list."""
    if isinstance(value, Mapping):
        inside: Iterable[tuple[str | int, object]] = value.items()
    elif isinstance(value, list):
        inside = [(index, value[index]) for index in sorted({0, len(value) - 1}) if value]
    else:
        return
    for key, held in inside:
        yield (*before, key)
        yield from places(held, (*before, key))


def changed(value: Any, place: Path_, odd: object) -> Any:
    """A copy with one field changed; what lies beside the way there is shared."""
    if not place:
        return odd
    copy = dict(value) if isinstance(value, Mapping) else list(value)
    held = value.get(place[0]) if isinstance(value, Mapping) else value[place[0]]
    copy[place[0]] = changed(held, place[1:], odd)
    return copy


def cases_of_what_is_there(configs: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    for name, config in configs.items():
        for place in places(config):
            for odd in ODD:
                yield name, config, place, odd


def cases_of_what_is_looked_for(configs: Mapping[str, Mapping[str, Any]]) -> Iterator[Case]:
    """Fields that a reader asks for and this config leaves out; and a list for each layer."""
    for name, config in configs.items():
        noted = _Noted(config)
        layers = read_model(noted).num_layers
        lists = [[odd] * layers for odd in ([], {}, None, 1.0, True, "x", "F", -1, 10**40)]
        for field in noted.seen:
            for odd in (*ODD, *lists, "LLLG", "M" * layers, {"rope_type": "yarn"}):
                yield name, config, (field,), odd


def escaped(cases: Iterable[Case]) -> list[str]:
    """What was raised besides the refusal that is documented."""
    found = []
    for name, config, place, odd in cases:
        try:
            read_model(changed(config, place, odd))
        except UnsupportedModelError:
            continue
        except Exception as error:
            found.append(f"{name}: {'.'.join(map(str, place))} = {str(odd)[:40]}: {error!r}")
    return found


def a_tenth(cases: Iterable[Case]) -> list[Case]:
    drawn = random.Random(20)
    return [case for case in cases if drawn.random() < 0.1]


def test_the_configs_are_read_as_they_are() -> None:
    for config in (*PRESETS.values(), *OTHERS.values()):
        assert read_model(config).num_layers > 0


def test_an_odd_value_in_a_preset_is_read_or_refused() -> None:
    assert escaped(a_tenth(cases_of_what_is_there(PRESETS))) == []


def test_an_odd_value_in_any_family_or_quantisation_is_read_or_refused() -> None:
    assert escaped(a_tenth(cases_of_what_is_there(OTHERS))) == []
    assert escaped(a_tenth(cases_of_what_is_looked_for(OTHERS))) == []


@pytest.mark.soak
def test_every_odd_value_in_every_field_is_read_or_refused() -> None:
    assert escaped(cases_of_what_is_there({**PRESETS, **OTHERS})) == []
    assert escaped(cases_of_what_is_looked_for({**PRESETS, **OTHERS})) == []


HYBRID = PRESETS["qwen3.5-397b-a17b"]


@pytest.mark.parametrize("value", ["x", "int4", "", "torch.x"])
def test_an_unknown_dtype_is_refused_by_its_own_name_where_states_are_kept(value: str) -> None:
    with pytest.raises(UnsupportedModelError) as refused:
        read_model(changed(HYBRID, ("text_config", "dtype"), value))
    assert (refused.value.field, refused.value.value) == ("text_config.dtype", value)


@pytest.mark.parametrize("field", ["dtype", "mamba_ssm_dtype"])
def test_a_dtype_may_carry_the_name_of_its_library(field: str) -> None:
    plain, long = (
        read_model(changed(HYBRID, ("text_config", field), value))
        for value in ("float32", "torch.float32")
    )
    assert plain == long


def test_a_pattern_longer_than_the_model_has_its_one_full_layer_beyond_it() -> None:
    model = read_model({**config_of("gemma3_text"), "sliding_window_pattern": 10**9})
    assert all(layer.cache.window for layer in model.layers)
    with pytest.raises(UnsupportedModelError, match="sliding_window_pattern"):
        read_model({**config_of("gemma3_text"), "sliding_window_pattern": 0})


def test_a_convolution_over_one_token_keeps_no_state() -> None:
    model = read_model({**FAMILIES["lfm2"], "conv_L_cache": 1})
    assert model.kv_bytes_per_token(2.0) > 0
    assert all(layer.cache.state_elements == 0 for layer in model.layers)


def test_sizes_beyond_every_model_are_refused_in_lists_and_parts_too() -> None:
    widths = [64, 2**33, 64, 64]
    with pytest.raises(UnsupportedModelError, match=r"^config field intermediate_size ="):
        read_model({**FAMILIES["gemma3n_text"], "intermediate_size": widths})
    with pytest.raises(UnsupportedModelError, match=r"^config field ffn_config.moe_num_experts ="):
        read_model(changed(FAMILIES["dbrx"], ("ffn_config", "moe_num_experts"), 2**33))
    with pytest.raises(UnsupportedModelError, match=r"^config field mamba_expand ="):
        read_model({**FAMILIES["jamba"], "mamba_expand": 10**40})


@pytest.mark.parametrize("field", ["moe_topk", "num_experts_per_tok"])
def test_a_token_cannot_use_more_experts_than_there_are(field: str) -> None:
    config = FAMILIES["hunyuan_v1_moe"]
    base = {name: value for name, value in config.items() if name != "moe_topk"}
    with pytest.raises(UnsupportedModelError) as refused:
        read_model({**base, field: 1000})
    assert refused.value.field == field
