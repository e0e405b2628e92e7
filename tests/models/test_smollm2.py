"""The real model: SmolLM2-135M-Instruct against transformers, against its GGUF, and in words."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from labkit.layers.source import DictSource
from labkit.models.checkpoint import open_checkpoint
from labkit.models.generate import complete
from labkit.models.llama import Llama, load_model
from labkit.models.tokenizer import Tokenizer
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import LayoutError, legal_tensor_parallel_sizes, validate
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

from .conftest import interleave

TEXT = """The apple tree has been cultivated in central Asia for thousands of years and was brought
to Europe by traders. Today there are more than 7,500 known kinds of apple, grown for eating raw,
for cooking and for making cider. Trees and fruit suffer from a number of fungal, bacterial and
insect pests, which can be controlled by a number of organic and other means."""
NUM_POSITIONS = 64


@pytest.fixture(scope="module")
def text_ids(smollm2: Path) -> Tensor:
    ids = Tokenizer.from_directory(smollm2).encode(TEXT)
    assert len(ids) >= NUM_POSITIONS
    return torch.tensor([ids[:NUM_POSITIONS]])


@pytest.fixture(scope="module")
def reference(smollm2: Path, text_ids: Tensor) -> Tensor:
    """Logits of transformers in fp32, `[64, V]`."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.float32).eval()
    with torch.inference_mode():
        return model(text_ids).logits[0]


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Llama:
    return load_model(smollm2, Comm.solo())


def text_logits(comm: Comm, directory: Path, ids: Tensor, **options: Any) -> dict[str, Tensor]:
    """Logits `[64, V]` in one prefill, and in chunks of 20 followed by decoding."""
    model = load_model(directory, comm, **options)
    whole = model(ids, model.new_cache(1, NUM_POSITIONS), all_positions=True)
    cache = model.new_cache(1, NUM_POSITIONS)
    pieces = [
        model(piece, cache, all_positions=True) for piece in ids.split([20, 20, 20, 1, 1, 1, 1], 1)
    ]
    return {
        "prefill": model.lm_head.gather(whole)[0],
        "chunks and decode": model.lm_head.gather(torch.cat(pieces, dim=1))[0],
    }


def assert_same_logits(ours: Tensor, theirs: Tensor, where: str) -> None:
    difference = (ours - theirs).abs().max().item()
    print(f"{where}: max abs difference {difference:.1e}")
    assert difference < 1e-3, where
    assert torch.equal(ours.argmax(-1), theirs.argmax(-1)), where


@pytest.fixture(scope="module")
def alone(smollm2: Path, text_ids: Tensor) -> dict[str, Tensor]:
    """Logits of one rank."""
    return text_logits(Comm.solo(), smollm2, text_ids)


def test_logits_agree_with_transformers(alone: dict[str, Tensor], reference: Tensor) -> None:
    for way, logits in alone.items():
        assert_same_logits(logits, reference, way)


@pytest.mark.parametrize(("size", "uneven"), [(3, False), (2, True)])
def test_ranks_agree_with_transformers_and_with_one_rank(
    size: int,
    uneven: bool,
    smollm2: Path,
    text_ids: Tensor,
    reference: Tensor,
    alone: dict[str, Tensor],
    pool: Callable[[int], RankPool],
) -> None:
    results = pool(size).run(text_logits, smollm2, text_ids, allow_uneven_heads=uneven)
    for rank, ways in enumerate(results):
        for way, logits in ways.items():
            assert_same_logits(logits, reference, f"TP {size} rank {rank}, {way}, transformers")
            assert_same_logits(logits, alone[way], f"TP {size} rank {rank}, {way}, TP 1")


def test_two_ranks_are_refused_by_default_with_the_legal_degrees(smollm2: Path) -> None:
    spec = DecoderSpec.from_hf(smollm2)
    with pytest.raises(LayoutError) as error:
        validate(spec, tp=2)
    assert "9 attention heads do not divide over TP 2" in str(error.value)
    assert error.value.legal[:2] == (1, 3)
    assert 2 in legal_tensor_parallel_sizes(spec, allow_uneven_heads=True)


