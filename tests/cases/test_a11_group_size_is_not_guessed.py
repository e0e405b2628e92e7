"""Case A11: int4 of 7B to 14B models; a kernel made up a group of 344 (vllm issues 1258, 2419)."""

import pytest

from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.model import ModelSpec


def llama_like(width: int, group_size: int, heads: int = 32) -> ModelSpec:
    return ModelSpec.from_hf(
        {
            "model_type": "llama",
            "hidden_size": heads * 128,
            "num_attention_heads": heads,
            "num_key_value_heads": heads,
            "intermediate_size": width,
            "num_hidden_layers": 2,
            "vocab_size": 32000,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
            "torch_dtype": "float16",
            "quantization_config": {
                "quant_method": "gptq",
                "bits": 4,
                "group_size": group_size,
                "sym": True,
                "desc_act": False,
            },
        }
    )


def test_11008_in_groups_of_128_is_cut_in_two_but_not_in_four():
    model = llama_like(11008, 128)
    assert check(model, Layout(tp=2)).is_legal
    legality = check(model, Layout(tp=4))
    (reason,) = legality.reasons
    assert "11008 over TP 4 is 2752 a rank, no multiple of the quantisation group" in reason.text
    assert "pad the MLP to 11264" in reason.fix
    assert legality.legal_tp == (1, 2)


def test_13696_is_a_prime_number_of_groups_and_takes_no_tensor_parallelism():
    assert check(llama_like(13696, 128, heads=40), Layout(tp=2)).legal_tp == (1,)


@pytest.mark.parametrize(("group_size", "is_legal"), [(128, False), (64, True), (32, True)])
def test_the_group_size_is_the_metadata_s(group_size, is_legal):
    """2752 a rank holds 21.5 groups of 128 and 43 of 64; 344 would divide it and means nothing."""
    assert check(llama_like(11008, group_size), Layout(tp=4)).is_legal is is_legal


def test_one_group_for_each_channel_is_no_group_of_the_width():
    assert check(llama_like(11008, -1), Layout(tp=4)).is_legal
