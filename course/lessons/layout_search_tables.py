"""Tables and pictures of lesson 03 about what a search finds and what it rejects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from course.labels import Label, quantity
from course.picture import Picture
from course.points_picture import Spot, spots
from course.table import Table
from labkit.plan.candidates import Candidate
from labkit.plan.layout_space import layout_title
from labkit.plan.objectives import SLO
from labkit.plan.search import Answer, Question, search


def answer_table(answer: Answer, most: int = 6) -> Table:
    """The best layouts, at the largest batch that limits and cache allow."""
    rows = []
    for place, found in enumerate(answer.ranked[:most], start=1):
        rows.append((place, *_figures(found)))
    left = len(answer.ranked) - len(rows)
    more = f"; {left} more serve" if left > 0 else ""
    return Table(
        ("", "layout", "batch", "limited by", "TTFT", "TPOT", "tokens/s per GPU", "KV tokens"),
        rows,
        caption=f"Best first. {answer.objective.rstrip('.')}{more} ({Label.MODELLED})",
    )


def _figures(found: Candidate) -> tuple[object, ...]:
    return (
        found.title,
        found.batch,
        found.limited_by.value,
        "-" if found.ttft is None else quantity(found.ttft, "s"),
        quantity(found.tpot, "s"),
        f"{found.tokens_per_second_per_gpu:,.0f}",
        f"{found.kv_tokens:,}",
    )


def rejected_table(answer: Answer, most: int = 6) -> Table:
    """Layouts that do not serve, each with all its reasons."""
    rows = [
        (layout_title(each.layout), each.cause.value, "; ".join(each.reasons))
        for each in answer.rejected[:most]
    ]
    left = len(answer.rejected) - len(rows)
    return Table(
        ("layout", "cause", "reasons"),
        rows,
        caption=f"Rejected{f', {left} more not shown' if left > 0 else ''} ({Label.MODELLED})",
    )


def reasons_table(found: Iterable[Candidate]) -> Table:
    """What speaks for and against some layouts."""
    rows = []
    for each in found:
        rows += [(each.title, "for", reason) for reason in each.reasons_for]
        rows += [(each.title, "against", reason) for reason in each.reasons_against]
    return Table(("layout", "", "reason"), rows, caption=f"Reasons ({Label.MODELLED})")


def limits_table(question: Question, limits: Sequence[float]) -> Table:
    """The best layout under rising limits on the time per token, with its largest batch."""
    rows: list[tuple[object, ...]] = []
    for limit in limits:
        answer = search(replace(question, slo=SLO(question.slo.ttft, limit)))
        best = answer.best
        if best is None:
            rows.append((quantity(limit, "s"), "none meets it", *[""] * 5))
            continue
        cost = best.cost_per_million
        rows.append(
            (
                quantity(limit, "s"),
                best.title,
                best.batch,
                best.limited_by.value,
                quantity(best.tpot, "s"),
                f"{best.tokens_per_second_per_gpu:,.0f}",
                "-" if cost is None else f"{cost:.2f}",
            )
        )
    return Table(
        ("TPOT limit", "best", "batch", "limited by", "TPOT", "tokens/s per GPU", "$ a million"),
        rows,
        caption=f"Under each limit ({Label.MODELLED}; limits and price {Label.ASSUMED})",
    )


def verdicts_table(answers: Mapping[str, Answer]) -> Table:
    """What became of the layouts of several questions: their rank, or why they were rejected."""
    rows: list[tuple[object, ...]] = []
    for name, answer in answers.items():
        for place, found in enumerate(answer.ranked, start=1):
            times = (quantity(found.tpot, "s"), f"{found.tokens_per_second:,.0f}")
            rows.append((name, found.title, found.batch, *times, f"place {place}"))
        for lost in answer.rejected:
            tpot = quantity(lost.best.tpot, "s") if lost.best else "-"
            reasons = "; ".join(lost.reasons)
            batch = str(lost.best.batch) if lost.best else "-"
            rows.append((name, layout_title(lost.layout), batch, tpot, "-", reasons))
    return Table(
        ("limit", "layout", "batch", "a token", "tokens/s", "verdict"),
        rows,
        caption=f"Layouts under limits on the time per token ({Label.MODELLED}; limits "
        f"{Label.ASSUMED})",
    )


def pareto_picture(title: str, answer: Answer) -> Picture:
    """Time per token against tokens per second and GPU: what no other layout or batch beats."""
    best = [
        Spot(layout_title(point.layout), point.tpot, point.tokens_per_second_per_gpu, True)
        for point in answer.pareto
    ]
    others = [
        Spot(f"{each.title}, batch {each.batch}", each.tpot, each.tokens_per_second_per_gpu, False)
        for each in answer.ranked
        if each.pareto_point not in answer.pareto
    ]
    return spots(
        title,
        [*best, *others],
        x=("time per output token", "s"),
        y=("tokens a second for each GPU", ""),
        label=Label.MODELLED,
    )
