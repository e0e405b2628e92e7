"""The layout explorer's page: memory and step of every layout as bars, a Pareto plot, sentences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from course.labels import Label, quantity
from course.widgets.chart import Axis, Chart, Curve, Look, decades
from course.widgets.explorer_view import Cell, Jump, View
from course.widgets.explorer_view import Look as BarLook
from course.widgets.layout_answer import LayoutAnswer, Row, answer_at, curves
from course.widgets.layout_bars import (
    MEMORY_PARTS,
    STEP_PARTS,
    bars,
    memory_parts,
    parts_in_words,
    step_parts,
)
from course.widgets.layout_controls import LIMITS, Position, at
from labkit.plan.engine_flags import ENGINES, flags
from labkit.plan.model_presets import MODELS
from labkit.plan.search import Answer

CURVE_LOOKS: tuple[Look, ...] = ("vermillion", "blue", "green", "purple")
HINT = (
    "The limit and the largest batch belong together: without a limit the largest batch always "
    "has the most tokens, so choose a batch then."
)


def view_of(choice: Mapping[str, int]) -> View:
    """What the page shows where the controls stand."""
    return view(at(choice))


@lru_cache(maxsize=1024)
def view(position: Position) -> View:
    """The same for a position."""
    found = answer_at(position)
    if found.answer is None:
        limit = LIMITS.index(20)
        return View(
            headline="The question has no answer yet.",
            is_good=False,
            sentences=(),
            origin=origin(position),
            hint=HINT,
            reasons=(found.refusal,),
            jumps=(Jump(f"Set a limit of {LIMITS[limit]:g} ms", {"limit": limit}),),
        )
    longest = max((row.point.decode.seconds for row in found.rows if row.point), default=1.0)
    usable = max((row.memory.stages[0].usable_bytes for row in found.rows if row.memory), default=1)
    return View(
        headline=headline(found),
        is_good=found.best is not None,
        sentences=sentences(found),
        commands=commands(position, found),
        origin=origin(position),
        hint=HINT,
        reasons=() if found.best else _nothing(found.answer),
        caption="Layouts, the best first; then some that do not serve",
        columns=(
            ("memory of a rank", f"whole track: {quantity(usable, 'B', short=True)} usable"),
            ("a decode step", f"whole track: {quantity(longest, 's')}"),
            ("time per token", "prefills of others included"),
            ("tokens/s a GPU", "batch of a replica"),
        ),
        rows=tuple((row.title, _cells(row, usable, longest)) for row in found.rows),
        legend=legend(),
        chart=None if found.best is None else chart(found.answer).geometry(),
    )


def headline(found: LayoutAnswer) -> str:
    """The best layout and what it gives."""
    best = found.best
    if best is None:
        return "No layout serves."
    return (
        f"{best.title}: {quantity(best.tokens_per_second_per_gpu, 'tokens/s')} a GPU, "
        f"{quantity(best.tpot, 's')} for a token, batch {best.batch} in each replica."
    )


def sentences(found: LayoutAnswer) -> tuple[str, ...]:
    """The objective, the best layout's terms, reasons for it and against it."""
    answer, best = found.answer, found.best
    assert answer is not None
    if best is None:
        return (answer.objective,)
    return (
        answer.objective,
        f"Its decode step: {parts_in_words(step_parts(best.decode), 's')}.",
        f"A rank: {parts_in_words(memory_parts(best.memory), 'B')}.",
        *(f"For it: {reason}" for reason in best.reasons_for),
        *(f"Against it: {reason}" for reason in best.reasons_against),
    )


def commands(position: Position, found: LayoutAnswer) -> tuple[tuple[str, str], ...]:
    """How each engine is started with the best layout."""
    if found.best is None:
        return ()
    name, best = MODELS[position.model].hf_ids[0], found.best
    return tuple((f"{engine}, started so:", flags(engine, best, name)) for engine in ENGINES)


def origin(position: Position) -> str:
    """Where the numbers come from, with their labels."""
    device = position.device
    if position.is_fitted:
        reached = (
            f"{Label.CAPTURED.symbol} {Label.CAPTURED}: vLLM's recorded serving times on H100, to "
            "which the efficiency is fitted; over NVLink its recorded all-reduce, over other links "
            "the textbook's ring."
        )
    else:
        reached = "Every data sheet is taken as reached in full, all-reduces as textbook rings."
    return (
        f"{Label.MODELLED.symbol} {Label.MODELLED} by labkit.plan.search from the model's config "
        f"and the data sheet of {device.title} ({device.source}). {reached} "
        f"{Label.ASSUMED.symbol} {Label.ASSUMED}: every control."
    )


def legend() -> tuple[tuple[BarLook, str], ...]:
    """Every look, with what it stands for in both figures."""
    names: dict[BarLook, list[str]] = {}
    for name, look in (*((n, look) for n, (look, _) in STEP_PARTS.items()), *MEMORY_PARTS.items()):
        names.setdefault(look, []).append(name)
    return tuple((look, ", ".join(dict.fromkeys(some))) for look, some in names.items())


def chart(answer: Answer) -> Chart:
    """Tokens per second for each GPU against time per token, over the batch; the best layouts."""
    best = answer.best
    assert best is not None
    found = [
        Curve(candidate.title, look, points)
        for look, (candidate, points) in zip(CURVE_LOOKS, curves(answer), strict=False)
    ]
    points = [point for curve in found for point in curve.points]
    here = (best.tpot, best.tokens_per_second_per_gpu)
    limit = answer.question.slo.tpot
    at_x = best.tpot if limit is None else limit
    return Chart(
        Axis("time per token", "s", decades([at_x, here[0], *(x for x, _ in points)])),
        Axis(f"tokens/s a GPU ({Label.MODELLED})", "", decades([here[1], *(y for _, y in points)])),
        tuple(found),
        at_x,
        "batch as given" if limit is None else "the limit",
        ((*here, f"{best.title}, batch {best.batch}"),),
        f"Right of the line the limit is broken; the best layout gives {here[1]:,.0f} tokens/s a "
        "GPU.",
    )


def _nothing(answer: Answer) -> tuple[str, ...]:
    nearest = answer.nearest
    if nearest is None:
        return tuple(answer.rejected[0].reasons) if answer.rejected else ()
    return (f"Nearest, {nearest.title}: {'; '.join(nearest.reasons)}",)


def _cells(row: Row, usable: float, longest: float) -> tuple[Cell, ...]:
    if row.memory is None:
        return (Cell(row.cause, (), row.reasons[0]), Cell(""), Cell(""), Cell(""))
    parts = memory_parts(row.memory)
    weights, _, pool = (quantity(part.size, "B", short=True) for part in parts)
    memory = Cell(f"{weights} weights, {pool} KV", bars(parts, usable), row.cause)
    if row.point is None:
        return memory, Cell(""), Cell(""), Cell("")
    step = row.point.decode
    per_gpu = "" if row.candidate is None else f"{row.candidate.tokens_per_second_per_gpu:,.1f}"
    return (
        memory,
        Cell(quantity(step.seconds, "s"), bars(step_parts(step), longest)),
        Cell(quantity(row.point.tpot, "s")),
        Cell(per_gpu, (), f"batch {row.point.batch}"),
    )
