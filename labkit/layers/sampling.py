"""Choosing the next token, the same on every rank.

Greedy choice needs no logits gathered. Sampling gathers them: all ranks then hold the same bits
and draw the same number, so all choose the same token without a message about it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from labkit.layers.embedding import ParallelLMHead
from labkit.layers.whole_number import whole_number

MIN_TEMPERATURE = 1e-5
"""Far below it, logits over the temperature leave float32; at it, the largest one always wins."""

MAX_SEED = 2**63 - 1
"""The random generator takes twice as many: room to count on from any seed."""


class Sampler:
    """Temperature, then the `top_k` most probable tokens, then the fewest that reach `top_p`.

    Request i draws from its own random stream: `seed + i`, or `seed[i]` when seeds are listed.
    What a request gets therefore does not depend on the requests batched with it. The streams go
    on from call to call; `restarted` begins them anew, as every `generate` does.
    """

    def __init__(
        self,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | Sequence[int] = 0,
    ) -> None:
        """`temperature` 0 is greedy; `top_k` 0 and `top_p` 1 leave every token in."""
        temperature, top_p = _number(temperature, "temperature"), _number(top_p, "top_p")
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"temperature {temperature} must be 0 (greedy) or a positive number")
        if 0 < temperature < MIN_TEMPERATURE:
            raise ValueError(
                f"temperature {temperature} is too close to 0; "
                f"give 0 (greedy) or at least {MIN_TEMPERATURE:g}"
            )
        if whole_number(top_k, "top_k") < 0:
            raise ValueError(f"top_k {top_k} must be 0 (all tokens) or a positive number")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p {top_p} must be above 0 and at most 1")
        self.temperature = temperature
        self.top_k = whole_number(top_k, "top_k")
        self.top_p = top_p
        self.seed = _checked_seed(seed)
        self._streams: dict[int, torch.Generator] = {}

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    def restarted(self, num_requests: int = 0) -> Sampler:
        """The same settings with every stream at its beginning.

        Raises ValueError if seeds are listed, but fewer than `num_requests`.
        """
        if not isinstance(self.seed, int) and len(self.seed) < num_requests:
            raise ValueError(
                f"{len(self.seed)} seeds are listed for {num_requests} requests; "
                "list one for each, or give a single number to count from"
            )
        return Sampler(self.temperature, self.top_k, self.top_p, self.seed)

    def __call__(
        self, local_logits: Tensor, head: ParallelLMHead, requests: Sequence[int] | None = None
    ) -> Tensor:
        """One token id for each row: local logits `[B, V/r]` -> `[B]`.

        `requests` names the request of each row; by default row i is request i.
        """
        if self.is_greedy:
            return head.argmax(local_logits)
        logits = head.gather(local_logits)
        return self.draw(logits, range(len(logits)) if requests is None else requests)

    def draw(self, logits_BV: Tensor, requests: Sequence[int]) -> Tensor:
        """Draw from whole rows of logits: the first token at which the cumulated probability
        passes the request's random number."""
        probs, ids = self.distribution(logits_BV)
        cumulated = probs.double().cumsum(dim=-1)
        numbers = torch.tensor([self._next_number(r) for r in requests], dtype=torch.float64)
        threshold = numbers.to(cumulated.device)[:, None] * cumulated[:, -1:]
        index = torch.searchsorted(cumulated, threshold, right=True)
        last_possible = (probs > 0).sum(dim=-1, keepdim=True) - 1
        return ids.gather(-1, torch.minimum(index, last_possible)).squeeze(-1)

    def distribution(self, logits_BV: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities that are drawn from, falling, and the token ids they belong to."""
        if self.is_greedy:
            raise ValueError("temperature 0 is greedy: there is no distribution to draw from")
        scaled = logits_BV.to(torch.promote_types(logits_BV.dtype, torch.float32))
        scaled = scaled / self.temperature
        if not scaled.amax(dim=-1).isfinite().all():  # the maximum is NaN where any logit is
            raise ValueError(
                "cannot sample: the logits hold NaN or infinity, or forbid every token, "
                f"at temperature {self.temperature}"
            )
        if 0 < self.top_k < scaled.shape[-1]:
            scaled, ids = scaled.topk(self.top_k, dim=-1)
        else:
            scaled, ids = scaled.sort(dim=-1, descending=True, stable=True)
        probs = scaled.softmax(dim=-1)
        if self.top_p < 1:
            before = probs.cumsum(dim=-1) - probs
            probs = probs.masked_fill(before >= self.top_p, 0)
            probs = probs / probs.sum(dim=-1, keepdim=True)
        return probs, ids

    def _next_number(self, request: int) -> float:
        if request not in self._streams:
            if isinstance(self.seed, int):
                seed = self.seed + request
            elif request < len(self.seed):
                seed = self.seed[request]
            else:
                raise ValueError(f"request {request} has no seed: {len(self.seed)} are listed")
            self._streams[request] = torch.Generator().manual_seed(seed)
        return torch.rand((), generator=self._streams[request], dtype=torch.float64).item()


def _number(value: float, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{what} {value!r} must be a number") from None


def _checked_seed(seed: int | Sequence[int]) -> int | tuple[int, ...]:
    def checked(number: int) -> int:
        return whole_number(number, "seed", at_least=0, at_most=MAX_SEED)

    if isinstance(seed, Sequence) and not isinstance(seed, str):
        return tuple(map(checked, seed))
    return checked(seed)
