"""Collectives over shared memory, for ranks on one host: copy in, meet, read what the others wrote.

    one-shot   everybody reads all messages and reduces them: one round
    two-shot   everybody reduces its part of them, then reads the others' parts: two rounds, but
               2 (n-1)/n of a message read instead of n - 1, and 1/n of the additions

Sums are made in rank order (`fixed_order.py`), so both give the same bits, on every rank. A message
that does not fit into a slot goes in pieces. How ranks wait for each other is in
`shared_rounds.py`, where the slots lie in `shared_segment.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from labkit.ranks.fixed_order import reduce_into, wide_dtype
from labkit.ranks.shared_rounds import Call, CollectiveMismatch, Rounds
from labkit.ranks.shared_segment import Segment
from labkit.ranks.shared_slots import Slots, Turns

SLOT_BYTES = 1024 * 1024
_MAX_PLANS = 1024


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one kind of call needs each time: worked out once, then looked up."""

    call: Call
    slots: Turns | None = None  # in the message's shape; None: it goes in pieces
    wide: torch.dtype | None = None


def one_shot_bytes(ranks: int, have_cores: bool) -> float:
    """The largest message that `ranks` ranks all-reduce in one shot.

    Two ranks read as much either way, so they save the round. Where ranks take turns on the cores
    a round costs more than what it saves up to some 4 MiB (measured with 3 and 4 ranks on 2 cores).
    Where each has a core it pays sooner (modelled: rounds of 100 us, 5 GB/s a core).
    """
    if ranks == 2:
        return math.inf
    return 512 * 1024 if have_cores else 4 * 1024 * 1024


