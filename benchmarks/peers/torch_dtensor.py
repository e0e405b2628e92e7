"""Peer: torch's `parallelize_module` on the `transformers` model, under torchrun."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from benchmarks.peers.hugging_face import load, timed_generate
from benchmarks.peers.torchrun_ranks import serve_on_ranks
from benchmarks.protocol import Answer, Request

BLOCK_PLAN = {
    "self_attn.q_proj": ColwiseParallel(),
    "self_attn.k_proj": ColwiseParallel(),
    "self_attn.v_proj": ColwiseParallel(),
    "self_attn.o_proj": RowwiseParallel(),
    "mlp.gate_proj": ColwiseParallel(),
    "mlp.up_proj": ColwiseParallel(),
    "mlp.down_proj": RowwiseParallel(),
}


class DTensorGenerate:
    """Holds the parallelised model in the dtype of the last request."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._dtype = ""
        self._model: Any = None

    def run(self, request: Request) -> Answer:
        """One timed greedy generation, on every rank at once."""
        if request.dtype != self._dtype:
            self._model = None
            self._model, self._dtype = self._parallelised(request.dtype), request.dtype
        return timed_generate(self._model, request)

    def _parallelised(self, dtype: str) -> Any:
        """The embedding stays whole; the head is untied from it and split by vocabulary rows."""
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        model = load(self._path, dtype)
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        for layer in model.model.layers:
            parallelize_module(layer, mesh, BLOCK_PLAN)
        parallelize_module(model, mesh, {"lm_head": ColwiseParallel(output_layouts=Replicate())})
        return model


if __name__ == "__main__":
    serve_on_ranks(DTensorGenerate(sys.argv[1]).run)
