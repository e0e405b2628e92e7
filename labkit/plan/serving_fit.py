"""Fit what a program makes of its GPUs to measured TTFT and TPOT, and predict other rows.

Five figures are fitted: the fractions of memory bandwidth and of peak FLOPS, and the seconds of a
layer, a running sequence and a request; without a TTFT the three that decode pays. None belongs to
one model or GPU, so a fit is tried on others with their data sheets. Two are assumed, for rows of
one model in one dtype cannot tell them apart: see `STEP_OVERHEAD` and `GAIN_16BIT`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from labkit.plan.calibration import Estimate
from labkit.plan.closed_loop import LoopTime, closed_loop
from labkit.plan.model import ModelSpec
from labkit.plan.robust_fit import search, standard_errors, student_quantile
from labkit.plan.serving_capacity import kv_capacity
from labkit.plan.serving_errors import RowError, mean_abs_error
from labkit.plan.serving_rows import ServingRow
from labkit.plan.step_system import Efficiency, System

if TYPE_CHECKING:
    from labkit.plan.engine_options import EngineOptions

Capacity = Callable[[ServingRow], int]
"""Sequences of a row's mean length that the KV cache of its layout holds."""

STEP_OVERHEAD = 1e-3
"""Seconds of a step that are its own and not its layers' (assumed: a model's rows have one number
of layers, so they fix only the sum)."""
GAIN_16BIT = 1.35
"""How much larger a share of their peak 16-bit products reach than 8-bit ones (assumed: twice the
peak does not halve the time of a product, let alone of what surrounds it)."""
_MOST_16BIT = 0.85
_HOPELESS = math.log(1000)
"""A figure known to no better than this, in logarithms, is not known: from 0 up."""
_DECODE = ("memory", "layer_overhead", "sequence_overhead")
_PREFILL = ("compute", "request_overhead")
_STARTS = {
    "memory": (0.8, 0.6),
    "layer_overhead": (40e-6, 80e-6),
    "sequence_overhead": (20e-6, 50e-6),
    "compute": (0.5, 0.3),
    "request_overhead": (20e-3, 5e-3),
}


@dataclass(frozen=True)
class ServingFit:
    """A fitted efficiency, and how well it does on the rows it was fitted to.

    Attributes:
        system: with the fitted efficiency.
        parameters: by the names of `Efficiency`'s fields, each with about 95 % of its doubt.
        errors: row by row.
        doubts: what the rows leave open, in sentences.
    """

    model: ModelSpec
    system: System
    parameters: Mapping[str, Estimate]
    errors: tuple[RowError, ...]
    capacity: Capacity
    options: EngineOptions | None
    doubts: tuple[str, ...]

    @property
    def efficiency(self) -> Efficiency:
        return self.system.efficiency

    @property
    def mean_abs_error(self) -> float:
        """Of the TPOT of the rows that were fitted."""
        return mean_abs_error(self.errors)

    def predict(self, row: ServingRow) -> LoopTime:
        """What the clients of a row see on the same system; its own times are not looked at."""
        return _predict(row, self.model, self.system, self.capacity, self.options)

    def compare(self, rows: Iterable[ServingRow]) -> tuple[RowError, ...]:
        """Prediction beside measurement, row by row."""
        return tuple(RowError(row, self.predict(row)) for row in rows)


def calibrate_serving(
    rows: Sequence[ServingRow],
    model: ModelSpec,
    system: System,
    capacity: Capacity | None = None,
    options: EngineOptions | None = None,
) -> ServingFit:
    """The efficiency with which `system` comes nearest to measured rows.

    Args:
        system: device, topology, collectives; its efficiency's `step_overhead` is kept where it is
            above 0, else `STEP_OVERHEAD` is assumed, and its balancedness is kept.
        capacity: see `Capacity`; None asks the memory plan of the model on the device.
        options: for the KV cache's dtype.

    Raises:
        ValueError: fewer rows with a TPOT than figures to fit, or rows that are all alike.
    """
    timed = [row for row in rows if row.tpot]
    prompts = _quietest(rows)
    _require_variety(timed, prompts)
    capacity = capacity or kv_capacity(model, system.device, options)
    base = system.efficiency

    names = (*_DECODE, *_PREFILL) if prompts else _DECODE

    def efficient(values: Sequence[float]) -> System:
        given = dict(zip(names, values, strict=True))
        compute = min(1.0, given.get("compute", base.compute))
        wider = max(compute, min(_MOST_16BIT, GAIN_16BIT * compute))
        return system.with_efficiency(
            Efficiency(
                memory=min(1.0, given["memory"]),
                compute=compute,
                compute_16bit=wider if prompts else base.compute_16bit,
                layer_overhead=given["layer_overhead"],
                step_overhead=base.step_overhead or STEP_OVERHEAD,
                sequence_overhead=given["sequence_overhead"],
                request_overhead=given.get("request_overhead", base.request_overhead),
                balancedness=base.balancedness,
                source=f"fitted to {len(timed)} rows of {system.device.name}",
                label="modelled",
            )
        )

    def predict(values: Sequence[float]) -> list[float]:
        trial = efficient(values)
        times = {row: _predict(row, model, trial, capacity, options) for row in {*timed, *prompts}}
        return [times[row].tpot for row in timed] + [times[row].ttft for row in prompts]

    observed = [row.tpot for row in timed] + [row.ttft for row in prompts]
    starts = [[_STARTS[name][index] for name in names] for index in (0, 1)]
    values = search(predict, observed, starts).values
    fitted = efficient(values)
    estimates = _estimates(names, predict, observed, values)
    errors = tuple(RowError(row, _predict(row, model, fitted, capacity, options)) for row in timed)
    return ServingFit(
        model, fitted, estimates, errors, capacity, options, _doubts(estimates, bool(prompts))
    )


