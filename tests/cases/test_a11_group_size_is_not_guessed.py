"""Case A11: int4 of 7B to 14B models; a kernel made up a group of 344 (vllm issues 1258, 2419)."""

import pytest

from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices
from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.model import CacheKind, LayerCache, LayerSpec, ModelSpec
from labkit.plan.weights import WeightFormat


def llama_like(width: int, group_size: int, heads: int = 32) -> ModelSpec:
    """A model of 7B to 14B; its group size comes from the checkpoint's metadata."""
    format = WeightFormat("int4", 4, group_size=group_size, group_bits=20)
    hidden = heads * 128
    layer = LayerSpec(
        (
            *attention_matrices(hidden, heads, heads, 128, format=format),
            *gated_mlp_matrices(hidden, width, format=format),
        ),
        LayerCache(CacheKind.FULL, heads, 256),
        num_heads=heads,
        score_dim=128,
        value_dim=128,
    )
    return ModelSpec("llama", hidden, 32000, (layer,) * 2, (), ())


def test_11008_in_groups_of_128_is_cut_in_two_but_not_in_four():
    model = llama_like(11008, 128)
    assert check(model, Layout(tp=2)).is_legal
    (reason,) = check(model, Layout(tp=4)).reasons
    assert "MLP 11008 over TP 4 is 2752 a rank, no multiple of the quantisation group of 128" in (
        reason.text
    )
    assert "pad the MLP to 11264" in reason.fix
    assert check(model, Layout(tp=4)).legal_tp == (1, 2)


def test_13696_is_a_prime_number_of_groups_and_takes_no_tensor_parallelism():
    assert check(llama_like(13696, 128, heads=40), Layout(tp=2)).legal_tp == (1,)


@pytest.mark.parametrize(("group_size", "is_legal"), [(128, False), (64, True), (32, True)])
def test_the_group_size_is_the_metadata_s(group_size, is_legal):
    """2752 a rank holds 21.5 groups of 128 and 43 of 64; 344 would divide it and means nothing."""
    assert check(llama_like(11008, group_size), Layout(tp=4)).is_legal is is_legal


def test_no_group_is_made_up_where_none_is_stated():
    assert check(llama_like(11008, 0), Layout(tp=4)).is_legal
