"""The generation loop: ragged batches, where it stops, the same tokens on every rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labkit.layers.sampling import Sampler
from labkit.models.generate import complete, generate
from labkit.models.llama import Llama, load_model
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

PROMPTS = [[3, 4, 5, 6, 7, 8, 9], [10], [11, 12, 13], list(range(20, 40))]


@pytest.fixture
def model(hf_directory: Callable[..., Path]) -> Llama:
    return load_model(hf_directory(max_position_embeddings=64), Comm.solo())


def one_by_one(model: Llama, prompt: list[int], n: int) -> list[int]:
    """Greedy continuation by running the whole text again for every token: no cache at all."""
    ids = list(prompt)
    for _ in range(n):
        local = model(torch.tensor([ids]), model.new_cache(1, len(ids)))
        ids.append(int(model.lm_head.gather(local)[0].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("prefill_chunk", [None, 1, 4, 64])
def test_ragged_batch_gets_what_each_prompt_gets_alone(
    model: Llama, prefill_chunk: int | None
) -> None:
    expected = [one_by_one(model, prompt, 12) for prompt in PROMPTS]
    assert len({tuple(ids) for ids in expected}) == len(expected)
    result = complete(model, PROMPTS, 12, eos_token_ids=[], prefill_chunk=prefill_chunk)
    assert result == expected


def test_sequences_stop_at_their_own_ending_token(model: Llama) -> None:
    free = complete(model, PROMPTS, 12, eos_token_ids=[])
    ending = free[1][4]
    expected = [ids[: ids.index(ending) + 1] if ending in ids else ids for ids in free]
    assert len({len(ids) for ids in expected}) > 1
    steps = list(generate(model, PROMPTS, 12, eos_token_ids=[ending]))
    for row, ids in enumerate(expected):
        column = [step.token_ids[row] for step in steps]
        reasons = [step.finish_reasons[row] for step in steps]
        assert column == ids + [None] * (len(steps) - len(ids))
        reason = "stop" if ids[-1] == ending else "length"
        assert reasons[len(ids) - 1] == reason
        assert [r for r in reasons if r] == [reason]


def test_models_own_ending_tokens_are_the_default(hf_directory: Callable[..., Path]) -> None:
    plain = load_model(hf_directory(), Comm.solo())
    token = complete(plain, PROMPTS[:1], 5, eos_token_ids=[])[0][2]
    ending = load_model(hf_directory(eos_token_id=[299, token]), Comm.solo())
    first = complete(plain, PROMPTS[:1], 5, eos_token_ids=[])[0].index(token)
    assert len(complete(ending, PROMPTS[:1], 5)[0]) == first + 1


def test_context_ends_a_sequence_and_not_its_batch(model: Llama) -> None:
    prompts = [list(range(60)), [1, 2]]
    steps = list(generate(model, prompts, 10, eos_token_ids=[]))
    assert len(steps) == 10
    assert steps[3].finish_reasons == ("length", None)  # 60 + 4 = 64, the whole context
    assert [step.token_ids[0] for step in steps[4:]] == [None] * 6
    assert complete(model, prompts[1:], 10, eos_token_ids=[])[0] == [
        step.token_ids[1] for step in steps
    ]


def test_what_cannot_be_continued_is_refused_at_the_call(model: Llama) -> None:
    with pytest.raises(ValueError, match="prompt 1 has 64 tokens; the model's context of 64"):
        generate(model, [[1], list(range(64))], 5)
    with pytest.raises(ValueError, match="prompt 0 is empty"):
        generate(model, [[]], 5)
    with pytest.raises(ValueError, match="max_new_tokens 0"):
        generate(model, [[1]], 0)
    with pytest.raises(ValueError, match="prefill_chunk 0"):
        generate(model, [[1]], 5, prefill_chunk=0)
    assert list(generate(model, [], 5)) == []


@pytest.mark.parametrize(
    ("prompts", "complaint"),
    [
        ([[1], [2, 1.5]], r"prompt 1: token id 1\.5 must be a whole number"),
        ([[1, "2"]], "prompt 0: token id '2' must be a whole number"),
        (["hello"], "prompt 0 must be a list of token ids, not 'hello'"),
        ([1, 2, 3], "prompt 0 must be a list of token ids, not 1"),
        ([[1], [300]], "prompt 1 holds token id 300, outside a vocabulary of 300"),
        ([[5, -1]], "prompt 0 holds token id -1, outside a vocabulary of 300"),
    ],
)
def test_prompts_are_lists_of_token_ids(model: Llama, prompts: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        generate(model, prompts, 5)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_new_tokens": 2.5}, r"max_new_tokens 2\.5 must be a whole number"),
        ({"prefill_chunk": 2.0}, r"prefill_chunk 2\.0 must be a whole number"),
        ({"eos_token_ids": 5}, "eos_token_ids must be a list of token ids, not 5"),
        ({"eos_token_ids": [5.0]}, r"eos_token_ids: token id 5\.0 must be a whole number"),
        ({"sampler": Sampler(1.0, seed=[1])}, "1 seeds are listed for 2 requests"),
    ],
)
def test_options_are_checked_at_the_call(model: Llama, options: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        generate(model, [[1], [2]], **{"max_new_tokens": 5, **options})


def test_whole_numbers_of_other_libraries_are_taken(model: Llama) -> None:
    expected = complete(model, PROMPTS[:2], 5, eos_token_ids=[4])
    prompts: Any = [torch.tensor(PROMPTS[0]), np.array(PROMPTS[1])]
    assert complete(model, prompts, np.int64(5), eos_token_ids=np.array([4])) == expected


def test_a_sampler_begins_anew_with_every_call(model: Llama) -> None:
    """Request i draws from the stream of `seed + i`, whatever the sampler was used for before."""
    sampler = Sampler(temperature=1.5, seed=7)
    first = complete(model, PROMPTS, 8, sampler=sampler, eos_token_ids=[])
    assert complete(model, PROMPTS, 8, sampler=sampler, eos_token_ids=[]) == first
    fresh = complete(model, PROMPTS, 8, sampler=Sampler(1.5, seed=7), eos_token_ids=[])
    assert fresh == first
    both = zip(
        generate(model, PROMPTS, 8, sampler=sampler, eos_token_ids=[]),
        generate(model, PROMPTS, 8, sampler=sampler, eos_token_ids=[]),
        strict=True,
    )
    assert all(one == other for one, other in both)


def test_stopped_reading_is_stopped_work(model: Llama) -> None:
    steps = generate(model, [[1, 2]], 1_000_000, eos_token_ids=[])
    assert [next(steps).token_ids for _ in range(2)]
    steps.close()


def test_sampling_depends_on_the_request_and_not_on_its_batch(model: Llama) -> None:
    def sampler(seeds: list[int]) -> Sampler:
        return Sampler(temperature=0.8, top_k=50, seed=seeds)

    batch = complete(model, PROMPTS, 8, sampler=sampler([7, 8, 9, 10]), eos_token_ids=[])
    again = complete(model, PROMPTS, 8, sampler=sampler([7, 8, 9, 10]), eos_token_ids=[])
    alone = complete(model, [PROMPTS[2]], 8, sampler=sampler([9]), eos_token_ids=[])
    other = complete(model, PROMPTS, 8, sampler=sampler([1, 2, 3, 4]), eos_token_ids=[])
    assert batch == again
    assert batch[2] == alone[0]
    assert batch != other


def continue_prompts(comm: Comm, directory: Path, **sampling: Any) -> list[list[int]]:
    model = load_model(directory, comm)
    return complete(model, PROMPTS, 10, sampler=Sampler(**sampling), eos_token_ids=[4])


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.5, "top_p": 0.9, "seed": 3}])
@pytest.mark.parametrize("size", [2, 4])
def test_ranks_come_to_the_same_tokens(
    sampling: dict[str, Any],
    size: int,
    hf_directory: Callable[..., Path],
    pool: Callable[[int], RankPool],
) -> None:
    directory = hf_directory()
    alone = continue_prompts(Comm.solo(), directory, **sampling)
    assert pool(size).run(continue_prompts, directory, **sampling) == [alone] * size
