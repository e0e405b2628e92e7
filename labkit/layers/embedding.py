"""The two ends of a decoder, cut by vocabulary: token embedding and output head.

Rank r holds one block of rows of the padded vocabulary. The embedding needs one all-reduce; the
head's logits stay where they are, and questions about them (which token wins, how probable is
this one) are answered with messages of a few bytes a row.

Shape suffixes: B batch, T tokens, V vocabulary, D hidden size; `/r` on this rank only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from labkit.layers.source import WeightSource, read_part
from labkit.layers.weight import PackedWeight
from labkit.plan.shard import VocabPartition
from labkit.ranks.comm import Comm


class _VocabRows(nn.Module):
    """This rank's block of rows of a `[V, D]` table: what both ends of a decoder hold."""

    def __init__(
        self,
        vocab: VocabPartition,
        hidden_size: int,
        comm: Comm,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        self.vocab = vocab
        self.hidden_size = hidden_size
        self.comm = comm
        self.dtype = dtype
        self.device = torch.device(device or comm.device)
        self.rows = vocab.rows(comm.rank)
        self.num_real_rows = len(vocab.real_rows(comm.rank))

    def _read(self, source: WeightSource, name: str) -> Tensor:
        """This rank's real rows of `{name}.weight`, then zeros for its padding rows."""
        real = read_part(
            source,
            f"{name}.weight",
            (self.vocab.vocab_size, self.hidden_size),
            self.vocab.real_rows(self.comm.rank),
            None,
            dtype=self.dtype,
            device=self.device,
        )
        num_padding = len(self.rows) - self.num_real_rows
        return F.pad(real, (0, 0, 0, num_padding)) if num_padding else real


class VocabParallelEmbedding(_VocabRows):
    """Row lookup in a table of which each rank holds a block of rows."""

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's real rows of `{name}.weight`; padding rows are zero."""
        self.weight_VD = self._read(source, name)

    def forward(self, ids_BT: Tensor) -> Tensor:
        """ids `[...]` -> embeddings `[..., D]`, whole on every rank.

        A rank looks up the ids in its own rows and contributes zeros for all others.

        Raises:
            IndexError: an id outside the vocabulary (checked on CPU only: looking costs a GPU
                a synchronisation).
        """
        _refuse_foreign_ids(ids_BT, self.vocab.vocab_size)
        if self.comm.size == 1:
            return F.embedding(ids_BT, self.weight_VD)
        local_ids = ids_BT - self.rows.start
        is_foreign = (local_ids < 0) | (local_ids >= len(self.rows))
        x_BTD = F.embedding(local_ids.masked_fill(is_foreign, 0), self.weight_VD)
        return self.comm.all_reduce(x_BTD.masked_fill_(is_foreign[..., None], 0))


class ParallelLMHead(_VocabRows):
    """Logits over the vocabulary, each rank those of its own rows."""

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's real rows of `{name}.weight`; padding rows are zero."""
        self.weight = PackedWeight(self._read(source, name))

    def tie(self, embedding: VocabParallelEmbedding) -> None:
        """Use the embedding's table as the head's weight."""
        self.weight = PackedWeight(embedding.weight_VD)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """x `[..., D]` -> local logits `[..., V/r]`. Padding rows get -inf: they never win."""
        logits = self.weight.matmul(x_BTD)
        if self.num_real_rows < len(self.rows):
            logits[..., self.num_real_rows :] = -torch.inf
        return logits

    def gather(self, local_logits: Tensor) -> Tensor:
        """Local logits `[..., V/r]` -> logits of the whole vocabulary `[..., V]`, no padding."""
        return self.comm.all_gather(local_logits, dim=-1)[..., : self.vocab.vocab_size]

    def argmax(self, local_logits: Tensor) -> Tensor:
        """The id of the largest logit, `[...]`, without gathering the logits.

        Equal logits: the lowest id wins. A NaN counts as the largest, as in `torch.argmax`.
        """
        value, row = local_logits.max(dim=-1)
        candidate = torch.stack((value.double(), (row + self.rows.start).double()), dim=-1)
        values, ids = self.comm.all_gather(candidate[..., None, :], dim=-2).unbind(-1)
        winner = values.argmax(dim=-1, keepdim=True)
        return ids.gather(-1, winner).squeeze(-1).long()

    def log_softmax_at(self, local_logits: Tensor, ids: Tensor) -> Tensor:
        """Log-probability of one token id per row: `logit - max - log(sum(exp(all - max)))`.

        local logits `[..., V/r]`, ids `[...]` -> `[...]`, in fp32 or wider. The maximum and the
        sum run over the ranks: one all-reduce for the first, one for the sum and the logit.

        Raises:
            IndexError: an id outside the vocabulary.
        """
        _refuse_foreign_ids(ids, self.vocab.vocab_size)
        logits = local_logits.to(torch.promote_types(local_logits.dtype, torch.float32))
        top = self.comm.all_reduce(logits.amax(dim=-1), op="max")
        shifted = logits - top[..., None]
        local_ids = ids - self.rows.start
        is_foreign = (local_ids < 0) | (local_ids >= len(self.rows))
        at_id = shifted.gather(-1, local_ids.masked_fill(is_foreign, 0)[..., None]).squeeze(-1)
        sums = torch.stack((shifted.exp().sum(dim=-1), at_id.masked_fill(is_foreign, 0)))
        total, target = self.comm.all_reduce(sums)
        return target - total.log()


def _refuse_foreign_ids(ids: Tensor, vocab_size: int) -> None:
    if ids.device.type != "cpu" or not ids.numel():
        return
    low, high = (int(bound) for bound in ids.aminmax())
    if low < 0 or high >= vocab_size:
        foreign = low if low < 0 else high
        raise IndexError(f"token id {foreign} is outside a vocabulary of {vocab_size}")
