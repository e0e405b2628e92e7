"""How fast this machine's memory can be read, by the fastest plain torch reduction found."""

from __future__ import annotations

import time

import torch

from benchmarks.protocol import Answer, Request, serve
from benchmarks.sides import READ_BYTES


class MemoryReader:
    """Reads one buffer, far larger than the caches, with the threads a request asks for."""

    def __init__(self) -> None:
        self._buffer = torch.ones(READ_BYTES // 4)
        self._reductions = (torch.Tensor.sum, torch.Tensor.amax, torch.Tensor.norm)

    def run(self, request: Request) -> Answer:
        """Seconds for READ_BYTES: the best of each reduction over a few passes."""
        torch.set_num_threads(request.threads)
        best = float("inf")
        for reduction in self._reductions:
            for _ in range(2):
                start = time.perf_counter()
                reduction(self._buffer)
                best = min(best, time.perf_counter() - start)
        return Answer(seconds=best, settings="fastest of sum, amax, norm over 512 MiB")


if __name__ == "__main__":
    serve(MemoryReader().run)
