"""The other way to fit a model on n ranks: share out its weights, and gather each layer to use it.

This is what FSDP and ZeRO-3 do to train. A rank keeps 1/n of every layer, flat. Before a layer
runs, an all-gather makes it whole; every rank computes all of it; then it is dropped:

    keep    flat[r] = part r of n of concat(every weight of the layer)
    use     layer   = all_gather(flat)  ->  x = layer(x)  ->  forget layer

Tensor parallelism sends activations, this sends weights, so its bytes do not depend on the batch.
Training over large batches can hide them behind compute; one decode step cannot.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.layers.kv_cache import LayerCache, Step
from labkit.layers.rope import Rotation
from labkit.layers.source import DictSource, WeightSource
from labkit.models.checkpoint import open_checkpoint
from labkit.models.library import resolve
from labkit.models.llama import DecoderLayer, Llama
from labkit.models.parameters import layer_prefix, parameter_shapes
from labkit.plan.decoder import DecoderSpec
from labkit.plan.shard import even_range, partition_heads
from labkit.plan.traffic import flat_shard_size
from labkit.ranks.comm import Comm
from labkit.ranks.trace import Trace, TracedComm


class GatheredLayer(nn.Module):
    """A decoder layer of which this rank keeps 1/n, flat. Runs as `DecoderLayer` does."""

    def __init__(self, spec: DecoderSpec, comm: Comm) -> None:
        super().__init__()
        self.spec = spec
        self.comm = comm
        prefix = layer_prefix(0) + "."
        self.shapes = {
            name.removeprefix(prefix): shape
            for name, shape in parameter_shapes(spec).items()
            if name.startswith(prefix)
        }

    def load(self, source: WeightSource, name: str) -> GatheredLayer:
        """Read the layer under `name` (`model.layers.0`), keep this rank's part of it."""
        weights = (source.read(f"{name}.{part}").float().flatten() for part in self.shapes)
        flat = torch.cat(list(weights)).to(self.comm.device)
        padded = self.comm.size * flat_shard_size(len(flat), self.comm.size)
        mine = even_range(padded, self.comm.size, self.comm.rank)
        self.flat = F.pad(flat, (0, padded - len(flat)))[mine.start : mine.stop].clone()
        return self

    def forward(self, x_BTD: Tensor, rotation: Rotation, cache: LayerCache, step: Step) -> Tensor:
        """x `[B, T, D]` -> `[B, T, D]`. The whole layer lives only inside this call."""
        return self._whole_layer()(x_BTD, rotation, cache, step)

    def _whole_layer(self) -> DecoderLayer:
        flat = self.comm.all_gather(self.flat)
        sizes = [prod(shape) for shape in self.shapes.values()]
        parts = zip(self.shapes.items(), flat[: sum(sizes)].split(sizes), strict=True)
        weights = {f"layer.{name}": part.view(shape) for (name, shape), part in parts}
        heads = partition_heads(self.spec.num_heads, self.spec.num_kv_heads, 1)
        layer = DecoderLayer(self.spec, Comm.solo(self.comm.device), heads, dtype=flat.dtype)
        layer.load(DictSource(weights), "layer")
        return layer


def load_gathered(comm: Comm, name: str | Path) -> Llama:
    """On a rank: a model in fp32 that gathers its layers; the gathers are recorded.

    Embedding, final norm and LM head are whole on every rank here; FSDP would gather them too.
    `tensor_parallel.read` and `trace_decode_step` take it like any other model.
    """
    traced = TracedComm(comm)
    checkpoint = open_checkpoint(resolve(name))
    spec = checkpoint.spec
    model = Llama(spec, Comm.solo(comm.device))
    model.layers = nn.ModuleList()  # none of which is read whole
    model.load(checkpoint)
    model.layers = nn.ModuleList(
        GatheredLayer(spec, traced).load(checkpoint, layer_prefix(index))
        for index in range(spec.num_layers)
    )
    model.comm = traced
    return model


def kept_layer_bytes(comm: Comm, model: Llama) -> int:
    """On a rank: bytes of layer weights it keeps between steps."""
    return sum(layer.flat.nbytes for layer in model.layers if isinstance(layer, GatheredLayer))


@dataclass(frozen=True)
class Contrast:
    """What one rank sends for the same decode step, by activations and by weights."""

    ranks: int
    activation_collectives: int
    activation_bytes: int
    """On the wire, counted from what the rank passed in, as rings (modelled)."""
    weight_collectives: int
    weight_bytes: int

    @property
    def times_as_many(self) -> float:
        """Bytes of gathered weights for each byte of reduced activations."""
        return self.weight_bytes / self.activation_bytes


def contrast(tensor_parallel: Trace, gathered: Trace, ranks: int) -> Contrast:
    """Compare one rank's traces of a decode step, from `load_traced` and from `load_gathered`.

    Raises ValueError for a step in which nothing was sent: one rank has nothing to compare.
    """
    if not tensor_parallel.total_wire_bytes():
        raise ValueError("the tensor parallel step sent nothing; compare over at least 2 ranks")
    return Contrast(
        ranks=ranks,
        activation_collectives=tensor_parallel.count(),
        activation_bytes=tensor_parallel.total_wire_bytes(),
        weight_collectives=gathered.count(),
        weight_bytes=gathered.total_wire_bytes(),
    )
