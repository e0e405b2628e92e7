"""Random programs of collectives, and what they give, computed in one process.

A program is drawn from a seed, the same on every rank and in the process that checks; so are each
rank's tensors. The reference knows nothing of ranks that run: it has all inputs, and a loop.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from shared_groups import SLOT_BYTES, with_small_slots
from torch import Tensor

from labkit.ranks.comm import Comm

FLOATS = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
)
DTYPES = (*FLOATS, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
OPS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier")
NUM_GROUPS = 4
LAYOUTS = ("whole", "transposed", "every other", "shifted")


@dataclass(frozen=True)
class Step:
    """One collective of one group."""

    number: int
    group: int
    op: str
    rows: int  # per rank of the group where the op cuts rows
    columns: int
    dtype: torch.dtype
    layout: str
    reduction: str
    dim: int
    draw: int  # seed of the splits and of the source


def draw_program(seed: int, length: int = 8) -> list[Step]:
    """The program of this seed."""
    pick = random.Random(seed)
    fit = SLOT_BYTES // 4
    steps = []
    for number in range(length):
        dtype = pick.choice(DTYPES)
        reductions = ("sum", "max", "min", "avg") if dtype in FLOATS else ("sum", "max", "min")
        steps.append(
            Step(
                number=number,
                group=pick.randrange(NUM_GROUPS),
                op=pick.choice(OPS),
                rows=pick.choice((0, 1, 1, 2, 3, 7, 100, fit - 1, fit, fit + 1)),
                columns=pick.choice((0, 1, 1, 1, 2, 3)),
                dtype=dtype,
                layout=pick.choice(LAYOUTS),
                reduction=pick.choice(reductions),
                dim=pick.randrange(2),
                draw=pick.randrange(2**32),
            )
        )
    return steps


def make_groups(comm: Comm) -> list[Comm]:
    """The world with its own slots, with small ones in one shot and in two, and a part of it."""
    if comm.size == 1:
        return [comm] * 4
    halves = [(0, comm.size - 1), tuple(range(1, comm.size - 1))]
    part = comm.split([half for half in halves if half], "part")
    if part.size > 1:
        part = with_small_slots(part)
    in_two_shots = with_small_slots(comm, one_shot_bytes=0)
    return [comm.over("shared memory"), with_small_slots(comm), in_two_shots, part]


def members(size: int, rank: int, group: int) -> tuple[int, ...]:
    """The world ranks of a group of `make_groups`, the one that `rank` is in."""
    if group < 3:
        return tuple(range(size))
    ends = (0, size - 1) if size > 1 else (0,)
    return ends if rank in ends else tuple(range(1, size - 1))


def value(step: Step, rank: int, size: int) -> Tensor:
    """What world rank `rank` brings along, in a group of `size`."""
    rows = step.rows
    if step.op == "reduce_scatter":
        rows *= size
    if step.op == "all_to_all":
        rows = sum(splits(step, rank, size))
    generator = torch.Generator().manual_seed(step.draw + rank)
    shape = (rows, step.columns)
    if step.op == "reduce_scatter" and step.dim == 1:
        shape = (step.columns, rows)
    wide = torch.randn(shape, generator=generator, dtype=torch.float64)
    if step.dtype in FLOATS:
        return wide.clamp(-3, 3).to(step.dtype)
    return (wide * 40).long().remainder(100).to(step.dtype)


def splits(step: Step, rank: int, size: int) -> list[int]:
    """How many rows world rank `rank` sends to each rank of the group."""
    pick = random.Random(step.draw + rank)
    most = max(1, step.rows)
    return [pick.choice((0, 1, pick.randrange(most + 1))) for _ in range(size)]


def laid_out(x: Tensor, layout: str) -> Tensor:
    """The same numbers in another place in memory."""
    if layout == "transposed":
        return x.t().contiguous().t()
    if layout == "every other":
        room = x.new_zeros((x.shape[0], 2 * x.shape[1]))
        room[:, ::2] = x
        return room[:, ::2]
    if layout == "shifted":
        room = x.new_zeros(x.numel() + 1)
        room[1:] = x.reshape(-1)
        return room[1:].view(x.shape)
    return x


def run_program(groups: Sequence[Comm], steps: Sequence[Step], world_rank: int) -> list[Tensor]:
    """On a rank: what each step gives."""
    results = []
    for step in steps:
        comm = groups[step.group]
        x = laid_out(value(step, world_rank, comm.size), step.layout)
        source = step.draw % comm.size
        if step.op == "all_reduce":
            results.append(comm.all_reduce(x, step.reduction))
        elif step.op == "all_gather":
            results.append(comm.all_gather(x, step.dim))
        elif step.op == "reduce_scatter":
            results.append(comm.reduce_scatter(x, step.dim, step.reduction))
        elif step.op == "broadcast":
            results.append(comm.broadcast(x, source))
        elif step.op == "all_to_all":
            results.append(comm.all_to_all(x, splits(step, world_rank, comm.size)))
        else:
            comm.barrier()
            results.append(torch.zeros(0))
    return results


def expected(step: Step, rank: int, world_size: int) -> Tensor:
    """What world rank `rank` must get."""
    ranks = members(world_size, rank, step.group)
    size, place = len(ranks), ranks.index(rank)
    values = [value(step, member, size) for member in ranks]
    if step.op == "all_reduce":
        return reduced(values, step.reduction)
    if step.op == "all_gather":
        return joined(values, step.dim)
    if step.op == "reduce_scatter":
        total = reduced(values, step.reduction)
        length = total.shape[step.dim] // size
        return total.narrow(step.dim, place * length, length)
    if step.op == "broadcast":
        return values[step.draw % size]
    if step.op == "all_to_all":
        rows = [
            x.split(splits(step, member, size))[place]
            for x, member in zip(values, ranks, strict=True)
        ]
        return joined(rows, 0)
    return torch.zeros(0)


def joined(parts: Sequence[Tensor], dim: int) -> Tensor:
    """Concatenated, float8 too."""
    return torch.cat([as_numbers(part) for part in parts], dim).to(parts[0].dtype)


def as_numbers(x: Tensor) -> Tensor:
    """In a dtype that holds all of its values and can be compared."""
    return x.double() if x.dtype.is_floating_point else x.long()


def reduced(values: Sequence[Tensor], reduction: str) -> Tensor:
    """In rank order, one after another; short floats in float32, rounded once; bools are or-ed."""
    dtype = values[0].dtype
    wide = torch.long
    if dtype.is_floating_point:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
    total = values[0].to(wide)
    for x in values[1:]:
        match reduction:
            case "max":
                total = torch.maximum(total, x.to(wide))
            case "min":
                total = torch.minimum(total, x.to(wide))
            case _:
                total = total + x.to(wide)
    if reduction == "avg" and len(values) > 1:
        total = total / len(values)
    return total.to(dtype)
