"""A step's time in named terms that sum to its seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TERMS = (
    "weights",
    "KV cache",
    "compute",
    "activations",
    "all-reduce latency",
    "all-reduce transfer",
    "all-to-all",
    "logits gather",
    "pipeline sends",
    "pipeline bubble",
    "layer overhead",
    "step overhead",
    "sequence overhead",
)
"""The terms of a step, in order. "compute" is what computing takes beyond reading."""
STAGE_TERMS = tuple(term for term in TERMS if not term.startswith("pipeline"))
"""Those of one stage."""


@dataclass(frozen=True)
class StepTime:
    """One step of one replica.

    Attributes:
        terms: seconds by the name of the term, all of `TERMS`, in their order.
        seconds: their sum. For decode the time between two tokens of a sequence; for prefill until
            the prompts' first tokens.
        tokens: that the step brings: one a sequence in decode, those of the prompts in prefill.
        stage_seconds: of each pipeline stage, for one microbatch.
        microbatches: in flight.
    """

    terms: Mapping[str, float]
    seconds: float
    tokens: int
    stage_seconds: tuple[float, ...]
    microbatches: int = 1

    @property
    def tokens_per_second(self) -> float:
        """Of the replica."""
        return self.tokens / self.seconds

    @property
    def utilization(self) -> float:
        """The part of the time that an average stage does not idle; m/p at most."""
        return 1 - self.terms["pipeline bubble"] / self.seconds

    @property
    def longest_term(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)
