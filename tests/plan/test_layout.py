"""Layouts are refused with every reason, before any process starts."""

import pickle

import pytest

from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import Layout, LayoutError, legal_tensor_parallel_sizes, validate
from labkit.plan.shard import PartitionError


def spec(**overrides) -> DecoderSpec:
    """SmolLM2-135M's shape: 9 heads over 3 KV heads, 30 layers."""
    shape = {
        "model_type": "llama",
        "num_layers": 30,
        "hidden_size": 576,
        "num_heads": 9,
        "num_kv_heads": 3,
        "head_dim": 64,
        "intermediate_size": 1536,
        "vocab_size": 49152,
    }
    return DecoderSpec(**(shape | overrides))


def test_the_world_is_the_product_of_the_axes():
    assert Layout(tp=3, pp=2, dp=4).world_size == 24


@pytest.mark.parametrize("axis", ["tp", "pp", "dp", "ep"])
def test_axes_start_at_one(axis):
    with pytest.raises(PartitionError, match=f"{axis.upper()} must be at least 1, not 0"):
        Layout(**{axis: 0})


@pytest.mark.parametrize("bad", [2.5, float("nan"), "2", True, None])
def test_axes_are_whole_numbers(bad):
    with pytest.raises(PartitionError, match="TP must be a whole number, not"):
        Layout(tp=bad)


def test_expert_parallelism_takes_whole_shares_of_a_stage():
    assert Layout(tp=4, dp=2, ep=4).expert_tp == 2
    with pytest.raises(PartitionError, match=r"EP 3 does not divide the TP 4 x DP 2 = 8 ranks"):
        Layout(tp=4, dp=2, ep=3)


def test_every_reason_is_given():
    with pytest.raises(LayoutError) as refused:
        validate(spec(intermediate_size=1535), Layout(tp=2, pp=31, ep=2))
    reasons = refused.value.reasons
    assert len(reasons) == 5
    for fact in ("9 attention heads", "3 KV heads", "MLP 1535", "PP 31", "EP 2"):
        assert any(fact in reason for reason in reasons)
    assert refused.value.legal == (1,)


def test_nine_heads_over_two_ranks_only_when_uneven_heads_are_allowed():
    with pytest.raises(LayoutError) as refused:
        validate(spec(), tp=2)
    assert refused.value.legal == (1, 3)
    assert validate(spec(), tp=2, allow_uneven_heads=True) == Layout(tp=2)


def test_legal_sizes_are_exactly_those_that_validate():
    for uneven in (False, True):
        legal = legal_tensor_parallel_sizes(spec(), limit=12, allow_uneven_heads=uneven)
        for tp in range(1, 13):
            if tp in legal:
                validate(spec(), tp=tp, allow_uneven_heads=uneven)
            else:
                with pytest.raises(LayoutError):
                    validate(spec(), tp=tp, allow_uneven_heads=uneven)
    assert legal_tensor_parallel_sizes(spec()) == (1, 3)


def test_any_vocabulary_is_legal_because_it_is_padded():
    assert validate(spec(vocab_size=32003), tp=3) == Layout(tp=3)


def test_a_wrong_pipeline_does_not_blame_tensor_parallelism():
    with pytest.raises(LayoutError) as refused:
        validate(spec(), Layout(tp=3, pp=31))
    assert refused.value.legal == ()
    assert "30 layers take PP 1 to 30" in str(refused.value)


def test_a_layout_refusal_survives_the_way_back_from_a_rank():
    with pytest.raises(LayoutError) as refused:
        validate(spec(), tp=4)
    copy = pickle.loads(pickle.dumps(refused.value))
    assert type(copy) is LayoutError
    assert str(copy) == str(refused.value)


def test_a_layout_and_a_degree_together_are_a_mistake():
    with pytest.raises(TypeError, match="not both"):
        validate(spec(), Layout(), tp=2)