def local_heads(comm: Comm, directory: Path) -> tuple[int, int]:
    attention = load_model(directory, comm, allow_uneven_heads=True).layers[0].self_attn
    return attention.num_heads, attention.num_kv_heads


def test_two_ranks_with_uneven_heads_hold_whole_groups(
    smollm2: Path, pool: Callable[[int], RankPool]
) -> None:
    assert pool(2).run(local_heads, smollm2) == [(6, 2), (3, 1)]


def ask(model: Llama, directory: Path, question: str, **options: Any) -> str:
    checkpoint = open_checkpoint(directory)
    tokenizer, chat = checkpoint.load_tokenizer(), checkpoint.chat_format()
    assert chat is not None
    (ids,) = complete(model, [tokenizer.encode(chat.ask(question))], 40, **options)
    return tokenizer.decode(ids)


@pytest.mark.parametrize(
    ("question", "word"),
    [("What is the capital of France?", "Paris"), ("What is 2+2?", "4")],
)
def test_greedy_answer_is_sensible_english(
    question: str, word: str, model: Llama, smollm2: Path
) -> None:
    answer = ask(model, smollm2, question)
    print(f"{question} -> {answer}")
    assert word in answer
    assert answer.isascii()
    assert len(answer.split()) >= 3


def test_three_ranks_give_the_same_answer(
    model: Llama, smollm2: Path, pool: Callable[[int], RankPool]
) -> None:
    def answer(comm: Comm, directory: Path) -> str:
        return ask(load_model(directory, comm), directory, "What is the capital of France?")

    alone = ask(model, smollm2, "What is the capital of France?")
    assert pool(3).run(answer, smollm2) == [alone] * 3


def test_converted_weights_are_the_codes_of_the_gguf(smollm2: Path) -> None:
    """4-bit codes with a scale and a minimum for each 32 weights: at most 16 values a block."""
    checkpoint = open_checkpoint(smollm2)
    weight = checkpoint.read("model.layers.7.mlp.up_proj.weight", range(0, 64))
    for block in weight.reshape(-1, 32):
        assert len(block.unique()) <= 16


def test_text_is_read_well_only_with_q_and_k_rows_in_their_order(
    model: Llama, smollm2: Path, text_ids: Tensor
) -> None:
    checkpoint = open_checkpoint(smollm2)
    weights = {name: checkpoint.read(name) for name in checkpoint.names()}
    for name, weight in weights.items():
        if "q_proj" in name:
            weights[name] = interleave(weight, checkpoint.spec.num_heads)
        elif "k_proj" in name:
            weights[name] = interleave(weight, checkpoint.spec.num_kv_heads)
    as_in_the_file = Llama(checkpoint.spec, Comm.solo()).load(DictSource(weights))
    good, bad = (mean_loss(each, text_ids) for each in (model, as_in_the_file))
    print(f"nats per token: {good:.2f}, rows in the file's order: {bad:.2f}")
    assert good < 3.5
    assert bad > good + 1


def mean_loss(model: Llama, ids: Tensor) -> float:
    """Nats per token of a text."""
    local = model(ids, model.new_cache(1, ids.shape[1]), all_positions=True)
    return -model.lm_head.log_softmax_at(local[:, :-1], ids[:, 1:]).mean().item()


def test_bfloat16_keeps_the_argmax_of_confident_positions(
    smollm2: Path, text_ids: Tensor, reference: Tensor
) -> None:
    model = load_model(smollm2, Comm.solo(), dtype=torch.bfloat16)
    local = model(text_ids, model.new_cache(1, NUM_POSITIONS), all_positions=True)
    logits = model.lm_head.gather(local)[0].float()
    first, second = reference.topk(2, dim=-1).values.unbind(-1)
    confident = first - second > 1.0
    assert confident.sum() > NUM_POSITIONS / 4
    agreed = logits.argmax(-1) == reference.argmax(-1)
    assert agreed[confident].all()
