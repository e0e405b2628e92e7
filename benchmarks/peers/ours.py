"""labkit itself: one rank in this process, or a pool of them."""

from __future__ import annotations

import sys
import time

import torch

from benchmarks.protocol import Answer, Request, serve
from labkit.models.generate import generate
from labkit.models.llama import Llama, load_model
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool, RankRef


def load(comm: Comm, path: str, dtype: str) -> Llama:
    """This rank's part of the model."""
    return load_model(path, comm, dtype=getattr(torch, dtype), allow_uneven_heads=True)


def decode(
    comm: Comm, model: Llama, prompts: list[list[int]], new_tokens: int
) -> tuple[float, list[list[int]]]:
    """Greedy tokens and the seconds from the first new one to the last."""
    times, columns = [], []
    for tokens in generate(model, prompts, new_tokens, eos_token_ids=[]):
        times.append(time.perf_counter())
        columns.append(tokens.token_ids)
    return times[-1] - times[0], [list(row) for row in zip(*columns, strict=True)]


def transport_name(comm: Comm) -> str:
    """What carries the collectives of this group."""
    return comm.transport.name if comm.transport else ""


class OneRank:
    """A group of one, in this process, with as many threads as a request asks for."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._comm = Comm.solo()
        self._model: Llama | None = None

    def run(self, request: Request) -> Answer:
        """One timed greedy generation."""
        torch.set_num_threads(request.threads)
        if self._model is None or self._model.dtype != getattr(torch, request.dtype):
            self._model = None
            self._model = load(self._comm, self._path, request.dtype)
        seconds, tokens = decode(self._comm, self._model, request.prompts, request.new_tokens)
        return Answer(seconds, tokens)


class ManyRanks:
    """A RankPool, one thread per rank; each rank keeps its part of the model.

    collectives: what carries them; None: what labkit chooses here.
    """

    def __init__(self, path: str, ranks: int, collectives: str | None = None) -> None:
        self._path = path
        self._pool = RankPool(ranks, timeout=300.0, collectives=collectives)
        [self._transport, *_] = self._pool.run(transport_name)
        self._dtype = ""
        self._model: RankRef | None = None

    def run(self, request: Request) -> Answer:
        """One timed greedy generation on every rank at once; rank 0's clock."""
        if request.dtype != self._dtype:
            self._model = None
            self._model = self._pool.put(load, self._path, request.dtype)
            self._dtype = request.dtype
        results = self._pool.run(decode, self._model, request.prompts, request.new_tokens)
        seconds, tokens = results[0]
        return Answer(seconds, tokens, settings=self._transport)


if __name__ == "__main__":
    model_path, rank_count = sys.argv[1], int(sys.argv[2])
    side = OneRank(model_path) if rank_count == 1 else ManyRanks(model_path, rank_count)
    serve(side.run)
