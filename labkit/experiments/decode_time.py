"""How long one decode step takes on this machine, how much of it in collectives, and a model of it.

    modelled step = weight bytes of a rank / bandwidth  +  collectives * seconds of one

The bandwidth is what a step on one rank implies, the seconds of one collective are measured with
the ranks doing nothing else. What the model leaves out is the gap: ranks that share cores and
memory bandwidth, that wait for the slowest, and products too small to run at full speed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from labkit.experiments.provenance import Provenance
from labkit.experiments.tensor_parallel import share
from labkit.layers.whole_number import whole_number
from labkit.models.generate import check_prompts
from labkit.models.llama import Llama
from labkit.plan.traffic import decode_traffic
from labkit.ranks.comm import Comm
from labkit.ranks.trace import TracedComm


@dataclass(frozen=True)
class DecodeTime:
    """One decode step over `ranks` ranks. Seconds are medians over `steps` turns."""

    ranks: int
    steps: int
    step_seconds: float
    """On the slowest rank, nothing recorded."""
    traced_step_seconds: float
    """The same while each collective is recorded."""
    collective_seconds: float
    """Of the traced step, inside collectives: waiting for other ranks included, mean of ranks."""
    lone_collective_seconds: float
    """One all-reduce of the same payload when ranks do nothing else."""
    num_collectives: int
    """That send something: none on one rank."""
    weight_bytes: int
    """What the fullest rank reads in a step: its layers and its part of the LM head."""
    provenance: Provenance

    @property
    def collective_share(self) -> float:
        """The part of a step that passes in collectives, 0 to 1."""
        return self.collective_seconds / self.traced_step_seconds

    @property
    def tracing_seconds(self) -> float:
        """What recording adds to a step; noise can make it negative."""
        return self.traced_step_seconds - self.step_seconds


def time_decode_steps(
    comm: Comm, model: Llama, prompt_ids: Sequence[int], *, steps: int = 20
) -> DecodeTime:
    """On every rank: decode the token after the prompt, again and again. Needs `load_traced`.

    A turn is a plain step, a traced one, and as many lone all-reduces as a step has collectives,
    so that what disturbs the machine meets all three; one more turn goes before, uncounted. Every
    rank returns the same.

    Raises TypeError for a model without a trace, ValueError for a prompt that cannot be continued.
    """
    steps = whole_number(steps, "steps", at_least=1)
    traced = _traced_comm(model)
    traffic = decode_traffic(model.spec, comm.size, 1, model.dtype.itemsize)
    num_collectives = traffic.all_reduces + traffic.all_gathers
    message = torch.zeros(1, 1, model.spec.hidden_size, dtype=model.dtype, device=comm.device)
    step = decode_step(comm, model, prompt_ids)

    def turn() -> tuple[float, float, float, float]:
        with talking_through(comm, model):
            plain = _seconds(comm, step)
        traced.trace.clear()
        recorded = _seconds(comm, step)
        inside = traced.trace.total_seconds() if comm.size > 1 else 0.0
        alone = _seconds(comm, lambda: [comm.all_reduce(message) for _ in range(num_collectives)])
        return plain, recorded, alone / max(num_collectives, 1), inside

    turns = torch.tensor([turn() for _ in range(steps + 1)][1:], dtype=torch.float64)
    turns = turns.to(comm.device)
    slowest = comm.all_reduce(turns.clone(), op="max").T.tolist()
    mean = (comm.all_reduce(turns) / comm.size).T.tolist()
    return DecodeTime(
        ranks=comm.size,
        steps=steps,
        step_seconds=statistics.median(slowest[0]),
        traced_step_seconds=statistics.median(slowest[1]),
        collective_seconds=statistics.median(mean[3]),
        lone_collective_seconds=statistics.median(slowest[2]) if num_collectives else 0.0,
        num_collectives=num_collectives,
        weight_bytes=_most(comm, _bytes_read(comm, model)),
        provenance=Provenance.here(threads=f"{torch.get_num_threads()} a rank"),
    )


def median_step_seconds(
    comm: Comm, model: Llama, prompt_ids: Sequence[int], *, steps: int = 5
) -> float:
    """On every rank: median seconds of a decode step on the slowest rank, nothing recorded.

    Works for any model whose `comm` is traced, one that gathers its weights too.
    """
    step = decode_step(comm, model, prompt_ids)
    with talking_through(comm, model):
        seconds = [_seconds(comm, step) for _ in range(whole_number(steps, "steps") + 1)][1:]
    slowest = comm.all_reduce(
        torch.tensor(seconds, dtype=torch.float64, device=comm.device), op="max"
    )
    return statistics.median(slowest.tolist())


@dataclass(frozen=True)
class StepPrediction:
    """The modelled step beside the measured one, in seconds."""

    ranks: int
    bandwidth: float
    """Bytes per second at which one rank alone reads its weights, all of its step charged to it."""
    weight_seconds: float
    collective_seconds: float
    measured_seconds: float

    @property
    def modelled_seconds(self) -> float:
        """Both terms."""
        return self.weight_seconds + self.collective_seconds

    @property
    def gap_seconds(self) -> float:
        """What was measured beyond the model; negative where it promised too much."""
        return self.measured_seconds - self.modelled_seconds


def predict_step(one_rank: DecodeTime, over_ranks: DecodeTime) -> StepPrediction:
    """What the step of `over_ranks` should take, given the one on one rank.

    Raises ValueError if `one_rank` is not of one rank.
    """
    if one_rank.ranks != 1:
        raise ValueError(
            f"the bandwidth comes from a step on 1 rank; the first time is over {one_rank.ranks}"
        )
    bandwidth = one_rank.weight_bytes / one_rank.step_seconds
    return StepPrediction(
        ranks=over_ranks.ranks,
        bandwidth=bandwidth,
        weight_seconds=over_ranks.weight_bytes / bandwidth,
        collective_seconds=over_ranks.num_collectives * over_ranks.lone_collective_seconds,
        measured_seconds=over_ranks.step_seconds,
    )


def decode_step(comm: Comm, model: Llama, prompt_ids: Sequence[int]) -> Callable[[], None]:
    """Read the prompt once; each call then decodes the same token at the same position."""
    [prompt], _ = check_prompts(model.spec, [prompt_ids], 1)
    cache = model.new_cache(1, len(prompt) + 1)
    ids = torch.tensor([prompt], device=comm.device)
    token_11 = model.lm_head.argmax(model(ids, cache))[:, None]

    def step() -> None:
        model.lm_head.argmax(model(token_11, cache))
        cache.truncate(len(prompt))

    return step


@contextmanager
def talking_through(comm: Comm, model: Llama) -> Iterator[None]:
    """Inside, the layers use `comm` in place of the model's own: the same ranks, unrecorded."""
    own = model.comm
    talking = [module for module in model.modules() if getattr(module, "comm", None) is own]
    for module in talking:
        module.comm = comm  # type: ignore[assignment]
    try:
        yield
    finally:
        for module in talking:
            module.comm = own  # type: ignore[assignment]


def _traced_comm(model: Llama) -> TracedComm:
    if not isinstance(model.comm, TracedComm):
        raise TypeError("this model records no collectives: load it with load_traced")
    return model.comm


def _seconds(comm: Comm, run: Callable[[], object]) -> float:
    """Seconds of `run` on this rank, begun together."""
    comm.barrier()
    start = time.perf_counter()
    run()
    if comm.device.type == "cuda":
        torch.cuda.synchronize(comm.device)
    return time.perf_counter() - start


def _bytes_read(comm: Comm, model: Llama) -> int:
    """Bytes of weights a step reads on this rank: of an untied embedding, one row only."""
    held = share(comm, model)
    looked_up = 0 if model.spec.tie_word_embeddings else held.weight_bytes["embedding"]
    return held.total_bytes - looked_up


def _most(comm: Comm, value: int) -> int:
    return int(comm.all_reduce(torch.tensor(value, device=comm.device), op="max").item())
