"""Our decoder against transformers' on random small models of every supported family.

All parameters are random, biases and norms too, so that none can be left out unnoticed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from labkit.models.checkpoint import open_checkpoint
from labkit.models.llama import Llama, load_model
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import LayoutError, legal_tensor_parallel_sizes
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers")

SHAPE: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 12,
    "num_key_value_heads": 6,
    "head_dim": 8,
    "vocab_size": 301,  # a prime: every rank count pads
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "tie_word_embeddings": False,
}

LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN_SCALING = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR_SCALING = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}

# name -> (class prefix, what differs from SHAPE)
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-tied": ("Llama", {"tie_word_embeddings": True, "num_key_value_heads": 12}),
    "llama-biases": ("Llama", {"attention_bias": True, "mlp_bias": True}),
    "llama3-scaling": ("Llama", {"rope_parameters": LLAMA3_SCALING}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN_SCALING}),
    "llama-linear": ("Llama", {"rope_parameters": LINEAR_SCALING}),
    "qwen2": ("Qwen2", {"num_attention_heads": 8, "num_key_value_heads": 2}),
    "qwen2-tied": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3", {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 16}),
    "mistral-window": ("Mistral", {"sliding_window": 7}),
    "mistral": ("Mistral", {"sliding_window": None, "num_key_value_heads": 4}),
}

PROMPT_LENGTHS = (23, 5, 1, 14)
PREFILL_CHUNK = 6
NUM_DECODED = 4
TOLERANCE = 2e-5  # of the largest logit; measured differences are a tenth of it


def random_model(directory: Path, family: str) -> Any:
    """A transformers model with every parameter random, saved and returned."""
    prefix, changes = FAMILIES[family]
    torch.manual_seed(sum(map(ord, family)))
    config = getattr(transformers, f"{prefix}Config")(**(SHAPE | changes))
    model = getattr(transformers, f"{prefix}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(1.0 if "norm" in name else 0.0, 0.25)
    model.save_pretrained(directory)
    return model


def token_ids(family: str) -> list[Tensor]:
    """Per sequence: a prompt and the tokens fed one by one after it."""
    generator = torch.Generator().manual_seed(len(family))
    return [
        torch.randint(0, SHAPE["vocab_size"], (n + NUM_DECODED,), generator=generator)
        for n in PROMPT_LENGTHS
    ]


class Reference:
    """A saved random model and transformers' logits for some sequences, `[T, V]` each."""

    def __init__(self, family: str, directory: Path) -> None:
        self.directory = directory
        model = random_model(directory, family)
        self.sequences = token_ids(family)
        with torch.inference_mode():
            self.logits = [model(ids[None]).logits[0] for ids in self.sequences]

    def compare(self, ours: list[Tensor], where: str) -> None:
        """Every position of every sequence: the same logits and the same winner."""
        for mine, theirs in zip(ours, self.logits, strict=True):
            difference = (mine - theirs).abs().max().item()
            scale = theirs.abs().max().item()
            assert scale > 1, "the reference logits are too flat to tell models apart"
            assert difference < TOLERANCE * scale, f"{where}: logits differ by {difference}"
            assert torch.equal(mine.argmax(-1), theirs.argmax(-1)), where


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Reference]:
    made: dict[str, Reference] = {}

    def of(family: str) -> Reference:
        if family not in made:
            made[family] = Reference(family, tmp_path_factory.mktemp(family))
        return made[family]

    return of


def right_padded(sequences: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True)


