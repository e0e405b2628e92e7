"""Case A1: Qwen2.5-0.5B was launched on 4 ranks with 14 heads (vllm-ascend pull request 2139)."""

import pytest

from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import Layout, LayoutError, legal_tensor_parallel_sizes, validate

QWEN25_05B = DecoderSpec.from_hf(
    {
        "model_type": "qwen2",
        "hidden_size": 896,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "vocab_size": 151936,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
    }
)


@pytest.mark.parametrize("tp", [4, 8])
def test_too_many_ranks_are_refused_with_heads_degree_and_nearest_legal(tp):
    with pytest.raises(LayoutError) as refused:
        validate(QWEN25_05B, tp=tp)
    assert str(refused.value) == (
        f"14 attention heads do not divide over TP {tp}; legal here: 1, 2 (2 KV heads, MLP 4864)"
    )


@pytest.mark.parametrize(
    ("tp", "reasons"),
    [
        (
            7,
            (
                "2 KV heads neither divide over TP 7 nor replicate evenly on it",
                "MLP 4864 does not divide over TP 7",
            ),
        ),
        (14, ("MLP 4864 does not divide over TP 14",)),
    ],
)
def test_dividing_the_heads_is_not_enough(tp, reasons):
    with pytest.raises(LayoutError) as refused:
        validate(QWEN25_05B, tp=tp)
    assert refused.value.reasons == reasons
    assert refused.value.legal == (1, 2)
    for fact in ("14 attention heads", f"TP {tp}", "legal here: 1, 2"):
        assert fact in str(refused.value)


def test_only_one_and_two_are_legal():
    assert legal_tensor_parallel_sizes(QWEN25_05B) == (1, 2)
    for tp in (1, 2):
        assert validate(QWEN25_05B, tp=tp) == Layout(tp=tp)
