"""The trainer: the loss goes down, a resumed run equals an unbroken one, the model is a Llama."""

import sys
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from training.tiny.corpus import DOMAINS, document
from training.tiny.model import TinyConfig, TinyLlama
from training.tiny.optimizer import orthogonalise, schedule
from training.tiny.packing import END_ID, PackedStream
from training.tiny.tokenizer import train_tokenizer
from training.tiny.train import SMOKE, SMOKE_CONFIG, Run, main


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(seed=0, count=300)


def test_smoke_run_lowers_the_held_out_loss(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--smoke"])
    main()
    before, after = capsys.readouterr().out.splitlines()[-1].split("loss ")[1].split(" -> ")
    assert float(after) < float(before) - 0.5


def test_a_resumed_run_equals_an_unbroken_one(tokenizer, tmp_path):
    recipe = replace(SMOKE, steps=6)
    unbroken = Run(recipe, SMOKE_CONFIG, tokenizer)
    unbroken.train()
    first = Run(recipe, SMOKE_CONFIG, tokenizer)
    for _ in range(3):
        first.train_step()
    first.save(tmp_path)
    second = Run(recipe, SMOKE_CONFIG, tokenizer)
    second.resume(tmp_path)
    second.train()
    for name, weight in unbroken.model.state_dict().items():
        torch.testing.assert_close(second.model.state_dict()[name], weight, rtol=0, atol=0)


def test_the_number_of_workers_does_not_change_the_result(tokenizer):
    runs = [Run(replace(SMOKE, micro_tokens=256), SMOKE_CONFIG, tokenizer, n) for n in (1, 3)]
    assert [runs[0].train_step() for _ in range(3)] == [runs[1].train_step() for _ in range(3)]


def test_packing_loses_and_repeats_no_token(tokenizer):
    stream = PackedStream(tokenizer, "train", seed=0)
    packed = torch.cat([stream.batch(2, 63).flatten(), stream.batch(1, 255).flatten()])
    assert tokenizer.decode(packed[: packed.tolist().index(END_ID)].tolist()) in {
        document(domain, 0, "train", 0).text for domain in DOMAINS
    }
    restarted = PackedStream(tokenizer, "train", seed=0)
    assert torch.equal(packed, restarted.batch(1, len(packed) - 1)[0])


def test_model_equals_transformers(tokenizer):
    transformers = pytest.importorskip("transformers")
    ours = TinyLlama(SMOKE_CONFIG, seed=3).eval()
    theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMOKE_CONFIG.to_hf())).eval()
    theirs = theirs.float()
    missing = theirs.load_state_dict(ours.state_dict(), strict=False).missing_keys
    assert missing in ([], ["lm_head.weight"])
    ids = torch.randint(
        0, SMOKE_CONFIG.vocab_size, (2, 40), generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def test_every_position_sees_only_its_past():
    model = TinyLlama(SMOKE_CONFIG, seed=1)
    ids = torch.arange(40)[None]
    changed = ids.clone()
    changed[0, 30] = 7
    with torch.no_grad():
        a, b = model(ids), model(changed)
    torch.testing.assert_close(a[:, :30], b[:, :30], rtol=0, atol=1e-6)
    assert not torch.allclose(a[:, 30:], b[:, 30:])


def test_orthogonalise_brings_singular_values_near_one():
    matrix = torch.randn(48, 96, generator=torch.Generator().manual_seed(0))
    for m in (matrix, matrix.T):
        values = torch.linalg.svdvals(orthogonalise(m))
        assert 0.5 < values.min() <= values.max() < 1.3


def test_schedule_warms_up_stays_and_falls_to_zero():
    factors = [schedule(step, steps=100, warmup=10, decay=20) for step in range(101)]
    assert factors[0] == 0.1
    assert factors[10:80] == [1.0] * 70
    assert factors[100] == 0.0
    assert all(a > b for a, b in pairwise(factors[80:]))


def test_default_shape_divides_over_one_two_and_four_ranks():
    config = TinyConfig()
    for tp in (1, 2, 4):
        assert config.num_attention_heads % tp == 0
        assert config.intermediate_size % tp == 0
        assert config.vocab_size % tp == 0
