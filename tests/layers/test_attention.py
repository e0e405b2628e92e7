"""Attention over ranks, with a cache, equals attention written out plainly for one sequence."""

from dataclasses import dataclass

import pytest
import torch
from layer_inputs import named, real_numbers, whole_numbers
from torch import Tensor
from torch.nn import functional as F

from labkit.layers.attention import GQAttention
from labkit.layers.kv_cache import KVCache
from labkit.layers.rope import RotaryEmbedding
from labkit.layers.source import DictSource
from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import partition_heads
from labkit.ranks.comm import Comm

HEAD_DIM, HIDDEN, MAX_LEN = 8, 12, 16


def spec_of(num_heads: int, num_kv_heads: int, **options) -> DecoderSpec:
    return DecoderSpec(
        model_type="llama",
        num_layers=1,
        hidden_size=HIDDEN,
        num_heads=num_heads,
        num_kv_heads=num_kv_heads,
        head_dim=HEAD_DIM,
        intermediate_size=8,
        vocab_size=8,
        **options,
    )


def weights_of(spec: DecoderSpec, numbers=real_numbers) -> dict[str, Tensor]:
    q_size, kv_size = spec.num_heads * HEAD_DIM, spec.num_kv_heads * HEAD_DIM
    weights = {}
    for seed, (name, rows, columns, bias) in enumerate(
        [
            ("q_proj", q_size, HIDDEN, spec.qkv_bias),
            ("k_proj", kv_size, HIDDEN, spec.qkv_bias),
            ("v_proj", kv_size, HIDDEN, spec.qkv_bias),
            ("o_proj", HIDDEN, q_size, spec.o_bias),
        ]
    ):
        part_bias = numbers(rows, seed=seed + 20) if bias else None
        weights |= named(f"attn.{name}", numbers(rows, columns, seed=seed), part_bias)
    if spec.qk_norm:
        weights |= named("attn.q_norm", numbers(HEAD_DIM, seed=30))
        weights |= named("attn.k_norm", numbers(HEAD_DIM, seed=31))
    return weights


def reference(spec: DecoderSpec, weights: dict[str, Tensor], x_TD: Tensor) -> Tensor:
    """One sequence, one head and one query at a time, in float64."""

    def project(name: str, x: Tensor) -> Tensor:
        return F.linear(x, weights[f"attn.{name}.weight"], weights.get(f"attn.{name}.bias"))

    def prepared(name: str, norm: str) -> Tensor:
        heads = project(name, x_TD).unflatten(-1, (-1, HEAD_DIM))
        if spec.qk_norm:
            scale = (heads.square().mean(-1, keepdim=True) + spec.rms_norm_eps).rsqrt()
            heads = heads * scale * weights[f"attn.{norm}.weight"]
        half = HEAD_DIM // 2
        pairs = torch.complex(heads[..., :half], heads[..., half:])
        frequencies = spec.rope_theta ** -(torch.arange(half).double() / half)
        angles = torch.arange(len(x_TD)).double()[:, None] * frequencies
        turned = pairs * torch.polar(torch.ones_like(angles), angles)[:, None]
        return torch.cat((turned.real, turned.imag), dim=-1)

    q_THd, k_TKd = prepared("q_proj", "q_norm"), prepared("k_proj", "k_norm")
    v_TKd = project("v_proj", x_TD).unflatten(-1, (-1, HEAD_DIM))
    out_THd = torch.zeros_like(q_THd)
    window = spec.sliding_window or len(x_TD)
    for t in range(len(x_TD)):
        seen = slice(max(0, t - window + 1), t + 1)
        for head in range(spec.num_heads):
            kv_head = head * spec.num_kv_heads // spec.num_heads
            scores = k_TKd[seen, kv_head] @ q_THd[t, head] / HEAD_DIM**0.5
            out_THd[t, head] = scores.softmax(0) @ v_TKd[seen, kv_head]
    return project("o_proj", out_THd.flatten(1))


@dataclass(frozen=True)
class Case:
    n: int
    num_heads: int
    num_kv_heads: int
    uneven: bool = False


CASES = [
    Case(1, 9, 3),
    Case(1, 4, 4),
    Case(2, 8, 4),
    Case(2, 4, 1),  # TP above the KV heads: both ranks hold the one
    Case(2, 9, 3, uneven=True),  # 6 + 3 heads
    Case(3, 9, 3),
    Case(3, 10, 5, uneven=True),  # 4 + 4 + 2 heads
    Case(4, 8, 4),
    Case(4, 8, 2),  # TP above the KV heads, two ranks for each
]
VARIANTS = {
    "plain": {},
    "biases": {"qkv_bias": True, "o_bias": True},
    "qk-norm": {"qk_norm": True},
    "window": {"sliding_window": 3},
}
# Each schedule lists the steps of a batch: how many new tokens every sequence gets.
SCHEDULES = {
    "one sequence": [(5,), (1,), (1,), (1,)],
    "one token": [(1,), (1,)],
    "equal lengths": [(4, 4), (1, 1), (3, 3), (1, 1)],
    "ragged prompts": [(5, 2, 1), (1, 1, 1), (1, 1, 1)],
    "ragged chunks": [(3, 0, 4), (2, 3, 1), (1, 1, 0), (0, 4, 2), (1, 1, 1)],
    "no sequence": [(), ()],
}


