"""Peer: `transformers` generate on one rank."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.peers.hugging_face import load, timed_generate
from benchmarks.protocol import Answer, Request, serve


class Generate:
    """Holds the model in the dtype of the last request."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._dtype = ""
        self._model: Any = None

    def run(self, request: Request) -> Answer:
        """One timed greedy generation."""
        if request.dtype != self._dtype:
            self._model = None
            self._model, self._dtype = load(self._path, request.dtype), request.dtype
        return timed_generate(self._model, request)


if __name__ == "__main__":
    serve(Generate(sys.argv[1]).run)
