"""What layers keep, and how their weights are cut, in families that are not all alike."""

from __future__ import annotations

import pytest

from labkit.plan.model import CacheKind, LayerSpec, ModelSpec
from labkit.plan.weights import Matrix, Split
from tests.plan.test_hybrid_families import CONFIGS as HYBRIDS
from tests.plan.test_latent_families import CONFIGS as LATENT
from tests.plan.test_moe_families import CONFIGS as MIXTURES

FULL, WINDOW, RECURRENT = CacheKind.FULL, CacheKind.WINDOW, CacheKind.RECURRENT


def named(layer: LayerSpec, name: str) -> Matrix:
    return next(matrix for matrix in layer.matrices if matrix.name.endswith(name))


@pytest.mark.parametrize(
    ("config", "kinds"),
    [
        (MIXTURES["gpt_oss"], [WINDOW, FULL, WINDOW, FULL]),
        (MIXTURES["llama4_text"], [WINDOW, WINDOW, WINDOW, FULL]),
        (MIXTURES["mixtral"], [WINDOW] * 4),
        (HYBRIDS["qwen3_next"], [RECURRENT, RECURRENT, RECURRENT, FULL]),
        (HYBRIDS["kimi_linear"], [RECURRENT, RECURRENT, RECURRENT, CacheKind.LATENT]),
        (HYBRIDS["gemma4 shared"], [WINDOW, WINDOW, FULL, *[CacheKind.NONE] * 3]),
        (HYBRIDS["jamba"], [RECURRENT, RECURRENT, FULL, RECURRENT]),
        (HYBRIDS["nemotron_h"], [RECURRENT, CacheKind.NONE, FULL, CacheKind.NONE]),
        (HYBRIDS["minimax"], [FULL, RECURRENT, FULL, RECURRENT]),
        (HYBRIDS["lfm2"], [RECURRENT, FULL, RECURRENT, FULL]),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_each_layer_keeps_what_its_kind_keeps(config: dict, kinds: list[CacheKind]) -> None:
    assert [layer.cache.kind for layer in ModelSpec.from_hf(config).layers] == kinds


def test_a_window_as_long_as_the_longest_sequence_is_none() -> None:
    config = MIXTURES["mixtral"] | {"sliding_window": 64}
    assert ModelSpec.from_hf(config).layers[0].cache.kind is FULL


def test_latent_attention_caches_one_latent_and_one_rotated_key_for_all_heads() -> None:
    layer = ModelSpec.from_hf(LATENT["deepseek_v3"]).layers[-1]
    assert layer.cache.elements_per_token == 20 + 8
    assert (layer.score_dim, layer.value_dim) == (28, 20)


def test_an_indexer_caches_a_key_of_its_own_for_each_token() -> None:
    layers = ModelSpec.from_hf(LATENT["glm_moe_dsa"]).layers
    assert [layer.cache.elements_per_token for layer in layers] == [44, 28, 44, 28]


def test_a_state_counts_the_convolution_in_the_models_and_the_rest_in_its_own_precision() -> None:
    config = HYBRIDS["qwen3_5_moe_text"] | {"mamba_ssm_dtype": "float32", "dtype": "bfloat16"}
    cache = ModelSpec.from_hf(config).layers[0].cache
    convolution, heads = 3 * (2 * 2 * 8 + 6 * 12), 6 * 8 * 12
    assert cache.state_elements == convolution + heads
    assert cache.state_elements * cache.state_bytes_per_element == pytest.approx(
        2 * convolution + 4 * heads
    )


def test_attention_and_state_space_side_by_side_keep_both() -> None:
    cache = ModelSpec.from_hf(HYBRIDS["falcon_h1"]).layers[0].cache
    assert cache.kind is FULL
    assert cache.elements_per_token == 2 * 2 * 8
    assert cache.state_elements == (96 + 2 * 2 * 5) * 2 + 96 * 5


def test_global_layers_with_keys_for_values_still_cache_both() -> None:
    layer = ModelSpec.from_hf(HYBRIDS["gemma4 keys are values"]).layers[2]
    assert not any(matrix.name.endswith("v_proj") for matrix in layer.matrices)
    assert (layer.cache.heads, layer.cache.elements_per_head) == (2, 2 * 16)


@pytest.mark.parametrize("config", [MIXTURES["qwen3_moe"], LATENT["deepseek_v3"]])
def test_every_rank_holds_the_router_whole(config: dict) -> None:
    layer = next(layer for layer in ModelSpec.from_hf(config).layers if layer.experts)
    routers = [matrix for matrix in layer.matrices if matrix.part == "router"]
    assert routers
    assert {matrix.split for matrix in routers} == {Split.WHOLE}


def test_projections_into_latents_are_whole_and_those_out_of_them_cut_by_heads() -> None:
    layer = ModelSpec.from_hf(LATENT["deepseek_v32"]).layers[0]
    for name in ("q_a_proj", "kv_a_proj_with_mqa", "indexer.wq_b", "indexer.wk"):
        assert named(layer, name).split is Split.WHOLE
    for name in ("self_attn.q_b_proj", "kv_b_proj"):
        assert (named(layer, name).split, named(layer, name).heads) == (Split.COLUMN, 6)
    assert named(layer, "o_proj").split is Split.ROW


def test_an_output_gate_doubles_the_query_projection_without_adding_heads() -> None:
    layer = ModelSpec.from_hf(HYBRIDS["qwen3_next"]).layers[3]
    query = named(layer, "q_proj")
    assert (query.out_features, query.heads, query.replicates) == (2 * 6 * 16, 6, False)
    assert named(layer, "k_proj").replicates


def test_shared_experts_are_cut_like_an_mlp_and_dealt_to_no_expert_rank() -> None:
    layer = ModelSpec.from_hf(MIXTURES["qwen2_moe"]).layers[0]
    shared = [matrix for matrix in layer.matrices if matrix.part == "shared experts"]
    assert [matrix.split for matrix in shared] == [
        Split.COLUMN,
        Split.COLUMN,
        Split.ROW,
        Split.WHOLE,
    ]
    assert not any(matrix.is_expert for matrix in shared)


def test_groups_of_mamba2_heads_are_copied_where_ranks_outnumber_them() -> None:
    layer = ModelSpec.from_hf(HYBRIDS["bamba"]).layers[0]
    parts = [matrix for matrix in layer.matrices if matrix.name == "mamba.in_proj"]
    assert [(part.heads, part.replicates) for part in parts] == [
        (12, False),
        (2, True),
        (12, False),
    ]


def test_a_token_uses_its_own_experts_only() -> None:
    spec = ModelSpec.from_hf(MIXTURES["mixtral"])
    idle = 4 * 3 * (3 * 48 * 56)  # layers, experts not chosen, weights of one
    assert spec.num_parameters - spec.num_active_parameters == idle


def test_idle_experts_of_longcat_lower_the_active_ones() -> None:
    config = LATENT["longcat_flash"] | {"zero_expert_num": 6}
    experts = ModelSpec.from_hf(config).layers[0].experts
    assert experts is not None
    assert (experts.num_experts, experts.top_k) == (6, 1)


def test_multi_token_prediction_is_counted_apart_from_the_model() -> None:
    config = LATENT["deepseek_v3"]
    without, with_mtp = (
        ModelSpec.from_hf(config | {"num_nextn_predict_layers": n}) for n in (0, 1)
    )
    assert with_mtp.num_parameters == without.num_parameters
    extra = 2 * 96 * 48 + 3 * 48 + 2 * 48 * 48  # embedding, LM head, norms, projection
    assert with_mtp.num_mtp_parameters == with_mtp.layers[-1].num_parameters + extra


def test_an_embedding_only_looked_up_is_left_out_unless_it_is_the_head_as_well() -> None:
    untied, tied = (
        ModelSpec.from_hf(MIXTURES["mixtral"]),
        ModelSpec.from_hf(MIXTURES["mixtral tied"]),
    )
    assert untied.num_active_parameters_without_embedding == untied.num_active_parameters - 96 * 48
    assert tied.num_active_parameters_without_embedding == tied.num_active_parameters