def _predict(
    row: ServingRow,
    model: ModelSpec,
    system: System,
    capacity: Capacity,
    options: EngineOptions | None,
) -> LoopTime:
    return closed_loop(model, system, row, capacity(row), options)


def _quietest(rows: Sequence[ServingRow]) -> list[ServingRow]:
    """Of each TP and lengths the row with the fewest clients, where it has a TTFT: that of more
    clients tells how bunched they come, not how fast a prefill is."""
    found: dict[tuple[int, int, int], ServingRow] = {}
    for row in sorted(rows, key=lambda row: row.concurrency):
        found.setdefault((row.tp, row.prompt_tokens, row.output_tokens), row)
    return [row for row in found.values() if row.ttft]


def _require_variety(timed: Sequence[ServingRow], prompts: Sequence[ServingRow]) -> None:
    if len(timed) + len(prompts) < len(_DECODE) + len(_PREFILL) * bool(prompts):
        raise ValueError(
            f"{len(timed)} rows have a TPOT and {len(prompts)} a TTFT to fit; give as many as "
            f"there are figures: {len(_DECODE)}, or {len(_DECODE) + len(_PREFILL)} with TTFT"
        )
    if len({row.tp for row in timed}) < 2:
        raise ValueError(
            f"all rows have TP {timed[0].tp}; give two degrees at least, or reading and overhead "
            "cannot be told apart"
        )
    if len({row.concurrency for row in timed}) < 2:
        raise ValueError(
            f"all rows have {timed[0].concurrency} clients; give two numbers at least, or what a "
            "sequence costs cannot be told from what a step costs"
        )
    if prompts and len({row.tp for row in prompts}) < 2:
        raise ValueError(
            f"only TP {prompts[0].tp} has a TTFT; give two degrees at least, or none: what a "
            "request costs cannot be told from its prefill"
        )


def _estimates(
    names: Sequence[str],
    predict: Callable[[Sequence[float]], list[float]],
    observed: Sequence[float],
    values: Sequence[float],
) -> Mapping[str, Estimate]:
    errors = standard_errors(predict, observed, values)
    wide = student_quantile(max(1, len(observed) - len(values)))
    found = {}
    for name, value, error in zip(names, values, errors, strict=True):
        factor = math.exp(wide * error) if wide * error < _HOPELESS else math.inf
        highest = 1.0 if name in ("memory", "compute") else math.inf
        found[name] = Estimate(min(value, highest), value / factor, min(highest, value * factor))
    return MappingProxyType(found)


def _doubts(estimates: Mapping[str, Estimate], has_prefill: bool) -> tuple[str, ...]:
    doubts = [
        f"{name} is {estimate.value:.2g}, and anything from {estimate.low:.2g} to "
        f"{estimate.high:.2g} fits about as well"
        for name, estimate in estimates.items()
        if not estimate.is_determined
    ]
    doubts.append(
        f"the step's own overhead of {1e3 * STEP_OVERHEAD:.0f} ms is assumed: one model fixes only "
        "its sum with the layers' overheads"
    )
    doubts.append(
        f"16-bit products are assumed to reach {GAIN_16BIT} times the share of their peak that "
        "8-bit ones do"
        if has_prefill
        else "no row has a TTFT: the speed of prefill is the system's own, not fitted"
    )
    return tuple(doubts)
