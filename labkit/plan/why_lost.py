"""Why one layout is ranked behind another, in a sentence."""

from __future__ import annotations

from labkit.plan.candidates import Candidate
from labkit.plan.objectives import Objective
from labkit.plan.quantity_text import duration, percent
from labkit.plan.shard import counted


def why_lost(best: Candidate, other: Candidate) -> str:
    """Why one layout is ranked behind another, by what they are ranked by and the step's terms."""
    if (best.layout, best.pools) == (other.layout, other.pools):
        return f"{other.title} is the best."
    terms = {
        term: other.decode.terms[term] - seconds for term, seconds in best.decode.terms.items()
    }
    largest = sorted(terms, key=lambda term: -abs(terms[term]))[:2]
    moved = ", ".join(
        f"{term} {'+' if terms[term] >= 0 else '-'}{duration(abs(terms[term]))}"
        for term in largest
        if terms[term]
    )
    return (
        f"{other.title} has {_behind(best, other)} {best.title}. Its step takes "
        f"{duration(other.decode.seconds)} with {_sequences(other)} against "
        f"{duration(best.decode.seconds)} with {_sequences(best)}"
        + (f": {moved}." if moved else ".")
    )


def _behind(best: Candidate, other: Candidate) -> str:
    objective = best.question.objective
    if objective is Objective.LATENCY:
        return f"{percent(other.request_seconds / best.request_seconds - 1)} longer requests than"
    if objective is Objective.KV_CAPACITY:
        return f"{percent(1 - other.kv_tokens / best.kv_tokens)} fewer KV tokens than"
    ratio = other.tokens_per_second / best.tokens_per_second
    return f"{percent(1 - ratio)} fewer tokens per second for each GPU than"


def _sequences(candidate: Candidate) -> str:
    if candidate.layout.replicas == 1:
        return counted(candidate.batch, "sequence")
    return f"{candidate.layout.replicas} x {counted(candidate.batch, 'sequence')}"
