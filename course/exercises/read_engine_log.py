"""Exercise: what an engine's start-up log says about its KV cache, and what bound it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from course.exercises.tensor_cases import Returns, mistakes, on_every_rank
from course.grading.comparison import difference
from course.grading.exercise import Case, Exercise, Outcome
from course.grading.plain_data import plain

MESSAGES = {
    "pool-too-large: utilization": "The pool is cut from all of the GPU's memory. The engine was "
    "allowed a part of it.",
    "pool-too-large: activations": "The pool holds what a step needs for its activations. The "
    "engine measures their peak first, and keeps it free.",
    "pool-too-large: other": "The pool holds what the runtime and the communication library have "
    "taken. It is neither weights nor activations, and it is gone.",
    "pool-too-small": "The weights are taken off twice, or the part that may be used was taken of "
    "what is left. The engine's part is a part of the GPU's whole memory.",
    "mixed-units": "A GiB and a KiB are powers of two. One of them was taken for a power of ten.",
    "part-of-a-block": "The tokens are not whole blocks. The engine hands out its cache block by "
    "block, and a part of one is no use.",
    "blocks-for-tokens": "Blocks are counted. Each holds block_size tokens.",
    "fewer-than-none": "The pool has fewer tokens than none. Where nothing is left, nothing fits.",
    "whole-requests": "The concurrency is rounded. It is a number with a fraction: "
    "sequences are rarely as long as they may be.",
    "weights-blamed": "The numbers are right. The weights are the largest part, and they leave "
    "room here: something else decided.",
    "pool-blamed": "The numbers are right. The KV pool bounds an engine that runs. This one does "
    "not start, for another reason.",
    "length-blamed": "The numbers are right. The maximum length is blamed. Look again at what a "
    "request of that length finds, and who took it.",
    "activations-blamed": "The numbers are right. The activations are blamed. Give their memory "
    "to the pool, and see whether that changes if the engine starts.",
}
BOUNDS = {
    "weights": "weights-blamed",
    "KV pool": "pool-blamed",
    "max length": "length-blamed",
    "activations": "activations-blamed",
}
GIB, KIB = 2**30, 2**10

Log = dict[str, Any]
Answer = dict[str, Any]


def _tokens(pool: float, log: Log, gib: float = GIB, kib: float = KIB) -> int:
    """Of whole blocks in `pool` GiB; below 0 where that is."""
    size = log["block_size"]
    return int(pool * gib // (log["kv_kib_per_token"] * kib * size)) * size


def _read(log: Log, *, usable: float | None = None, **scale: float) -> Answer:
    """The answer; `usable`, in GiB, and the units may be other ones."""
    usable = log["utilization"] * log["total_gib"] if usable is None else usable
    left = usable - log["weights_gib"] - log["other_gib"]
    length = log["max_model_len"]
    tokens = max(0, _tokens(left - log["activations_gib"], log, **scale))
    if left <= 0:
        bound = "weights"
    elif tokens >= length:
        bound = "KV pool"
    elif _tokens(left, log, **scale) >= length:
        bound = "activations"
    else:
        bound = "max length"
    return {"kv_tokens": tokens, "concurrency": tokens / length, "bound": bound}


def _wrong(log: Log) -> Iterator[tuple[str, Answer]]:
    total, length = log["total_gib"], log["max_model_len"]
    right = _read(log)
    usable = log["utilization"] * total
    yield "pool-too-large: utilization", _read(log, usable=total)
    yield "pool-too-large: activations", _read(log | {"activations_gib": 0.0})
    yield "pool-too-large: other", _read(log | {"other_gib": 0.0})
    yield "pool-too-small", _read(log, usable=usable - log["weights_gib"])
    taken = log["weights_gib"] + log["other_gib"] + log["activations_gib"]
    yield "pool-too-small", _read(log, usable=log["utilization"] * (total - taken) + taken)
    yield "mixed-units", _read(log, gib=1e9)
    yield "mixed-units", _read(log, kib=1e3)
    yield "mixed-units", _read(log, gib=1e9, kib=1e3)

    def with_tokens(tokens: float) -> Answer:
        return right | {"kv_tokens": tokens, "concurrency": tokens / length}

    pool = usable - taken
    if pool > 0:
        yield "part-of-a-block", with_tokens(int(pool * GIB / (log["kv_kib_per_token"] * KIB)))
    else:
        yield "fewer-than-none", with_tokens(_tokens(pool, log))
        yield "fewer-than-none", with_tokens(int(pool * GIB / (log["kv_kib_per_token"] * KIB)))
    blocks = right["kv_tokens"] // log["block_size"]
    yield "blocks-for-tokens", with_tokens(blocks)
    yield "blocks-for-tokens", right | {"kv_tokens": blocks}
    yield "whole-requests", right | {"concurrency": float(int(right["concurrency"]))}
    yield "whole-requests", right | {"concurrency": round(right["concurrency"], 2)}


def _returned(log: Log) -> Iterator[tuple[str, Returns]]:
    for key, value in _wrong(log):
        yield key, on_every_rank(value)


def _blames(right: Answer, bound: str) -> Callable[[Outcome], bool]:
    """Whether all is right but the bound, which is this one."""
    said = plain(right | {"bound": bound})
    return lambda outcome: difference(said, outcome.returned[0], 1e-9) is None


def _case(what: str, log: Log) -> Case:
    right = _read(log)

    def arguments(rank: int) -> Mapping[str, Any]:
        return {"log": dict(log)}

    blamed = [(key, _blames(right, bound)) for bound, key in BOUNDS.items()]
    wrong = [pair for pair, bound in zip(blamed, BOUNDS, strict=True) if bound != right["bound"]]
    return Case(
        name=what,
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(right),
        mistakes=mistakes(MESSAGES, _returned(log), wrong),
    )


def _log(
    total: float,
    utilization: float,
    weights: float,
    activations: float,
    other: float,
    kib: float,
    length: int,
    block: int = 16,
) -> Log:
    return {
        "total_gib": total,
        "utilization": utilization,
        "weights_gib": weights,
        "activations_gib": activations,
        "other_gib": other,
        "kv_kib_per_token": kib,
        "block_size": block,
        "max_model_len": length,
    }


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("an 8B on 24 GB, 20,000 tokens", _log(23.58, 0.9, 14.99, 2.07, 0.35, 128, 20000)),
        _case("an 8B on 24 GB, 29,000 tokens", _log(23.58, 0.9, 14.99, 2.99, 0.35, 128, 29000)),
        _case("no GQA, two 16 GB GPUs", _log(14.57, 0.9, 6.28, 1.31, 3.54, 256, 16384)),
        _case("a 13B on 24 GB, 16-bit", _log(23.65, 0.9, 24.32, 0.9, 0.3, 800, 4096)),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)

    def near(value: float) -> float:
        return round(value * random.uniform(0.995, 1.005), 3)

    return (
        _case("a 70B INT8, one GPU", _log(79.2, 0.98, near(67.7), 2.2, 0.9, 320, 2048)),
        _case("235B FP8, TP 4", _log(79.1, 0.9, near(55.2), near(5.1), 2.4, 47, 32768)),
        _case("a long prompt at once", _log(near(44.5), 0.9, 27.6, near(9.8), 0.6, 160, 24000)),
        _case("a long context", _log(near(39.5), 0.92, 15.0, near(1.4), 0.5, 128, 262144, 32)),
        _case("no room", _log(23.58, 0.8, near(19.2), near(1.9), 0.62, 192, 8192)),
    )


EXERCISE = Exercise(
    name="read_engine_log",
    chapter="03_layout_planning",
    title="What an engine's log says",
    function="read_engine_log",
    parameters=("log",),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
