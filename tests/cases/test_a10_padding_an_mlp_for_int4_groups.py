"""Case A10: Qwen2-72B in int4 groups of 128 at TP 2, 4 and 8 (vllm issues 21695 and 13640)."""

from dataclasses import replace

import pytest

from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.model import ModelSpec
from labkit.plan.weights import Split, WeightFormat

QWEN2_72B = ModelSpec.from_hf(
    {
        "model_type": "qwen2",
        "hidden_size": 8192,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "intermediate_size": 29568,
        "num_hidden_layers": 80,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "hidden_act": "silu",
    }
)
INT4 = WeightFormat("int4", 4, group_size=128, group_bits=20)


def quantised(model: ModelSpec) -> ModelSpec:
    layer = model.layers[0]
    matrices = tuple(
        replace(matrix, format=INT4) if matrix.split in (Split.COLUMN, Split.ROW) else matrix
        for matrix in layer.matrices
    )
    return replace(model, layers=(replace(layer, matrices=matrices),) * model.num_layers)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_groups_of_128_are_cut_and_padding_by_128_channels_is_offered(tp):
    legality = check(quantised(QWEN2_72B), Layout(tp=tp))
    (reason,) = legality.reasons
    assert f"MLP 29568 over TP {tp} is {29568 // tp} a rank" in reason.text
    assert "quantisation group of 128 of down_proj" in reason.text
    assert "pad the MLP to 29696 with 128 zero channels" in reason.fix
    assert "leaves the outputs unchanged" in reason.fix
    assert reason.is_fixable_by_padding
    assert legality.legal_tp == (1,)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_without_groups_the_same_width_is_legal(tp):
    assert check(QWEN2_72B, Layout(tp=tp)).is_legal


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_the_padded_width_is_legal(tp):
    config = {"intermediate_size": 29696}
    layer = QWEN2_72B.layers[0]
    sizes = {"gate_proj": "out_features", "up_proj": "out_features", "down_proj": "in_features"}
    matrices = tuple(
        replace(matrix, **{sizes[name]: config["intermediate_size"]}) if name in sizes else matrix
        for matrix in layer.matrices
        for name in [matrix.name.rsplit(".", 1)[-1]]
    )
    padded = replace(QWEN2_72B, layers=(replace(layer, matrices=matrices),) * 80)
    assert check(quantised(padded), Layout(tp=tp)).is_legal
