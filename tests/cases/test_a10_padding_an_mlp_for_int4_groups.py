"""Case A10: Qwen2-72B in int4 groups of 128 at TP 2, 4 and 8 (vllm issues 21695 and 13640)."""

import pytest

from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.model import ModelSpec

GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}


def qwen2_72b(width: int = 29568, quantization: dict | None = None) -> ModelSpec:
    config = {
        "model_type": "qwen2",
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": width,
        "num_hidden_layers": 80,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
    }
    return ModelSpec.from_hf(
        config | ({"quantization_config": quantization} if quantization else {})
    )


@pytest.mark.parametrize("quantization", [GPTQ, AWQ])
@pytest.mark.parametrize("tp", [2, 4, 8])
def test_groups_of_128_are_cut_and_padding_by_128_channels_is_offered(tp, quantization):
    legality = check(qwen2_72b(quantization=quantization), Layout(tp=tp))
    (reason,) = legality.reasons
    assert f"MLP 29568 over TP {tp} is {29568 // tp} a rank" in reason.text
    assert "quantisation group of 128 of down_proj" in reason.text
    assert "pad the MLP to 29696 with 128 zero channels" in reason.fix
    assert "leaves the outputs unchanged" in reason.fix
    assert reason.is_fixable_by_padding
    assert legality.legal_tp == (1,)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_without_groups_the_same_width_is_legal(tp):
    assert check(qwen2_72b(), Layout(tp=tp)).is_legal


@pytest.mark.parametrize("quantization", [GPTQ, AWQ])
def test_the_padded_width_is_legal(quantization):
    assert check(qwen2_72b(29696, quantization), Layout(tp=8)).legal_tp == (1, 2, 4, 8)


def test_cutting_the_width_down_to_whole_groups_would_serve_tp_2_only():
    """230 groups; and it drops 128 channels, which changes the outputs."""
    assert check(qwen2_72b(29440, GPTQ), Layout(tp=8)).legal_tp == (1, 2)