class SharedMemory:
    """One group's collectives; `shared_handshake.attempt` makes it."""

    name = "shared memory"

    def __init__(self, segment: Segment, rounds: Rounds, me: int) -> None:
        self._rounds = rounds
        self._slots = Slots(segment, rounds)
        self._me = me
        self._ranks = rounds.ranks
        self._size = segment.layout.ranks
        self._one_shot_bytes = one_shot_bytes(self._size, rounds.have_cores)
        self._plans: dict[Any, _Plan] = {}
        self._barrier = Call("barrier")

    def barrier(self) -> None:
        """Wait until every rank of the group is here."""
        with self._rounds.calling(self._barrier) as rounds:
            rounds.next_turn()
            rounds.agree()

    def all_reduce(self, x: Tensor, op: str) -> None:
        """Reduce over the group into `x`."""
        if _needs_inference_mode(x):
            with torch.inference_mode():
                return self.all_reduce(x, op)
        key = ("all_reduce", x.shape, x.dtype, op)
        plan = self._plans.get(key) or self._new_plan(key, x, _named("all_reduce", op))
        with self._rounds.calling(plan.call) as rounds:
            if plan.slots is not None:
                slots = plan.slots[rounds.next_turn()]
                slots[self._me].copy_(x)
                rounds.agree()
                reduce_into(x, slots, op, plan.wide)
                return
            flat = x.contiguous().view(-1)
            if x.numel() * x.dtype.itemsize <= self._one_shot_bytes:
                for start, stop, slots in self._slots.pieces(flat.numel(), x.dtype):
                    slots[self._me].copy_(flat[start:stop])
                    rounds.agree()
                    reduce_into(flat[start:stop], slots, op, plan.wide)
            else:
                self._two_shot(flat, op, plan.wide)
            if flat.data_ptr() != x.data_ptr():
                x.copy_(flat.view(x.shape))

    def reduce_scatter(self, x: Tensor, dim: int, op: str) -> Tensor:
        """Reduce over the group, keep my part of `dim`."""
        key = ("reduce_scatter", x.shape, x.dtype, op, dim)
        called = _named("reduce_scatter", op, f"dim {dim}" * (dim != 0))
        plan = self._plans.get(key) or self._new_plan(key, x, called)
        length = x.shape[dim] // self._size
        out = x.new_empty((*x.shape[:dim], length, *x.shape[dim + 1 :]))
        with self._rounds.calling(plan.call) as rounds:
            if plan.slots is not None:
                slots = plan.slots[rounds.next_turn()]
                slots[self._me].copy_(x)
                rounds.agree()
                parts = [slot.narrow(dim, self._me * length, length) for slot in slots]
                reduce_into(out, parts, op, plan.wide)
            else:
                self._scatter(x, dim, out.view(-1), op, plan.wide)
        return out

    def all_gather(self, x: Tensor, dim: int) -> Tensor:
        """All ranks' tensors, concatenated along `dim`."""
        key = ("all_gather", x.shape, x.dtype)
        plan = self._plans.get(key) or self._new_plan(key, x, "all_gather")
        with self._rounds.calling(plan.call) as rounds:
            if plan.slots is not None:
                slots = plan.slots[rounds.next_turn()]
                slots[self._me].copy_(x)
                rounds.agree()
                return torch.cat(slots, dim)
            parts = x.new_empty((self._size, *x.shape))
            flat = x.contiguous().view(-1)
            for start, stop, slots in self._slots.pieces(flat.numel(), x.dtype):
                slots[self._me].copy_(flat[start:stop])
                rounds.agree()
                for part, slot in zip(parts.view(self._size, -1), slots, strict=True):
                    part[start:stop].copy_(slot)
        return parts.flatten(0, 1) if dim == 0 else torch.cat(parts.unbind(), dim)

    def broadcast(self, x: Tensor, src: int) -> None:
        """Copy rank `src`'s tensor into `x`."""
        if _needs_inference_mode(x):
            with torch.inference_mode():
                return self.broadcast(x, src)
        key = ("broadcast", x.shape, x.dtype, src)
        plan = self._plans.get(key) or self._new_plan(
            key, x, "broadcast", f" from rank {self._ranks[src]}"
        )
        sends = src == self._me
        with self._rounds.calling(plan.call) as rounds:
            if plan.slots is not None:
                slot = plan.slots[rounds.next_turn()][src]
                if sends:
                    slot.copy_(x)
                rounds.agree()
                if not sends:
                    x.copy_(slot)
                return
            flat = x.contiguous().view(-1)
            for start, stop, slots in self._slots.pieces(flat.numel(), x.dtype):
                if sends:
                    slots[src].copy_(flat[start:stop])
                rounds.agree()
                if not sends:
                    flat[start:stop].copy_(slots[src])
            if not sends and flat.data_ptr() != x.data_ptr():
                x.copy_(flat.view(x.shape))

    def all_to_all(
        self, x: Tensor, input_splits: Sequence[int], output_splits: Sequence[int]
    ) -> Tensor:
        """Send rows of `x` by `input_splits`, return the rows that arrive by `output_splits`."""
        key = ("all_to_all", x.shape[1:], x.dtype)
        plan = self._plans.get(key) or self._new_plan(key, x[:0], "all_to_all", " of any rows")
        row_size = x.shape[1:].numel()
        out = x.new_empty((sum(output_splits), *x.shape[1:]))
        flat, came = x.contiguous().view(-1), out.view(-1)
        with self._rounds.calling(plan.call) as rounds:
            sent: list[list[int]] = []
            longest = 1  # at first each rank knows its own length only
            step = self._slots.slot_bytes // x.dtype.itemsize
            start = 0
            while start < longest:
                slots = self._slots.whole(x.dtype)[rounds.next_turn()]
                piece = flat[start : start + step]
                slots[self._me][: piece.numel()].copy_(piece)
                if sent:
                    rounds.agree()
                else:
                    rounds.agree([*input_splits, *output_splits])
                    sent = self._matching_splits()
                    longest = max(sum(splits) for splits in sent) * row_size
                at = 0
                for splits, slot in zip(sent, slots, strict=True):
                    first = sum(splits[: self._me]) * row_size
                    count = splits[self._me] * row_size
                    low, high = max(first, start), min(first + count, start + step)
                    if low < high:
                        target = came[at + low - first : at + high - first]
                        target.copy_(slot[low - start : high - start])
                    at += count
                start += step
        return out

    # -- inside --------------------------------------------------------------------------------

    def _two_shot(self, flat: Tensor, op: str, wide: torch.dtype | None) -> None:
        """All-reduce contiguous `flat`, piece by piece."""
        for start, stop, slots in self._slots.pieces(flat.numel(), flat.dtype):
            piece = flat[start:stop]
            cuts = [piece.numel() * rank // self._size for rank in range(self._size + 1)]
            low, high = cuts[self._me], cuts[self._me + 1]
            slots[self._me][:low].copy_(piece[:low])
            slots[self._me][high:].copy_(piece[high:])
            self._rounds.agree()
            parts = [slot[low:high] for slot in slots]
            total, parts[self._me] = parts[self._me], piece[low:high]
            reduce_into(total, parts, op, wide)
            self._rounds.meet()
            for (first, last), slot in zip(pairwise(cuts), slots, strict=True):
                piece[first:last].copy_(slot[first:last])

    def _scatter(self, x: Tensor, dim: int, out: Tensor, op: str, wide: torch.dtype | None) -> None:
        """Reduce-scatter `x` along `dim` into contiguous `out`, a piece of every part at a time."""
        rows = [part.reshape(-1) for part in x.tensor_split(self._size, dim)]
        for start, stop, slots in self._slots.pieces(out.numel(), x.dtype, rows=self._size):
            for mine, row in zip(slots[self._me].unflatten(0, (self._size, -1)), rows, strict=True):
                mine.copy_(row[start:stop])
            self._rounds.agree()
            parts = [slot.unflatten(0, (self._size, -1))[self._me] for slot in slots]
            reduce_into(out[start:stop], parts, op, wide)

    def _matching_splits(self) -> list[list[int]]:
        """Every rank's input splits; each rank must expect what the others send it."""
        size = self._size
        told = [self._rounds.read(rank, 2 * size) for rank in range(size)]
        for sender in range(size):
            for receiver in range(size):
                sent, expected = told[sender][receiver], told[receiver][size + sender]
                if sent != expected:
                    raise CollectiveMismatch(
                        f"all_to_all: rank {self._ranks[sender]} sends {sent} rows to rank "
                        f"{self._ranks[receiver]}, which expects {expected}"
                    )
        return [splits[:size] for splits in told]

    def _new_plan(self, key: Any, x: Tensor, called: str, rest: str = "") -> _Plan:
        """The plan of calls like this one, whose message is `x`."""
        shape, dtype = tuple(x.shape), x.dtype
        message_bytes, most = x.numel() * dtype.itemsize, float(self._slots.slot_bytes)
        if key[0] == "all_reduce":
            most = min(most, self._one_shot_bytes)
        reduces = key[0] in ("all_reduce", "reduce_scatter")
        plan = _Plan(
            Call(f"{called} {str(dtype).removeprefix('torch.')} {shape}{rest}"),
            self._slots.shaped(shape, dtype) if message_bytes <= most else None,
            wide_dtype(dtype, key[3], self._size) if reduces else None,
        )
        if len(self._plans) >= _MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan
        return plan


def _named(op: str, reduction: str, *more: str) -> str:
    """`all_reduce`, `all_reduce(max)`: as the flight recorder says it."""
    unusual = [reduction] * (reduction != "sum") + [text for text in more if text]
    return f"{op}({', '.join(unusual)})" if unusual else op


def _needs_inference_mode(x: Tensor) -> bool:
    """Whether torch lets `x`, made in inference mode, be written only there, and this is not it."""
    return x.is_inference() and not torch.is_inference_mode_enabled()
