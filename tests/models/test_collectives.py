"""What a forward pass sends, counted on real ranks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from labkit.models.generate import complete
from labkit.models.llama import Llama, load_model
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import Trace, TracedComm

NUM_LAYERS = 2
HIDDEN = 64


def forward_traced(comm: Comm, directory: Path, shape: tuple[int, int]) -> Trace:
    traced = TracedComm(comm)
    model = load_model(directory, traced)
    assert not traced.trace, "loading sends nothing"
    model(torch.ones(shape, dtype=torch.long), model.new_cache(shape[0], shape[1]))
    return traced.trace


@pytest.mark.parametrize("shape", [(1, 5), (3, 1)])
def test_forward_pass_has_two_all_reduces_a_layer_and_one_for_the_embedding(
    shape: tuple[int, int],
    hf_directory: Callable[..., Path],
    pool: Callable[[int], RankPool],
) -> None:
    for trace in pool(2).run(forward_traced, hf_directory(), shape):
        assert [event.op for event in trace] == ["all_reduce"] * (2 * NUM_LAYERS + 1)
        assert {event.shape for event in trace} == {(*shape, HIDDEN)}
        sites = [event.call_site.split(":")[0] for event in trace]
        assert sites == ["layers/embedding.py"] + ["layers/linear.py"] * (2 * NUM_LAYERS)


def test_decoding_adds_one_small_all_gather_a_token(
    hf_directory: Callable[..., Path], pool: Callable[[int], RankPool]
) -> None:
    def greedy(comm: Comm, directory: Path) -> Trace:
        traced = TracedComm(comm)
        model = load_model(directory, traced)
        complete(model, [[5, 6, 7], [8]], 4, eos_token_ids=[])
        return traced.trace

    for trace in pool(2).run(greedy, hf_directory()):
        assert trace.count("all_reduce") == 4 * (2 * NUM_LAYERS + 1)
        assert trace.count("all_gather") == 4
        assert len(trace) == trace.count("all_reduce") + trace.count("all_gather")
        gathered = [event.payload_bytes for event in trace if event.op == "all_gather"]
        assert max(gathered) <= 2 * 16, "a value and an id for each of two sequences"


def test_one_rank_alone_needs_no_process_group(hf_directory: Callable[..., Path]) -> None:
    model = load_model(hf_directory(), Comm.solo())
    assert isinstance(model, Llama)
    assert not torch.distributed.is_initialized()
