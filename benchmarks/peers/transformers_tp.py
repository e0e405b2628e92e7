"""Peer: `transformers` with its own tensor-parallel plan, under torchrun."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.peers.hugging_face import load, timed_generate
from benchmarks.peers.torchrun_ranks import serve_on_ranks
from benchmarks.protocol import Answer, Request


class TensorParallelGenerate:
    """Holds this rank's shards in the dtype of the last request."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._dtype = ""
        self._model: Any = None

    def run(self, request: Request) -> Answer:
        """One timed greedy generation, on every rank at once."""
        if request.dtype != self._dtype:
            self._model = None
            self._model = load(self._path, request.dtype, tp_plan="auto")
            self._dtype = request.dtype
        return timed_generate(self._model, request)


if __name__ == "__main__":
    serve_on_ranks(TensorParallelGenerate(sys.argv[1]).run)