def run_in_pieces(model: Llama, sequences: list[Tensor], sizes: list[int]) -> list[Tensor]:
    """Whole-vocabulary logits `[T, V]` of each sequence, fed as a ragged batch in `sizes` columns
    at a time; the last NUM_DECODED tokens of each sequence one by one."""
    collected: list[list[Tensor]] = [[] for _ in sequences]
    cache = model.new_cache(len(sequences), max(map(len, sequences)))

    def feed(parts: list[Tensor], width: int) -> None:
        ids = torch.zeros(len(parts), width, dtype=torch.long)
        for row, part in enumerate(parts):
            ids[row, : len(part)] = part
        counts = [len(part) for part in parts]
        local = model(ids, cache, counts, all_positions=True)
        for row, logits in enumerate(model.lm_head.gather(local)):
            collected[row].append(logits[: counts[row]])

    prompts = [ids[:-NUM_DECODED] for ids in sequences]
    start = 0
    for size in sizes:
        feed([prompt[start : start + size] for prompt in prompts], size)
        start += size
    for i in range(NUM_DECODED):
        feed([ids[len(ids) - NUM_DECODED + i :][:1] for ids in sequences], 1)
    return [torch.cat(parts) for parts in collected]


def logits_every_way(
    comm: Comm, directory: Path, sequences: list[Tensor], uneven: bool = False
) -> dict[str, list[Tensor]]:
    """The same logits by all the ways tokens can be fed."""
    model = load_model(directory, comm, allow_uneven_heads=uneven)
    longest = max(PROMPT_LENGTHS)
    num_chunks = -(-longest // PREFILL_CHUNK)
    alone = []
    for ids in sequences:
        local = model(ids[None], model.new_cache(1, len(ids)), all_positions=True)
        alone.append(model.lm_head.gather(local)[0])
    whole = model(
        right_padded(sequences),
        model.new_cache(len(sequences), max(map(len, sequences))),
        [len(ids) for ids in sequences],
        all_positions=True,
    )
    return {
        "each alone": alone,
        "ragged batch": [
            logits[: len(ids)]
            for logits, ids in zip(model.lm_head.gather(whole), sequences, strict=True)
        ],
        "prefill, then decode": run_in_pieces(model, sequences, [longest]),
        "chunked prefill, then decode": run_in_pieces(
            model, sequences, [PREFILL_CHUNK] * num_chunks
        ),
        "token by token": run_in_pieces(model, sequences, [1] * longest),
    }


def cases() -> Iterator[Any]:
    for family, (prefix, changes) in FAMILIES.items():
        config = SHAPE | changes | {"model_type": prefix.lower()}
        for tp in legal_tensor_parallel_sizes(DecoderSpec.from_hf(config), limit=4):
            yield pytest.param(family, tp, id=f"{family}-tp{tp}")


def test_every_rank_count_and_kv_replication_is_among_the_cases() -> None:
    sizes = {case.values for case in cases()}
    assert {tp for _, tp in sizes} == {1, 2, 3, 4}
    assert ("qwen3", 4) in sizes  # one KV head on four ranks
    assert ("qwen2", 4) in sizes  # two KV heads on four ranks


@pytest.mark.parametrize(("family", "tp"), list(cases()))
def test_logits_agree_with_transformers(
    family: str,
    tp: int,
    reference: Callable[[str], Reference],
    pool: Callable[[int], RankPool],
) -> None:
    expected = reference(family)
    if tp == 1:
        results = [logits_every_way(Comm.solo(), expected.directory, expected.sequences)]
    else:
        results = pool(tp).run(logits_every_way, expected.directory, expected.sequences)
    for rank, ways in enumerate(results):
        for way, ours in ways.items():
            expected.compare(ours, f"{family}, TP {tp}, rank {rank}, {way}")


def test_uneven_heads_agree_with_transformers(
    reference: Callable[[str], Reference], pool: Callable[[int], RankPool]
) -> None:
    expected = reference("mistral")  # 12 heads over 4 KV heads; TP 3 holds 6 + 3 + 3
    with pytest.raises(LayoutError, match="TP 3"):
        Llama(open_checkpoint(expected.directory).spec, _third_rank())
    results = pool(3).run(logits_every_way, expected.directory, expected.sequences, uneven=True)
    for ways in results:
        for way, ours in ways.items():
            expected.compare(ours, f"uneven heads, TP 3, {way}")


class _ThirdRank(Comm):
    """Enough of a group of three for a layout to be refused."""

    def __init__(self) -> None:
        self.rank, self.size, self.device = 2, 3, torch.device("cpu")


def _third_rank() -> Comm:
    return _ThirdRank()


def test_window_hides_what_lies_before_it(reference: Callable[[str], Reference]) -> None:
    """A layer of window 7 sees 6 tokens back, so 3 layers see 18: token 0 is out of reach there."""
    expected = reference("mistral-window")
    model = load_model(expected.directory, Comm.solo())
    ids = expected.sequences[0].clone()
    changed = ids.clone()
    changed[0] = (ids[0] + 1) % SHAPE["vocab_size"]
    a, b = (
        model(x[None], model.new_cache(1, len(x)), all_positions=True)[0] for x in (ids, changed)
    )
    reach = SHAPE["num_hidden_layers"] * 6
    assert not torch.equal(a[reach], b[reach])
    assert torch.equal(a[reach + 1 :], b[reach + 1 :])


def test_last_position_logits_are_those_of_the_last_real_token(
    reference: Callable[[str], Reference],
) -> None:
    expected = reference("llama")
    model = load_model(expected.directory, Comm.solo())
    counts = [len(ids) for ids in expected.sequences]
    last = model(right_padded(expected.sequences), model.new_cache(4, max(counts)), counts)
    assert last.shape == (4, model.lm_head.vocab.padded_size)
    whole = model.lm_head.gather(last)
    for row, logits in enumerate(expected.logits):
        torch.testing.assert_close(whole[row], logits[-1], rtol=0, atol=10 * TOLERANCE)


def test_forward_leaves_an_empty_batch_empty(reference: Callable[[str], Reference]) -> None:
    model = load_model(reference("llama").directory, Comm.solo())
    logits = model(torch.zeros(0, 3, dtype=torch.long), model.new_cache(0, 8))
    assert logits.shape[0] == 0


@pytest.mark.parametrize(
    ("ids", "complaint"),
    [
        (torch.zeros(2, 0, dtype=torch.long), "no tokens were given"),
        (torch.zeros(3, 2, dtype=torch.long), "3 sequences do not fit a cache for 2"),
        (torch.zeros(2, dtype=torch.long), r"ids have shape \[2\]; \[batch, tokens\] is needed"),
        (torch.zeros(2, 1, 1, dtype=torch.long), r"ids have shape \[2, 1, 1\]"),
        (torch.zeros(2, 2), r"a tensor of int64 or int32, not torch\.float32"),
        (torch.zeros(2, 2, dtype=torch.bool), r"a tensor of int64 or int32, not torch\.bool"),
        ([[1], [2]], "a tensor of int64 or int32, not list"),
        (torch.zeros(2, 9, dtype=torch.long), "would hold 9 tokens, the KV cache has room for 8"),
    ],
)
def test_ids_that_do_not_fit_the_cache_are_refused_and_leave_it_alone(
    ids: Any, complaint: str, reference: Callable[[str], Reference]
) -> None:
    model = load_model(reference("llama").directory, Comm.solo())
    cache = model.new_cache(2, 8)
    with pytest.raises(ValueError, match=complaint):
        model(ids, cache)
    assert cache.lengths == (0, 0)


@pytest.mark.parametrize(
    ("max_len", "complaint"),
    [
        (257, "max_len 257 is more than the model's context of 256"),
        (-1, "max_len -1 must be at least 1"),
        (8.0, r"max_len 8\.0 must be a whole number"),
    ],
)
def test_a_cache_holds_at_most_the_context(
    max_len: Any, complaint: str, reference: Callable[[str], Reference]
) -> None:
    model = load_model(reference("llama").directory, Comm.solo())
    assert model.new_cache(1, 256).max_len == 256
    with pytest.raises(ValueError, match=complaint):
        model.new_cache(1, max_len)
    with pytest.raises(ValueError, match="batch_size -1 must be at least 0"):
        model.new_cache(-1, 8)
