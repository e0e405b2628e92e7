"""Keys and values of past tokens, in one preallocated block per layer.

Sequences of a batch may have different lengths. Prompts are padded on the right; padding is
never written. One `Step` says where the tokens of one forward pass go and what they may see; it
is worked out once and shared by all layers, and `advance` makes it count when all are done.

Shape suffixes: B batch, K KV heads on this rank, T new tokens, S positions, d head dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from labkit.layers.whole_number import whole_number


@dataclass(frozen=True)
class Step:
    """One forward pass over `T` token columns.

    Attributes:
        starts: tokens each sequence had before.
        counts: how many of the `T` columns are real; the rest is padding on the right.
        positions_BT: position of each token; padding repeats the last real position.
        first, stop: the cached positions attention has to look at.
        visible: `[B or 1, 1, T, S]`, S = stop - first; None where no mask is needed: one new token
            each at equal lengths, or fresh prompts, for which plain causal attention is right.
        slots: rows, columns and positions of the real tokens; None when all are at one place.
    """

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    positions_BT: Tensor
    first: int
    stop: int
    visible: Tensor | None
    slots: tuple[Tensor, Tensor, Tensor] | None

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens each sequence has after this step."""
        return tuple(start + count for start, count in zip(self.starts, self.counts, strict=True))

    @property
    def last_columns(self) -> tuple[int, ...]:
        """The column of each sequence's last real token; 0 where it has none."""
        return tuple(max(count - 1, 0) for count in self.counts)


