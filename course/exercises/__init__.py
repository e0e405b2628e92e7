"""The exercises, one module each; every module defines `EXERCISE`."""

from __future__ import annotations

from importlib import import_module

from course.grading.exercise import Exercise

CHAPTERS: dict[str, tuple[str, ...]] = {
    "00_start_here": ("all_reduce_by_hand", "mean_of_uneven_parts", "find_the_skipper"),
    "01_collectives": (
        "ring_reduce_scatter",
        "ring_all_gather",
        "recursive_doubling",
        "fixed_order_sum",
        "collective_bytes",
        "fit_alpha_beta",
        "one_or_two_shot",
        "fix_a_deadlock",
    ),
    "02_tensor_parallel": (
        "column_parallel",
        "row_parallel",
        "merged_gate_up",
        "mlp_block",
        "kv_head_owners",
        "vocab_ranges",
        "vocab_argmax",
        "vocab_log_softmax",
        "predict_collectives",
    ),
    "03_layout_planning": (
        "kv_bytes_per_token",
        "kv_capacity",
        "legal_tp_degrees",
        "decode_step_terms",
        "where_tp_stops_paying",
        "tp8_or_replicas",
        "pad_for_int4",
        "read_engine_log",
        "choose_layout",
    ),
}
"""Chapter -> its exercises, in the order of the notebook."""


def names() -> tuple[str, ...]:
    """Every exercise, in order."""
    return tuple(name for chapter in CHAPTERS.values() for name in chapter)


def load(name: str) -> Exercise:
    """The exercise called `name`.

    Raises LookupError that lists the exercises there are.
    """
    if name not in names():
        raise LookupError(f"no exercise is called {name!r}; there are {', '.join(names())}")
    exercise: Exercise = import_module(f"course.exercises.{name}").EXERCISE
    return exercise