def run_schedules(comm: Comm, case: Case, spec: DecoderSpec, weights, inputs, dtype):
    """For each schedule the outputs of every sequence, in order of its tokens."""
    heads = partition_heads(
        spec.num_heads, spec.num_kv_heads, comm.size, allow_uneven_heads=case.uneven
    )
    attention = GQAttention(spec, comm, heads, dtype=dtype)
    attention.load(DictSource(weights), "attn")
    rotary = RotaryEmbedding(spec)
    results = {}
    for name, steps in SCHEDULES.items():
        batch_size = len(steps[0])
        cache = KVCache(
            1,
            batch_size,
            len(heads.kv_heads(comm.rank)),
            MAX_LEN,
            spec.head_dim,
            sliding_window=spec.sliding_window,
            dtype=dtype,
        )
        outputs = [[] for _ in range(batch_size)]
        for counts in steps:
            x = torch.full((batch_size, max(counts, default=1), HIDDEN), 7.0, dtype=dtype)
            for b, count in enumerate(counts):
                start = cache.lengths[b]
                x[b, :count] = inputs[b, start : start + count]
            step = cache.step(x.shape[1], counts if batch_size else None)
            y = attention(x, rotary(step.positions_BT, dtype), cache.layers[0], step)
            assert y.isfinite().all()
            cache.advance(step)
            for b, count in enumerate(counts):
                outputs[b] += list(y[b, :count])
        results[name] = outputs
    return results


def largest_error(spec, weights, inputs, results) -> float:
    """Over all tokens, relative to the largest output of their sequence."""
    error = 0.0
    for outputs in results.values():
        for b, tokens in enumerate(outputs):
            expected = reference(spec, weights, inputs[b, : len(tokens)])
            difference = torch.stack(tokens).double() - expected
            error = max(error, float(difference.abs().max() / expected.abs().max()))
    return error


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equal_to_plain_attention_through_prefill_chunks_and_decode(pool, case, variant):
    spec = spec_of(case.num_heads, case.num_kv_heads, **VARIANTS[variant])
    weights, inputs = weights_of(spec), real_numbers(3, MAX_LEN, HIDDEN, seed=8) / 4
    per_rank = pool(case.n).run(run_schedules, case, spec, weights, inputs, torch.float64)
    for results in per_rank:
        # Angles are float32, as in every implementation: that bounds the agreement.
        assert largest_error(spec, weights, inputs, results) < 2e-4


@pytest.mark.parametrize("case", CASES, ids=str)
def test_ranks_agree_with_one_rank_to_the_last_bits(pool, case):
    spec = spec_of(case.num_heads, case.num_kv_heads)
    weights, inputs = weights_of(spec), real_numbers(3, MAX_LEN, HIDDEN, seed=8) / 4
    alone = run_schedules(
        Comm.solo(),
        Case(1, case.num_heads, case.num_kv_heads),
        spec,
        weights,
        inputs,
        torch.float64,
    )
    for results in pool(case.n).run(run_schedules, case, spec, weights, inputs, torch.float64):
        for name, outputs in results.items():
            for tokens, expected in zip(outputs, alone[name], strict=True):
                torch.testing.assert_close(
                    torch.stack(tokens), torch.stack(expected), rtol=1e-12, atol=1e-11
                )


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)])
@pytest.mark.parametrize(
    "case", [Case(1, 9, 3), Case(2, 9, 3, uneven=True), Case(4, 8, 2)], ids=str
)
def test_equal_to_rounding_in_narrower_types(pool, case, dtype, tolerance):
    spec = spec_of(case.num_heads, case.num_kv_heads)
    weights = {name: tensor / 4 for name, tensor in weights_of(spec).items()}
    weights = {name: tensor.to(dtype).double() for name, tensor in weights.items()}
    inputs = real_numbers(3, MAX_LEN, HIDDEN, seed=8, dtype=dtype).double()
    for results in pool(case.n).run(run_schedules, case, spec, weights, inputs, dtype):
        assert largest_error(spec, weights, inputs, results) < tolerance


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_first_token_is_exact_in_whole_numbers(pool, case):
    """A token that sees only itself, at position 0: the output is its value, projected."""
    spec = spec_of(case.num_heads, case.num_kv_heads, qkv_bias=True, o_bias=True)
    weights = weights_of(spec, whole_numbers)
    inputs = whole_numbers(3, MAX_LEN, HIDDEN, seed=8)
    value = F.linear(inputs[0, 0], weights["attn.v_proj.weight"], weights["attn.v_proj.bias"])
    by_head = value.unflatten(0, (case.num_kv_heads, 1, HEAD_DIM))
    repeated = by_head.expand(-1, case.num_heads // case.num_kv_heads, -1).flatten()
    expected = F.linear(repeated, weights["attn.o_proj.weight"], weights["attn.o_proj.bias"])
    for results in pool(case.n).run(run_schedules, case, spec, weights, inputs, torch.float64):
        assert torch.equal(results["one token"][0][0], expected)


def test_the_window_reaches_back_exactly_its_length():
    """Two inputs that differ only in a token just outside the window give equal outputs."""
    spec = spec_of(4, 2, sliding_window=3)
    weights = weights_of(spec)
    inputs = real_numbers(3, MAX_LEN, HIDDEN, seed=8)
    changed = inputs.clone()
    changed[0, 2] += 1.0
    before, after = (
        run_schedules(Comm.solo(), Case(1, 4, 2), spec, weights, x, torch.float64)["one sequence"][
            0
        ]
        for x in (inputs, changed)
    )
    same = [torch.equal(a, b) for a, b in zip(before, after, strict=True)]
    assert same == [True, True, False, False, False, True, True, True]
