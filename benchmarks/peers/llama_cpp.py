"""Peer: llama.cpp through `xllamacpp`, one parallel slot per prompt."""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import xllamacpp

from benchmarks.peers.gguf_file import write
from benchmarks.protocol import Answer, Request, serve

CONTEXT_PER_SLOT = 256
CACHE_TYPES = {
    "float32": xllamacpp.ggml_type.GGML_TYPE_F32,
    "bfloat16": xllamacpp.ggml_type.GGML_TYPE_BF16,
}


class LlamaCpp:
    """Holds a server for the dtype, threads and slots of the last request."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._folder = tempfile.TemporaryDirectory()
        self._key: tuple[str, int, int] | None = None
        self._server: Any = None

    def run(self, request: Request) -> Answer:
        """One greedy completion per prompt, all in one batch; the slowest slot's decode time."""
        key = (request.dtype, request.threads, len(request.prompts))
        if key != self._key:
            self._server = None
            self._server, self._key = self._start(*key), key
        replies = self._complete(request)
        steps_ms = max(reply["timings"]["predicted_ms"] for reply in replies)
        return Answer(
            seconds=steps_ms / 1000,
            tokens=[reply["tokens"] for reply in replies],
            settings=f"{len(replies)} slots, {request.dtype} KV cache, wheel: {_instructions()}",
        )

    def _complete(self, request: Request) -> list[dict]:
        """Through the server's own endpoint, which reports tokens and timings of every slot."""
        body = {
            "prompt": request.prompts,
            "n_predict": request.new_tokens,
            "temperature": 0.0,
            "samplers": ["temperature"],
            "return_tokens": True,
            "cache_prompt": False,
            "ignore_eos": True,
        }
        reply = urllib.request.urlopen(
            urllib.request.Request(
                f"{self._server.listening_address}/completion",
                json.dumps(body).encode(),
                {"Content-Type": "application/json"},
            )
        )
        loaded = json.load(reply)
        replies = loaded if isinstance(loaded, list) else [loaded]
        return sorted(replies, key=lambda entry: entry["index"])

    def _start(self, dtype: str, threads: int, slots: int) -> Any:
        gguf_path = Path(self._folder.name) / f"{dtype}.gguf"
        if not gguf_path.exists():
            write(self._path, gguf_path, dtype)
        params = xllamacpp.CommonParams()
        params.model.path = str(gguf_path)
        params.n_parallel = slots
        params.n_ctx = CONTEXT_PER_SLOT * slots
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.cache_type_k = params.cache_type_v = CACHE_TYPES[dtype]
        params.cache_ram_mib = 0
        params.verbosity = 0
        return xllamacpp.Server(params)


def _instructions() -> str:
    """The vector instructions this build of llama.cpp uses."""
    names = ("AVX512_BF16", "AVX512", "AVX2", "NEON")
    info = xllamacpp.get_system_info()
    return next((name for name in names if f"{name} = 1" in info), "none")


if __name__ == "__main__":
    serve(LlamaCpp(sys.argv[1]).run)
