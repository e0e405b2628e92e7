"""RMSNorm agrees to the bit with the one in transformers."""

import pytest
import torch
from layer_inputs import real_numbers
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

from labkit.layers.norm import RMSNorm
from labkit.layers.source import DictSource


@pytest.mark.parametrize("theirs", [LlamaRMSNorm, Qwen3RMSNorm])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1, 576), (2, 7, 576), (2, 3, 4, 64), (0, 1, 576)])
def test_equal_to_transformers_to_the_bit(shape, dtype, theirs):
    weight = real_numbers(shape[-1], seed=1, dtype=dtype)
    x = real_numbers(*shape, seed=2, dtype=dtype) * 3
    reference = theirs(shape[-1], eps=1e-5).to(dtype)
    reference.weight.data.copy_(weight)
    norm = RMSNorm(shape[-1], 1e-5, dtype=dtype)
    norm.load(DictSource({"norm.weight": weight}), "norm")
    assert torch.equal(norm(x), reference(x))


def test_double_precision_is_not_rounded_to_single():
    x, weight = real_numbers(3, 8, seed=1), real_numbers(8, seed=2)
    norm = RMSNorm(8, 1e-6, dtype=torch.float64)
    norm.load(DictSource({"norm.weight": weight}), "norm")
    expected = x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight
    torch.testing.assert_close(norm(x), expected, rtol=1e-14, atol=1e-14)


def test_a_weight_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"norm.weight has shape \[9\]; this layer needs \[8\]"):
        RMSNorm(8, 1e-6).load(DictSource({"norm.weight": torch.ones(9)}), "norm")
