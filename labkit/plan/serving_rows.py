"""One row of a serving benchmark: clients that each keep one request running."""

from __future__ import annotations

import math
from dataclasses import dataclass

from labkit.plan.layout import Layout


@dataclass(frozen=True)
class ServingRow:
    """What was asked of an engine, and what came of it.

    Attributes:
        tp: GPUs of the tensor parallel group.
        prompt_tokens, output_tokens: of a request, nominal.
        concurrency: clients; each sends its next request when the last one ends.
        ttft, tpot: mean seconds to the first token and between later ones; 0 where not measured.
        length_share: mean lengths as a fraction of the nominal ones, where a client draws them.
        requests_per_client: that each sends in turn; its first comes at the same time as all
            others' first.
        pp, dp, ep: pipeline stages, copies of attention and ranks of experts, as in `Layout`.

    Raises ValueError, by the field's name, for what cannot be.
    """

    tp: int
    prompt_tokens: int
    output_tokens: int
    concurrency: int
    ttft: float = 0.0
    tpot: float = 0.0
    length_share: float = 1.0
    requests_per_client: float = 10.0
    pp: int = 1
    dp: int = 1
    ep: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "prompt_tokens", "output_tokens", "concurrency", "pp", "dp", "ep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1")
        for name in ("ttft", "tpot"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r} s; it must be at least 0, and finite")
        if not 0 < self.length_share <= 1:
            raise ValueError(f"length_share is {self.length_share!r}; it must be in (0, 1]")
        if not 1 <= self.requests_per_client < math.inf:
            raise ValueError(
                f"requests_per_client is {self.requests_per_client!r}; it must be at least 1"
            )

    @property
    def layout(self) -> Layout:
        return Layout(tp=self.tp, pp=self.pp, dp=self.dp, ep=self.ep)

    @property
    def mean_prompt(self) -> int:
        """Tokens of a prompt, on average."""
        return max(1, round(self.length_share * self.prompt_tokens))

    @property
    def mean_output(self) -> int:
        """Tokens of an answer, on average."""
        return max(1, round(self.length_share * self.output_tokens))

    @property
    def mean_context(self) -> float:
        """Tokens a running sequence holds, on average over its life."""
        return self.mean_prompt + self.mean_output / 2
