"""Exercise: a decode step as four terms: weights, KV cache, latency and transfer."""

from __future__ import annotations

from random import Random
from typing import Any

from course.exercises.plain_cases import Wrong, plain_case
from course.grading.exercise import Case, Exercise
from labkit.plan.collectives import Ring

MESSAGES = {
    "weights-whole": "Each rank reads all weights here. It holds a part of them, and reads that.",
    "weights-by-batch": "The weights are read once for each sequence. A step reads them once and "
    "uses them for the whole batch.",
    "elements-for-bytes": "The weights are counted in elements. A memory moves bytes.",
    "cache-of-one": "The cache of one sequence is read. Each of the batch has its own.",
    "cache-whole": "Each rank reads the cache of all KV heads. It keeps its own.",
    "one-token-of-cache": "One token's part of the cache is read. Attention looks at all of them.",
    "half-the-way": "Half of the way is counted. A layer has two halves, and each ends with a sum "
    "over the ranks; and for each sum the parts go round the ring to be added up, and once more to "
    "reach everybody.",
    "one-hop": "A meeting waits for a fixed number of hops, whatever the number of ranks. Round a "
    "ring of n the parts take n-1 of them each time.",
    "n-hops": "A hop is counted for each rank. Round a ring of n a part needs one hop less to "
    "reach the last.",
    "whole-tensors": "The ring sends whole tensors. In each hop an n-th of one travels.",
    "own-part-sent": "The rank's own part is among what it sends. It stays.",
    "payload-of-one": "The tensor that is added up is that of one sequence. It has a row for each.",
    "alone-and-talking": "One rank alone pays for meetings. It has nobody to meet.",
}


def _right(a: dict[str, Any]) -> dict[str, float]:
    n, size = a["tp"], a["bytes_per_element"]
    ring = Ring(a["hop_latency"], a["bandwidth"]).terms(n, a["batch"] * a["hidden"] * size)
    meetings = 2 * a["layers"]
    cache = a["batch"] * a["context"] * a["kv_bytes_per_token"]
    return {
        "weights": a["parameters"] * size / n / a["memory_bandwidth"],
        "kv": cache / n / a["memory_bandwidth"],
        "latency": meetings * ring.latency_seconds,
        "transfer": meetings * ring.transfer_seconds,
    }


def _wrong(a: dict[str, Any]) -> Wrong:
    right, n = _right(a), a["tp"]
    batch, context, size = a["batch"], a["context"], a["bytes_per_element"]
    meetings = 2 * a["layers"]
    payload = batch * a["hidden"] * size
    hop, whole = meetings * a["hop_latency"], meetings * payload / a["bandwidth"]

    def but(**changed: float) -> dict[str, float]:
        return right | changed

    yield "weights-whole", but(weights=right["weights"] * n)
    yield "weights-by-batch", but(weights=right["weights"] * batch)
    yield "elements-for-bytes", but(weights=right["weights"] / size)
    yield "cache-of-one", but(kv=right["kv"] / batch)
    yield "cache-whole", but(kv=right["kv"] * n)
    yield "one-token-of-cache", but(kv=right["kv"] / context)
    if n == 1:
        yield "alone-and-talking", but(latency=2 * hop, transfer=0.0)
        yield "alone-and-talking", but(latency=0.0, transfer=2 * whole)
        yield "alone-and-talking", but(latency=2 * hop, transfer=2 * whole)
        yield "alone-and-talking", but(latency=hop, transfer=whole)
        yield "alone-and-talking", but(latency=hop, transfer=0.0)
        return
    half_latency, half_transfer = right["latency"] / 2, right["transfer"] / 2
    yield "half-the-way", but(latency=half_latency, transfer=half_transfer)
    yield "half-the-way", but(latency=half_latency)
    yield "half-the-way", but(transfer=half_transfer)
    for hops in (1, 2):
        yield "one-hop", but(latency=hops * hop)
    yield "n-hops", but(latency=2 * n * hop)
    yield "n-hops", but(latency=n * hop)
    yield "whole-tensors", but(transfer=2 * (n - 1) * whole)
    yield "own-part-sent", but(transfer=2 * whole)
    yield "payload-of-one", but(transfer=right["transfer"] / batch)


def _case(name: str, tp: int, batch: int, context: int, **changed: Any) -> Case:
    a: dict[str, Any] = {
        "parameters": 72_700_000_000,
        "layers": 80,
        "hidden": 8192,
        "kv_bytes_per_token": 327_680,
        "bytes_per_element": 2,
        "tp": tp,
        "batch": batch,
        "context": context,
        "memory_bandwidth": 3.35e12,
        "hop_latency": 2e-6,
        "bandwidth": 450e9,
        **changed,
    }
    return plain_case(name, a, _right(a), _wrong(a), MESSAGES)


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("TP 4, 12 sequences", 4, 12, 3000),
        _case("TP 8, PCIe", 8, 48, 900, hop_latency=5e-6, bandwidth=25e9),
        _case("one GPU", 1, 5, 2100),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)
    small = {
        "parameters": random.randint(7, 9) * 10**9 + 123,
        "layers": 32,
        "hidden": 4096,
        "kv_bytes_per_token": 131_072,
    }
    return (
        _case("an 8B over 5", 5, random.randint(20, 40), 1700, **small),
        _case("an 8B over 6", 6, 3, random.randint(5000, 9000), **small, bandwidth=63e9),
        _case("in 8 bits", 8, 20, 4100, bytes_per_element=1, kv_bytes_per_token=163_840),
        _case("alone", 1, random.randint(3, 9), 800, **small),
        _case("one sequence", 16, 1, 30_000, hop_latency=random.uniform(1e-6, 4e-6)),
    )


EXERCISE = Exercise(
    name="decode_step_terms",
    chapter="03_layout_planning",
    title="Where a decode step goes",
    function="decode_step_terms",
    parameters=(
        "parameters",
        "layers",
        "hidden",
        "kv_bytes_per_token",
        "bytes_per_element",
        "tp",
        "batch",
        "context",
        "memory_bandwidth",
        "hop_latency",
        "bandwidth",
    ),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