class LayerCache:
    """One layer's keys and values, `[B, K, max_len, d]` each."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys = keys
        self.values = values

    def write(self, k_BTKd: Tensor, v_BTKd: Tensor, step: Step) -> None:
        """Store the real tokens of this step at their positions."""
        if step.slots is None:
            start = step.starts[0] if step.starts else 0
            stop = start + k_BTKd.shape[1]
            self.keys[:, :, start:stop] = k_BTKd.transpose(1, 2)
            self.values[:, :, start:stop] = v_BTKd.transpose(1, 2)
        else:
            rows, columns, positions = step.slots
            self.keys[rows, :, positions] = k_BTKd[rows, columns]
            self.values[rows, :, positions] = v_BTKd[rows, columns]

    def read(self, step: Step) -> tuple[Tensor, Tensor]:
        """The keys and values this step looks at: views, `[B, K, S, d]` each."""
        return (
            self.keys[:, :, step.first : step.stop],
            self.values[:, :, step.first : step.stop],
        )


class KVCache:
    """The cache of all layers of a model (or of a pipeline stage) for one batch."""

    def __init__(
        self,
        num_layers: int,
        batch_size: int,
        num_kv_heads: int,
        max_len: int,
        head_dim: int,
        *,
        sliding_window: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        """`num_kv_heads` counts this rank's; `max_len` is the room in tokens per sequence."""
        batch_size = whole_number(batch_size, "batch_size", at_least=0)
        max_len = whole_number(max_len, "max_len", at_least=1)
        shape = (batch_size, num_kv_heads, max_len, head_dim)
        self.max_len = max_len
        self.sliding_window = sliding_window
        self.device = torch.device(device)
        self.lengths: tuple[int, ...] = (0,) * batch_size
        self.layers = [
            LayerCache(*(torch.zeros(shape, dtype=dtype, device=self.device) for _ in range(2)))
            for _ in range(num_layers)
        ]

    @property
    def batch_size(self) -> int:
        return len(self.lengths)

    @property
    def num_bytes(self) -> int:
        """Memory held on this rank."""
        return sum(layer.keys.nbytes + layer.values.nbytes for layer in self.layers)

    def step(self, num_columns: int, counts: Sequence[int] | None = None) -> Step:
        """Plan a pass over `num_columns` new token columns, `counts` of them real per sequence.

        Raises:
            ValueError: there is no column, counts do not fit the batch, or a sequence would
                outgrow the cache.
        """
        if num_columns < 1:
            raise ValueError("no tokens were given; a pass takes at least one token column")
        counts = self._counts(num_columns, counts)
        starts = self.lengths
        ends = [start + count for start, count in zip(starts, counts, strict=True)]
        for sequence, end in enumerate(ends):
            if end > self.max_len:
                raise ValueError(
                    f"sequence {sequence} would hold {end} tokens, the KV cache has room for "
                    f"{self.max_len}; build it with a larger max_len or stop earlier"
                )
        is_uniform = len({*starts}) <= 1 and all(count == num_columns for count in counts)
        positions_BT = self._positions(starts, ends, num_columns, is_uniform)
        stop = max(ends, default=0)
        slots = None if is_uniform else self._slots(starts, counts)
        first, visible = self._view(starts, positions_BT, stop, is_uniform)
        return Step(starts, counts, positions_BT, first, stop, visible, slots)

    def advance(self, step: Step) -> None:
        """Count the tokens of `step` as cached, once every layer has written them."""
        if step.starts != self.lengths:
            raise ValueError(
                f"this step was planned for lengths {list(step.starts)}, "
                f"the cache is at {list(self.lengths)}"
            )
        self.lengths = step.ends

    def truncate(self, lengths: Sequence[int] | int) -> None:
        """Forget all but the first tokens of each sequence."""
        per_sequence = lengths if isinstance(lengths, Sequence) else [lengths] * self.batch_size
        wanted = [whole_number(length, "length") for length in per_sequence]
        if len(wanted) != self.batch_size or any(
            not 0 <= length <= held for length, held in zip(wanted, self.lengths, strict=False)
        ):
            raise ValueError(f"cannot truncate lengths {list(self.lengths)} to {wanted}")
        self.lengths = tuple(wanted)

    def reset(self) -> None:
        """Forget every token."""
        self.truncate(0)

    def _counts(self, num_columns: int, counts: Sequence[int] | None) -> tuple[int, ...]:
        if counts is None:
            return (num_columns,) * self.batch_size
        given = tuple(whole_number(count, "count") for count in counts)
        if len(given) != self.batch_size or any(not 0 <= c <= num_columns for c in given):
            raise ValueError(
                f"counts {list(given)} must be {self.batch_size} numbers from 0 to {num_columns}"
            )
        return given

    def _positions(
        self, starts: Sequence[int], ends: Sequence[int], num_columns: int, is_uniform: bool
    ) -> Tensor:
        columns = torch.arange(num_columns, device=self.device)
        if is_uniform:
            start = starts[0] if starts else 0
            return (columns + start).expand(len(starts), -1)
        last = torch.tensor([max(end - 1, 0) for end in ends], device=self.device)
        first = torch.tensor(starts, device=self.device)
        return torch.minimum(first[:, None] + columns, last[:, None])

    def _slots(self, starts: Sequence[int], counts: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        cells = [
            (row, column, start + column)
            for row, (start, count) in enumerate(zip(starts, counts, strict=True))
            for column in range(count)
        ]
        rows, columns, positions = torch.tensor(cells, device=self.device).reshape(-1, 3).T
        return rows, columns, positions

    def _view(
        self, starts: Sequence[int], positions_BT: Tensor, stop: int, is_uniform: bool
    ) -> tuple[int, Tensor | None]:
        """The first position to look at, and the mask if one is needed."""
        window = self.sliding_window if self.sliding_window and self.sliding_window < stop else None
        if is_uniform and positions_BT.shape[1] == 1:
            return max(0, stop - window) if window else 0, None
        if not any(starts) and window is None and positions_BT.shape[1] > 1:
            return 0, None
        position = (positions_BT[:1] if is_uniform else positions_BT)[:, None, :, None]
        key = torch.arange(stop, device=self.device)
        visible = key <= position
        if window:
            visible &= key > position - window
        return 0, visible
