"""The checkpoint that ships: what its record says is what the files are and do."""

import hashlib
import json

import pytest
import torch

from labkit.models.llama import load_model
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import legal_tensor_parallel_sizes
from labkit.ranks.comm import Comm
from training.tiny.corpus import DOMAINS
from training.tiny.evaluate import (
    CHECKPOINT,
    EVALUATION_SEED,
    domain_loss,
    greedy_report,
    held_out_prompts,
    load,
    loss_by_position,
)
from training.tiny.export import corpus_fingerprint
from training.tiny.packing import domain_batch

SIZE_LIMIT = 6_000_000
LARGEST_LOSS = {
    "stories": 0.6,
    "howto": 0.6,
    "facts": 1.2,
    "quiz": 0.6,
    "serving": 0.6,
    "memory": 0.9,
}


@pytest.fixture(scope="module")
def record():
    return json.loads((CHECKPOINT / "TRAINING.json").read_text())


@pytest.fixture(scope="module")
def model():
    return load(CHECKPOINT)[0]


@pytest.fixture(scope="module")
def tokenizer():
    return load(CHECKPOINT)[1]


def test_files_are_the_recorded_ones(record):
    for name, file in record["files"].items():
        content = (CHECKPOINT / name).read_bytes()
        assert len(content) == file["bytes"], name
        assert hashlib.sha256(content).hexdigest() == file["sha256"], name


def test_weights_are_small_and_bfloat16(model):
    assert (CHECKPOINT / "model.safetensors").stat().st_size < SIZE_LIMIT
    for weight in model.state_dict().values():
        assert torch.equal(weight, weight.bfloat16().float())


def test_generator_still_writes_the_text_the_model_was_trained_on(record):
    assert corpus_fingerprint(record["data"]["seed"]) == record["data"]["fingerprint"]["sha256"]


def test_training_kept_to_forty_minutes_on_two_cores(record):
    assert record["cost"]["cpu_seconds"] / 2 / 60 <= 40
    assert record["tokens"] == record["steps"] * record["recipe"]["tokens_per_step"]
    assert record["steps"] == record["recipe"]["steps"] == record["loss_curve"][-1]["step"]


def test_shape_is_legal_for_one_two_and_four_ranks():
    spec = DecoderSpec.from_hf(CHECKPOINT)
    assert {1, 2, 4} <= set(legal_tensor_parallel_sizes(spec))
    assert spec.num_kv_heads < 4
    assert spec.max_position_embeddings >= 2048


def test_tokenizer_gives_every_text_back(tokenizer):
    for text in (
        "Mia is by the lake.\n",
        "naïve café 東京 🙂",
        " two  spaces\tand a tab",
        "\x00\r\n",
    ):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.token_to_id("<|endoftext|>") == 0


@pytest.mark.parametrize("domain", list(DOMAINS))
def test_held_out_loss_is_low_and_as_recorded(model, tokenizer, record, domain):
    recorded = record["evaluation"]["held_out_loss_nats_per_token"][domain]
    assert recorded < LARGEST_LOSS[domain]
    assert domain_loss(model, tokenizer, domain, sequences=4) == pytest.approx(recorded, abs=0.12)


def test_late_positions_are_predicted_as_well_as_early_ones(model, tokenizer, record):
    recorded = record["evaluation"]["loss_by_position"]
    assert recorded["1024-2047"] <= recorded["128-511"] + 0.01
    measured = loss_by_position(model, tokenizer, sequences=2)
    assert measured["1024-2047"] == pytest.approx(recorded["1024-2047"], abs=0.12)


def test_greedy_texts_of_held_out_prompts_are_readable(model, tokenizer, record):
    evaluation = record["evaluation"]
    assert evaluation["greedy_prompts"] >= 12
    assert evaluation["greedy_passed"] >= 0.9 * evaluation["greedy_prompts"]
    again = greedy_report(model, tokenizer, per_domain=1, new_tokens=96)
    recorded = {entry["prompt"]: entry["continuation"] for entry in evaluation["greedy"]}
    assert [entry["prompt"] for entry in again] == [d.opening for d in held_out_prompts(1)]
    assert all(entry["prompt"] in recorded for entry in again)
    assert sum(entry["passed"] for entry in again) >= 3


def test_answers_come_from_the_scene_and_not_from_habit(record):
    evaluation = record["evaluation"]
    assert evaluation["scene_answers_given"] >= 40
    assert evaluation["scene_answers_right"] >= 0.9 * evaluation["scene_answers_given"]


def test_forgetting_the_context_hurts(model, tokenizer):
    ids = domain_batch(tokenizer, "quiz", EVALUATION_SEED, sequences=2, length=512)
    with torch.no_grad():
        whole = model.loss(ids).item()
        pieces = model.loss(torch.cat(ids[:, :512].split(32, dim=1))).item()
    assert pieces > whole + 0.3


def logits_of_ranks(comm: Comm, ids: list[int]) -> torch.Tensor:
    """All logits [T, V] of the shipped checkpoint, computed by the ranks of `comm` together."""
    sharded = load_model(CHECKPOINT, comm, dtype=torch.float32)
    local = sharded.forward(torch.tensor([ids]), sharded.new_cache(1, len(ids)), all_positions=True)
    return sharded.lm_head.gather(local)[0]


@pytest.mark.parametrize("tensor_parallel_size", [1, 2, 4])
def test_labkit_agrees_on_one_two_and_four_ranks(pool, model, tokenizer, tensor_parallel_size):
    ids = tokenizer.encode(held_out_prompts(1)[0].text).ids[:96]
    results = pool(tensor_parallel_size).run(logits_of_ranks, ids)
    with torch.no_grad():
        expected = model(torch.tensor([ids]))[0]
    for logits in results:
        torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-3)


def test_transformers_loads_it_and_agrees(model, tokenizer):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(CHECKPOINT, dtype=torch.float32)
    ids = torch.tensor([tokenizer.encode(held_out_prompts(1)[0].opening).ids])
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, model(ids), rtol=1e-4, atol=1e-4)
    auto = transformers.AutoTokenizer.from_pretrained(CHECKPOINT)
    assert auto("Mia has a red ball.")["input_ids"] == tokenizer.encode("Mia has a red ball.").ids
