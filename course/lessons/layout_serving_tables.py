"""Tables and pictures of lesson 03 that set predictions beside recorded serving rows."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from course.labels import Label, quantity
from course.picture import Picture
from course.points_picture import parity
from course.table import Table
from labkit.plan.closed_loop import LoopTime, closed_loop
from labkit.plan.model import ModelSpec
from labkit.plan.serving_errors import RowError, mean_abs_error
from labkit.plan.serving_fit import ServingFit
from labkit.plan.serving_rows import ServingRow
from labkit.plan.steptime import System

Prediction = Callable[[ServingRow], LoopTime]
BAND = 0.1
"""Relative error that the pictures shade."""
_MEANINGS = {
    "memory": "memory bandwidth reached",
    "compute": "peak arithmetic reached",
    "layer_overhead": "overhead of a layer",
    "sequence_overhead": "overhead of a running request in a step",
    "request_overhead": "overhead of a request before its prefill",
    "step_overhead": "overhead of a step",
}
BOTH = f"recorded {Label.CAPTURED}, predicted {Label.MODELLED}"


def predict_with(
    model: ModelSpec, system: System, capacity: Callable[[ServingRow], int] | None = None
) -> Prediction:
    """What a system's model says of a row; `capacity`: sequences that its KV cache holds."""
    return lambda row: closed_loop(model, system, row, capacity and capacity(row))


def compare(rows: Iterable[ServingRow], prediction: Prediction) -> tuple[RowError, ...]:
    """Prediction beside record, row by row."""
    return tuple(RowError(row, prediction(row)) for row in rows)


def few_clients(rows: Iterable[ServingRow]) -> list[ServingRow]:
    """The rows with the fewest clients and the shortest requests, one for each degree."""
    some = list(rows)
    least = min((row.concurrency, row.prompt_tokens, row.output_tokens) for row in some)
    return [r for r in some if (r.concurrency, r.prompt_tokens, r.output_tokens) == least]


def gap_table(rows: Iterable[ServingRow], prediction: Prediction) -> Table:
    """Recorded time per token at each degree, the predicted one, and what is missed."""
    shown = [
        (
            found.row.tp,
            found.row.concurrency,
            f"{found.row.prompt_tokens:,} + {found.row.output_tokens:,}",
            quantity(found.row.tpot, "s"),
            quantity(found.predicted.tpot, "s"),
            quantity(found.missed_seconds, "s"),
            f"{found.error:+.0%}",
        )
        for found in compare(rows, prediction)
    ]
    return Table(
        ("TP", "clients", "tokens in + out", "recorded", "predicted", "missed", "error"),
        shown,
        caption=f"Time per output token ({BOTH})",
    )


def line_over_tp(rows: Sequence[ServingRow]) -> tuple[float, float]:
    """(seconds that the degree divides, seconds that it does not) of recorded times per token.

    The line TPOT = divided / TP + fixed that comes nearest to the rows.
    """
    line = statistics.linear_regression([1 / row.tp for row in rows], [row.tpot for row in rows])
    return line.slope, line.intercept


def errors_table(rows: Sequence[ServingRow], before: Prediction, after: Prediction) -> Table:
    """Mean error by degree and clients, before -> after calibration; signs are kept."""
    both = (compare(rows, before), compare(rows, after))
    clients = sorted({row.concurrency for row in rows})

    def cell(tp: int, count: int) -> str:
        means = (
            statistics.mean(e.error for e in some if (e.row.tp, e.row.concurrency) == (tp, count))
            for some in both
        )
        return " to ".join(f"{mean:+.0%}" for mean in means)

    shown = [
        (tp, *(cell(tp, count) for count in clients)) for tp in sorted({row.tp for row in rows})
    ]
    columns = ("TP", *(f"{count} clients" for count in clients))
    caption = f"Mean error of the time per output token, before to after calibration ({BOTH})"
    return Table(columns, shown, caption=caption)


def cells_table(rows: Sequence[ServingRow], predictions: Mapping[str, Prediction]) -> Table:
    """Mean absolute error of each cell of degree and lengths, for several predictions."""
    lengths = sorted({(row.prompt_tokens, row.output_tokens) for row in rows})
    shown = []
    for name, prediction in predictions.items():
        errors = compare(rows, prediction)
        for tp in sorted({row.tp for row in rows}):
            cells = [
                mean_abs_error(
                    e
                    for e in errors
                    if (e.row.tp, e.row.prompt_tokens, e.row.output_tokens) == (tp, *length)
                )
                for length in lengths
            ]
            shown.append((name, tp, *(f"{cell:.1%}" for cell in cells)))
        shown.append((name, "all", f"{mean_abs_error(errors):.1%}", *[""] * (len(lengths) - 1)))
    columns = ("prediction", "TP", *(f"{i:,} in, {o:,} out" for i, o in lengths))
    caption = f"Mean absolute error of the time per output token ({BOTH})"
    return Table(columns, shown, caption=caption)


def parity_picture(title: str, rows: Sequence[ServingRow], prediction: Prediction) -> Picture:
    """Predicted against recorded time per output token, one series for each degree."""
    errors = compare(rows, prediction)
    series = {
        f"TP {tp}": [(e.row.tpot, e.predicted.tpot) for e in errors if e.row.tp == tp]
        for tp in sorted({row.tp for row in rows})
    }
    return parity(title, series, unit="s", band=BAND)


def same_users_table(rows: Sequence[ServingRow]) -> Table:
    """One TP 8 group against two TP 4 replicas with half of the clients each, as recorded."""
    found = {(r.tp, r.prompt_tokens, r.output_tokens, r.concurrency): r.tpot for r in rows}
    shown = []
    for (tp, prompt, output, clients), seconds in found.items():
        half = found.get((4, prompt, output, clients // 2))
        if tp != 8 or half is None:
            continue
        winner = "TP 8" if seconds < half else "2 x TP 4"
        lengths = f"{prompt:,} + {output:,}"
        times = (quantity(seconds, "s"), quantity(half, "s"))
        shown.append((lengths, clients, *times, f"{half / seconds - 1:+.0%}", winner))
    return Table(
        ("tokens in + out", "clients", "TP 8", "2 x TP 4", "replicas against it", "faster"),
        shown,
        caption=f"Time per output token with the same clients ({Label.CAPTURED}, Llama 3.1 70B in "
        "FP8, vLLM on H100 SXM)",
    )


def parameters_table(fit: ServingFit) -> Table:
    """What calibration found, with about 95 % of its doubt, and what it assumed."""
    rows = [
        (
            _MEANINGS.get(name, name.replace("_", " ")),
            *(_share_or_time(name, x) for x in (e.value, e.low, e.high)),
            "fitted",
        )
        for name, e in fit.parameters.items()
    ]
    step = quantity(fit.efficiency.step_overhead, "s")
    rows.append((_MEANINGS["step_overhead"], step, "", "", str(Label.ASSUMED)))
    return Table(
        ("what", "value", "from", "to", "origin"),
        rows,
        caption=f"Fitted to {len(fit.errors)} recorded rows ({Label.MODELLED} from rows "
        f"{Label.CAPTURED})",
    )


def _share_or_time(name: str, value: float) -> str:
    return f"{value:.0%}" if name in ("memory", "compute") else quantity(value, "s")
