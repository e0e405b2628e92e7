"""What a rank holds on paper is what a loaded shard holds, and nothing is lost or hidden."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.experiments import tensor_parallel as experiment
from labkit.plan.decoder import DecoderSpec
from labkit.plan.holdings import holdings, nearest_legal_sizes
from labkit.plan.layout import LayoutError, legal_tensor_parallel_sizes
from labkit.plan.presets import PRESETS
from labkit.ranks.pool import RankPool

Pools = Callable[[int], RankPool]
FP32 = 4

BIASED = DecoderSpec(
    model_type="llama",
    num_layers=2,
    hidden_size=48,
    num_heads=4,
    num_kv_heads=2,
    head_dim=12,
    intermediate_size=96,
    vocab_size=301,
    qkv_bias=True,
    o_bias=True,
    mlp_bias=True,
    qk_norm=True,
)


def assert_as_measured(pool: Pools, model: Path, tp: int, *, allow_uneven_heads: bool = False):
    planned = holdings(
        DecoderSpec.from_hf(model),
        tp,
        bytes_per_element=FP32,
        allow_uneven_heads=allow_uneven_heads,
    )
    loaded = pool(tp).put(experiment.load_traced, model, allow_uneven_heads=allow_uneven_heads)
    shares = pool(tp).run(experiment.share, loaded)
    for rank, share in zip(planned.ranks, shares, strict=True):
        assert dict(rank.weight_bytes) == share.weight_bytes
        assert (len(rank.q_heads), len(rank.kv_heads)) == (share.q_heads, share.kv_heads)


@pytest.mark.parametrize("tp", [1, 2, 4])
def test_planned_bytes_are_those_of_the_loaded_tiny_model(pool: Pools, tiny: Path, tp: int):
    assert_as_measured(pool, tiny, tp)


def test_planned_bytes_are_those_of_the_loaded_smollm2(pool: Pools, smollm2: Path):
    assert_as_measured(pool, smollm2, 3)


def test_planned_bytes_of_uneven_heads_are_those_of_the_loaded_smollm2(pool: Pools, smollm2: Path):
    assert_as_measured(pool, smollm2, 2, allow_uneven_heads=True)


def test_one_rank_holds_the_model_and_the_padding():
    for preset in PRESETS.values():
        whole = holdings(preset.spec, 1)
        assert whole.total_bytes == 2 * preset.spec.num_parameters + whole.padded_bytes
        assert whole.replicated_bytes == 0


@pytest.mark.parametrize("tp", [1, 2, 4])
@pytest.mark.parametrize("spec", [BIASED, replace(BIASED, tie_word_embeddings=True)])
def test_all_bytes_are_the_model_its_copies_or_padding(spec: DecoderSpec, tp: int):
    held = holdings(spec, tp, bytes_per_element=FP32)
    model = FP32 * spec.num_parameters
    assert held.total_bytes == model + held.replicated_bytes + held.padded_bytes
    assert held.num_kv_head_replicas == (2 if tp == 4 else 1)


@given(data=st.data())
def test_ranges_tile_every_preset_once_but_for_kv_replicas(data: st.DataObject):
    spec = data.draw(st.sampled_from([preset.spec for preset in PRESETS.values()]))
    tp = data.draw(st.sampled_from(legal_tensor_parallel_sizes(spec)))
    held = holdings(spec, tp)
    assert [h for rank in held.ranks for h in rank.q_heads] == list(range(spec.num_heads))
    assert held.ranks[-1].mlp_columns.stop == spec.intermediate_size
    assert held.ranks[-1].vocab_rows.stop == spec.vocab_size + held.padded_rows
    assert sum(len(rank.real_vocab_rows) for rank in held.ranks) == spec.vocab_size
    for before, after in zip(held.ranks, held.ranks[1:], strict=False):
        assert after.mlp_columns.start == before.mlp_columns.stop
        assert after.vocab_rows.start == before.vocab_rows.stop
    copies = [head for rank in held.ranks for head in rank.kv_heads]
    assert copies == [h for h in range(spec.num_kv_heads) for _ in range(held.num_kv_head_replicas)]
    assert held.total_bytes == (2 * spec.num_parameters + held.replicated_bytes + held.padded_bytes)


def test_kv_replica_costs_its_weights_and_its_cache_once_more():
    spec = PRESETS["llama-3.1-70b"].spec
    at_8, at_16 = holdings(spec, 8), holdings(spec, 16)
    assert at_8.extra_kv_heads == at_8.extra_kv_bytes_per_token == 0
    assert at_16.extra_kv_heads == 8
    # keys and values, 80 layers, 128 rows of 8192, 2 bytes; then the same rows per token
    assert at_16.kv_head_weight_bytes == 2 * 80 * 128 * 8192 * 2
    assert at_16.kv_head_bytes_per_token == 2 * 80 * 128 * 2
    assert at_16.kv_bytes_per_token == 2 * at_8.kv_bytes_per_token
    assert at_16.kv_bytes_per_token - at_8.kv_bytes_per_token == at_16.extra_kv_bytes_per_token
    assert at_16.ranks[0].kv_bytes_per_token == at_8.ranks[0].kv_bytes_per_token
    assert at_8.kv_bytes_per_token == spec.kv_bytes_per_token(2)


def test_row_parallel_bias_is_on_rank_0_only():
    first, second = holdings(BIASED, 2, bytes_per_element=1).ranks
    biases = BIASED.num_layers * BIASED.hidden_size
    assert first.weight_bytes["attention"] - second.weight_bytes["attention"] == biases
    assert first.weight_bytes["MLP"] - second.weight_bytes["MLP"] == biases


def test_illegal_size_is_refused_with_every_reason():
    with pytest.raises(LayoutError) as refused:
        holdings(PRESETS["smollm2-135m"].spec, 4)
    assert len(refused.value.reasons) == 2


def test_element_without_a_byte_is_refused():
    with pytest.raises(ValueError, match="at least 1 byte"):
        holdings(BIASED, 1, bytes_per_element=0)


def test_nearest_legal_sizes_stand_on_both_sides():
    smollm2, llama = PRESETS["smollm2-135m"].spec, PRESETS["llama-3.1-70b"].spec
    assert nearest_legal_sizes(smollm2, 2) == (1, 3)
    assert nearest_legal_sizes(smollm2, 3) == (3,)
    assert nearest_legal_sizes(smollm2, 16)[-1] <= 9
    assert nearest_legal_sizes(llama, 12) == (8, 16)
    assert nearest_legal_sizes(smollm2, 4, allow_uneven_heads=True)[0] == 3
