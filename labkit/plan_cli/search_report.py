"""What a search found, as tables in a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labkit.plan.candidates import Candidate, Cause, Rejected
from labkit.plan.engine_flags import flags
from labkit.plan.enough_gpus import enough_gpus
from labkit.plan.layout_space import layout_title
from labkit.plan.memory import MemoryPlan
from labkit.plan.quantity_text import bytes_text, duration, percent
from labkit.plan.question import MOST_GPUS, Question
from labkit.plan.search import Answer
from labkit.plan.shard import counted
from labkit.plan.steptime import StepTime

_SMALL = 0.005
_MOST_REJECTED = 4


def print_search(
    console: Console, answer: Answer, model_name: str, top: int, engines: tuple[str, ...]
) -> None:
    """The objective, the best layouts, the best one in detail, the rejected ones, the notes."""
    console.print(escape(answer.objective))
    if answer.best is None:
        _print_nothing(console, answer)
        return
    _print_ranked(console, answer, top)
    _print_best(console, answer.best, model_name, engines)
    if answer.rejected:
        _print_rejected(console, answer.rejected)
    for note in answer.notes:
        console.print(f"- {escape(note)}")


def _print_nothing(console: Console, answer: Answer) -> None:
    console.print("\n[bold]No layout serves.[/bold]")
    if answer.nearest is not None:
        console.print(f"Nearest: {escape(answer.nearest.title)}: {_reasons(answer.nearest)}")
        if answer.nearest.cause in (Cause.TOO_LARGE, Cause.NO_ROOM):
            console.print(_enough(answer.question))
    _print_rejected(console, answer.rejected)


def _enough(question: Question) -> str:
    found = enough_gpus(question)
    if found is None:
        return f"Doubled, up to {MOST_GPUS}, no number of such GPUs is enough."
    gpus, fitting = found
    return f"Doubled until it fits: {gpus} GPUs, {escape(layout_title(fitting.layout))}."


def _print_ranked(console: Console, answer: Answer, top: int) -> None:
    shown = answer.ranked[:top]
    more = len(answer.ranked) - len(shown)
    rest = f", {more} more with --top" if more else ""
    console.print(f"\nLayouts that serve, the best first{rest} (modelled)")
    table = Table(caption_justify="left")
    table.add_column("layout")
    has_price = answer.question.price_per_gpu_hour is not None
    names = ["batch", "limited by", "TPOT", "TTFT", "tokens/s", "a GPU", "KV tokens"]
    for name in [*names, *(["cost per 1M"] if has_price else [])]:
        table.add_column(name, justify="left" if name == "limited by" else "right")
    on_front = {(point.layout, point.batch) for point in answer.pareto}
    for one in shown:
        star = " *" if (one.layout, one.batch) in on_front else ""
        row = [
            escape(one.title) + star,
            f"{one.batch:,}",
            one.limited_by.value,
            duration(one.tpot),
            "" if one.ttft is None else duration(one.ttft),
            f"{one.tokens_per_second:,.0f}",
            f"{one.tokens_per_second_per_gpu:,.1f}",
            f"{one.kv_tokens:,}",
        ]
        table.add_row(*row, *([f"{one.cost_per_million:,.2f}"] if has_price else []))
    if on_front:
        table.caption = "* in the Pareto set: none is better in TPOT and in tokens/s a GPU at once"
    console.print(table)


def _print_best(
    console: Console, best: Candidate, model_name: str, engines: tuple[str, ...]
) -> None:
    console.print(f"\n[bold]{escape(best.title)}[/bold]")
    for mark, reasons in (("+", best.reasons_for), ("-", best.reasons_against)):
        for reason in reasons:
            console.print(f"  {mark} {escape(reason)}")
    print_step(console, "Its decode step", best.decode)
    print_memory(console, best.memory)
    for engine in engines:
        console.print(f"\n{engine}:")
        console.print(
            flags(engine, best, model_name), markup=False, highlight=False, soft_wrap=True
        )


def print_step(console: Console, title: str, step: StepTime) -> None:
    """The terms that take half a percent or more, and the sum."""
    table = Table()
    for name in ("term", "time", "share"):
        table.add_column(name, justify="left" if name == "term" else "right")
    small = 0.0
    for term, seconds in step.terms.items():
        if seconds < _SMALL * step.seconds:
            small += seconds
        else:
            table.add_row(term, duration(seconds), percent(seconds / step.seconds))
    if small:
        table.add_row("the rest", duration(small), percent(small / step.seconds))
    table.add_section()
    table.add_row("together", duration(step.seconds), "")
    console.print(f"\n{title} (modelled)")
    console.print(table)


def print_memory(console: Console, plan: MemoryPlan) -> None:
    """What a rank holds where memory is tightest, by part."""
    stage = plan.stages[plan.limiting_stage]
    where = f", stage {stage.stage}" if len(plan.stages) > 1 else ""
    table = Table()
    table.add_column("part")
    table.add_column("bytes", justify="right")
    for part, size in stage.parts.items():
        table.add_row(part, bytes_text(size) if size >= 0 else f"-{bytes_text(-size)}")
    table.add_section()
    table.add_row("usable", bytes_text(stage.usable_bytes))
    console.print(f"\nMemory of a rank{where} (modelled)")
    console.print(table)


def _print_rejected(console: Console, rejected: tuple[Rejected, ...]) -> None:
    """Each layout with its reasons; of many with one cause the first few, the nearest first."""
    table = Table()
    for name in ("cause", "layout", "why"):
        table.add_column(name)
    for cause in Cause:
        stopped = [one for one in rejected if one.cause is cause]
        stopped.sort(key=lambda one: one.missing_bytes)
        for number, one in enumerate(stopped[:_MOST_REJECTED]):
            table.add_row("" if number else cause.value, escape(one.title), _reasons(one))
        if len(stopped) > _MOST_REJECTED:
            more = counted(len(stopped) - _MOST_REJECTED, "layout")
            table.add_row("", f"{more} more", "--json lists them all")
    console.print(f"\nRejected: {counted(len(rejected), 'layout')}")
    console.print(table)


def _reasons(one: Rejected) -> str:
    return escape("; ".join(one.reasons))
