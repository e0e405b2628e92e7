"""PackedWeight equals F.linear, whatever layout it chose."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from labkit.layers import weight as weight_module
from labkit.layers.weight import BLOCKED_MIN_ELEMENTS, PackedWeight, prefers_blocked

SHAPES = [(1, 1), (7, 3), (17, 33), (64, 64), (320, 576), (576, 192), (513, 129)]
LEADING = [(), (1,), (3,), (2, 5), (0,), (2, 0), (33,)]
TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float64: 1e-12, torch.float16: 1e-2}


@pytest.fixture
def block_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small weights take the blocked layout too, so that odd shapes go through it."""
    monkeypatch.setattr(weight_module, "BLOCKED_MIN_ELEMENTS", 1)


def _assert_close_to_float64(y: torch.Tensor, x: torch.Tensor, w: torch.Tensor, b) -> None:
    expected = F.linear(x.double(), w.double(), None if b is None else b.double())
    scale = x.double().abs() @ w.double().abs().t() + 1.0
    assert y.shape == expected.shape
    assert y.dtype == x.dtype
    assert ((y.double() - expected).abs() <= TOLERANCE[x.dtype] * scale).all()


@pytest.mark.usefixtures("block_everything")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.float16])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_product_equals_float64_to_rounding(dtype, shape, has_bias):
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(*shape, generator=generator).to(dtype)
    b = torch.randn(shape[0], generator=generator).to(dtype) if has_bias else None
    packed = PackedWeight(w, b)
    for leading in LEADING:
        x = torch.randn(*leading, shape[1], generator=generator).to(dtype)
        _assert_close_to_float64(packed.matmul(x), x, w, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(0, 40),
    out_features=st.integers(1, 700),
    in_features=st.integers(1, 700),
    seed=st.integers(0, 2**31),
)
def test_integers_are_exact(dtype, rows, out_features, in_features, seed):
    generator = torch.Generator().manual_seed(seed)
    w = torch.randint(-8, 9, (out_features, in_features), generator=generator)
    x = torch.randint(-8, 9, (rows, in_features), generator=generator)
    b = torch.randint(-8, 9, (out_features,), generator=generator)
    y = PackedWeight(w.to(dtype), b.to(dtype)).matmul(x.to(dtype))
    assert torch.equal(y.long(), x @ w.t() + b)


@pytest.mark.usefixtures("block_everything")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_unpacked_returns_every_bit(dtype, shape):
    w = torch.randn(*shape).to(dtype)
    transposed = torch.randn(shape[1], shape[0]).to(dtype).t()
    assert torch.equal(PackedWeight(w).unpacked(), w)
    assert torch.equal(PackedWeight(transposed).unpacked(), transposed)


@pytest.mark.usefixtures("block_everything")
def test_inputs_need_not_be_contiguous():
    w = torch.randn(96, 64)
    for x in (torch.randn(64, 5).t(), torch.randn(5, 128)[:, ::2], torch.randn(3, 2, 64).mT.mT[1:]):
        _assert_close_to_float64(PackedWeight(w).matmul(x), x, w, None)


@pytest.mark.usefixtures("block_everything")
def test_copy_and_pickle_keep_the_product():
    packed = PackedWeight(torch.randn(96, 64), torch.randn(96))
    x = torch.randn(3, 64)
    for twin in (copy.deepcopy(packed), pickle.loads(pickle.dumps(packed))):
        assert torch.equal(twin.matmul(x), packed.matmul(x))


@pytest.mark.parametrize("size", [64, 320])
def test_wrong_features_and_dtype_are_refused_in_words(size):
    packed = PackedWeight(torch.randn(size, size))
    with pytest.raises(ValueError, match=f"7 features in torch.float32; this weight takes {size}"):
        packed.matmul(torch.randn(2, 7))
    with pytest.raises(ValueError, match="bfloat16"):
        packed.matmul(torch.randn(2, size).bfloat16())


def test_blocked_layout_is_left_alone_where_it_was_not_measured(monkeypatch):
    side = 512
    assert side * side >= BLOCKED_MIN_ELEMENTS
    assert not prefers_blocked(torch.empty(side, side, dtype=torch.float64))
    assert not prefers_blocked(torch.empty(side, side, dtype=torch.float16))
    assert not prefers_blocked(torch.empty(side, side, device="meta"))
    assert not prefers_blocked(torch.empty(8, 8))
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    assert not prefers_blocked(torch.empty(side, side))


def test_missing_onednn_falls_back_to_the_plain_product(monkeypatch):
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    w, x = torch.randn(512, 256), torch.randn(3, 256)
    packed = PackedWeight(w)
    assert not packed.is_blocked
    assert torch.equal(packed.matmul(x), F.linear(x, w))


def test_large_float32_weights_are_blocked_on_x86():
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        pytest.skip("the blocked layout is used on x86 only")
    assert PackedWeight(torch.randn(576, 576)).is_blocked
