"""Rotary embeddings against those of transformers, for every kind of scaling."""

import pytest
import torch
from layer_inputs import real_numbers
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from labkit.layers.rope import RotaryEmbedding, apply_rotary
from labkit.plan.decoder import DecoderSpec

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
SCALINGS = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 2.5},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn-betas": YARN | {"beta_fast": 16.0, "beta_slow": 2.0},
    "yarn-attention-factor": YARN | {"attention_factor": 0.75},
    "yarn-mscale": YARN | {"mscale": 0.7, "mscale_all_dim": 0.9},
    "yarn-not-truncated": YARN | {"truncate": False},
    "yarn-short": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16},
}


def config(scaling: dict, theta: float = 500000.0) -> dict:
    return {
        "model_type": "llama",
        "hidden_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "num_hidden_layers": 1,
        "intermediate_size": 64,
        "vocab_size": 32,
        "max_position_embeddings": 131072,
        "rope_parameters": scaling | {"rope_theta": theta},
    }


def both(scaling: dict, theta: float) -> tuple[RotaryEmbedding, LlamaRotaryEmbedding]:
    settings = {k: v for k, v in config(scaling, theta).items() if k != "model_type"}
    ours = RotaryEmbedding(DecoderSpec.from_hf(config(scaling, theta)))
    return ours, LlamaRotaryEmbedding(LlamaConfig(**settings))


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
def test_frequencies_equal_those_of_transformers(scaling, theta):
    ours, theirs = both(scaling, theta)
    torch.testing.assert_close(ours.inv_freq_h, theirs.inv_freq, rtol=3e-7, atol=0)
    assert ours.attention_factor == pytest.approx(theirs.attention_scaling, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("scaling", SCALINGS.values(), ids=SCALINGS)
def test_turned_heads_equal_those_of_transformers(scaling, dtype):
    ours, theirs = both(scaling, 500000.0)
    positions = torch.tensor([[0, 1, 2, 17, 1000], [5, 4095, 8192, 40000, 131071]])
    q = real_numbers(2, 5, 4, 64, seed=1, dtype=dtype)
    k = real_numbers(2, 5, 2, 64, seed=2, dtype=dtype)
    theirs.inv_freq.copy_(ours.inv_freq_h)  # compared above; a last bit is a large angle far out
    cos, sin = theirs(q, positions)
    expected_q, expected_k = apply_rotary_pos_emb(
        q.transpose(1, 2), k.transpose(1, 2), cos.to(dtype), sin.to(dtype)
    )
    rotation = ours(positions, dtype)
    assert torch.equal(apply_rotary(q, rotation), expected_q.transpose(1, 2))
    assert torch.equal(apply_rotary(k, rotation), expected_k.transpose(1, 2))


def test_scores_depend_on_the_distance_only():
    ours, _ = both(SCALINGS["default"], 10000.0)
    q, k = real_numbers(1, 1, 1, 64, seed=1), real_numbers(1, 1, 1, 64, seed=2)

    def score(q_position: int, k_position: int) -> float:
        turned = [
            apply_rotary(x, ours(torch.tensor([[position]]), torch.float64))
            for x, position in ((q, q_position), (k, k_position))
        ]
        return float((turned[0] * turned[1]).sum())

    assert score(9, 4) == pytest.approx(score(105, 100), abs=1e-4)
    assert score(9, 4) != pytest.approx(score(10, 4), abs=1e-2)


def test_position_zero_is_not_turned():
    ours, _ = both(SCALINGS["llama3"], 10000.0)
    x = real_numbers(1, 1, 3, 64, seed=1)
    assert torch.equal(apply_rotary(x, ours(torch.tensor([[0]]), torch.float64)), x)
