"""Tables and pictures of lesson 03 about memory: what fits, what is left, which rank decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill

from course.labels import Label, quantity
from course.picture import Picture, stacked_bars
from course.table import Table
from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec
from labkit.plan.layout import Layout
from labkit.plan.layout_space import layout_title
from labkit.plan.memory import MemoryPlan, plan_memory
from labkit.plan.memory_questions import BlockExplanation
from labkit.plan.model import ModelSpec

BARE = EngineOptions(runtime_bytes=0, activation_bytes=0)
"""Weights and cache alone, as the textbook counts."""


def plans(
    model: ModelSpec,
    device: DeviceSpec,
    layouts: Mapping[str, Layout],
    options: EngineOptions = BARE,
) -> dict[str, MemoryPlan]:
    """The memory of one replica in each of some layouts."""
    return {name: plan_memory(model, device, layout, options) for name, layout in layouts.items()}


def fits_table(found: Mapping[str, MemoryPlan], replicas: Mapping[str, Layout]) -> Table:
    """The fullest stage of each layout: weights, room, tokens; or why it does not fit."""
    rows = []
    for name, plan in found.items():
        stage = plan.stages[plan.limiting_stage]
        copies = replicas[name].replicas
        tokens = f"{copies * plan.replica_kv_tokens:,}" if plan.fits else "none"
        rows.append(
            (
                name,
                _gib(stage.total_weight_bytes),
                _gib(stage.usable_bytes),
                _gib(max(0.0, stage.kv_pool_bytes)) if plan.fits else "none",
                quantity(stage.kv_bytes_per_token, "B", short=True),
                tokens,
                "fits" if plan.fits else "does not fit",
            )
        )
    return Table(
        (
            "layout",
            "weights of a rank",
            "usable",
            "KV pool of a rank",
            "a token there",
            "tokens, all GPUs",
            "verdict",
        ),
        rows,
        caption=f"The fullest stage of each layout ({Label.MODELLED})",
    )


def _gib(value: float) -> str:
    return quantity(value, "B", short=True)


def reason_of(plan: MemoryPlan, width: int = 76) -> str:
    """Why a layout does not fit, in lines of at most `width` characters."""
    return fill(plan.reason, width)


def memory_picture(title: str, found: Mapping[str, MemoryPlan]) -> Picture:
    """One rank of every stage: weights, what the engine takes, the KV pool, what is left unused."""
    bars: dict[str, tuple[float, float, float]] = {}
    for name, plan in found.items():
        for stage in plan.stages:
            bar = f"{name}, stage {stage.stage}" if len(plan.stages) > 1 else name
            engine = stage.activation_bytes + stage.runtime_bytes
            bars[bar] = (stage.total_weight_bytes, engine, max(0.0, stage.kv_pool_bytes))
    names = ("weights", "engine", "KV pool")
    parts = {part: [bar[i] for bar in bars.values()] for i, part in enumerate(names)}
    return stacked_bars(title, parts, list(bars), "B", Label.MODELLED)


def stages_table(plan: MemoryPlan) -> Table:
    """What each stage of a layout holds, and how many tokens it has room for."""
    rows = [
        (
            stage.stage,
            len(stage.layers),
            _gib(stage.total_weight_bytes),
            _gib(stage.kv_pool_bytes),
            quantity(stage.kv_bytes_per_token, "B", short=True),
            stage.kv_tokens,
        )
        for stage in plan.stages
    ]
    return Table(
        ("stage", "layers", "weights of a rank", "KV pool", "a token there", "tokens"),
        rows,
        caption=f"The least of the last column is the capacity ({Label.MODELLED})",
    )


def concurrency_table(found: Mapping[str, MemoryPlan], lengths: Sequence[int]) -> Table:
    """How many requests of a length fit at once in one replica, and the longest one alone."""
    rows = [
        (name, *(f"{plan.max_concurrency(n):,.1f}" for n in lengths), plan.longest_context())
        for name, plan in found.items()
        if plan.fits
    ]
    return Table(
        ("layout", *(f"of {n:,} tokens" for n in lengths), "longest context"),
        rows,
        caption=f"Requests at once in one replica ({Label.MODELLED})",
    )


def blocks_table(found: Iterable[BlockExplanation], printed: int) -> Table:
    """Which degree and cache type explain the number of KV blocks in an engine's log."""
    rows = [
        (
            layout_title(one.layout),
            one.kv_cache_dtype,
            one.blocks,
            f"{one.error:+.0%}",
            quantity(one.pool_bytes, "B", short=True),
        )
        for one in found
    ]
    return Table(
        ("layout", "KV type", "blocks expected", "off by", f"pool if {printed:,} blocks"),
        rows,
        caption=f"{printed:,} blocks were printed ({Label.CAPTURED}; expected {Label.MODELLED})",
    )
