"""The regimes explorer's sliders, and its answer to where they stand."""

from __future__ import annotations

from collections.abc import Mapping

from course.labels import Label, quantity
from course.widgets.explorer_view import Bar, Cell, Control, View
from labkit.plan.tradeoff import NVLINK_BANDWIDTH, Regime, TradeOff, trade_off

MIB = 2**20
COMPUTE_SECONDS = (0.5e-3, 1e-3, 2e-3, 4e-3, 8e-3, 16e-3, 32e-3, 64e-3)
SIZES = tuple(range(2, 17))
PAYLOAD_BYTES = tuple(n * MIB for n in (1, 5, 10, 20, 40, 80, 160, 320))
BANDWIDTHS = (1e9, 2e9, 5e9, 10e9, 25e9, 50e9, 100e9, 200e9, NVLINK_BANDWIDTH)
SCALINGS = tuple(percent / 100 for percent in range(0, 101, 10))

POSITIONS: Mapping[str, tuple[float, ...]] = {
    "compute": COMPUTE_SECONDS,
    "tp": SIZES,
    "payload": PAYLOAD_BYTES,
    "bandwidth": BANDWIDTHS,
    "scaling": SCALINGS,
}
"""Control name -> the values it stands for."""
START = {"compute": 4, "tp": SIZES.index(8), "payload": 4, "bandwidth": 5, "scaling": 10}

FAST = quantity(NVLINK_BANDWIDTH, "B/s")
ORIGIN = (
    f"{Label.MODELLED.symbol} {Label.MODELLED} by labkit.plan.tradeoff: step = compute + ring "
    "bytes / bandwidth, where the part of the compute that divides is divided by TP. Hop latency "
    "is left out, so small messages look cheaper than they are. "
    f"{Label.ASSUMED.symbol} {Label.ASSUMED}: every slider, and {FAST} for the fast link (NVLink)."
)
LAW = (
    "A slower link always makes the split step longer. It still beats one GPU where the compute "
    "drops by more than the link costs."
)


def shown(name: str, value: float) -> str:
    """A control's value in words."""
    if name == "compute":
        return quantity(value, "s")
    if name == "payload":
        return quantity(value, "B", short=True)
    if name == "bandwidth":
        return quantity(value, "B/s")
    return f"{value:.0%}" if name == "scaling" else str(value)


LABELS = {
    "compute": "Compute on one GPU",
    "tp": "GPUs to split over (TP)",
    "payload": "All-reduced in a step (payload)",
    "bandwidth": "Bandwidth of the slow link",
    "scaling": "Compute that divides",
}
CONTROLS = tuple(
    Control(name, LABELS[name], "slider", tuple(shown(name, value) for value in values))
    for name, values in POSITIONS.items()
)


def at(choice: Mapping[str, int]) -> TradeOff:
    """The trade-off where the controls stand."""
    value = {name: values[choice[name]] for name, values in POSITIONS.items()}
    return trade_off(
        value["compute"],
        int(value["tp"]),
        value["payload"],
        value["bandwidth"],
        compute_scaling=value["scaling"],
    )


def view(choice: Mapping[str, int]) -> View:
    """What the explorer shows when its controls stand at `choice`."""
    result = at(choice)
    longest = max(seconds for _, *parts in steps(choice) for seconds in [sum(parts)])
    return View(
        headline=headline(result),
        is_good=result.regime is Regime.SLOW_LINK_PAYS,
        sentences=(result.regime.sentence, *_numbers(choice, result), LAW),
        origin=ORIGIN,
        caption="One step, compute then all-reduces",
        columns=(("time of the step", f"whole track: {quantity(longest, 's')}"),),
        rows=tuple(
            (name, (_step_cell(compute, collectives, longest),))
            for name, compute, collectives in steps(choice)
        ),
        legend=(("first", "compute"), ("again", "all-reduces")),
    )


def headline(result: TradeOff) -> str:
    """The regime's name as a sentence."""
    return f"{result.regime.value[0].upper()}{result.regime.value[1:]}."


def steps(choice: Mapping[str, int]) -> list[tuple[str, float, float]]:
    """What is compared: a name, seconds of compute, seconds of all-reduces."""
    result, tp = at(choice), SIZES[choice["tp"]]
    slow = shown("bandwidth", BANDWIDTHS[choice["bandwidth"]])
    return [
        ("one GPU", result.one_gpu_seconds, 0.0),
        (f"{tp} GPUs, {slow}", result.compute_seconds, result.collective_seconds),
        (f"{tp} GPUs, {FAST}", result.compute_seconds, result.fast_collective_seconds),
    ]


def _numbers(choice: Mapping[str, int], result: TradeOff) -> list[str]:
    (one, alone, _), (slow, *slow_parts), (fast, *fast_parts) = steps(choice)
    times = result.one_gpu_seconds / result.step_seconds
    change = f"{times:.3g} times as fast" if times >= 1 else f"{1 / times:.3g} times as long"
    return [
        f"{one[0].upper()}{one[1:]}: {quantity(alone, 's')}. "
        f"{slow}: {sum_in_words(*slow_parts)}, {change}. {fast}: {sum_in_words(*fast_parts)}."
    ]


def sum_in_words(compute: float, collectives: float) -> str:
    """Two times and their sum; the compute alone where nothing is sent."""
    if not collectives:
        return quantity(compute, "s")
    return (
        f"{quantity(compute, 's')} compute + {quantity(collectives, 's')} all-reduces = "
        f"{quantity(compute + collectives, 's')}"
    )


def _step_cell(compute: float, collectives: float, longest: float) -> Cell:
    bars = (
        Bar.of(0, compute, longest),
        Bar.of(compute, collectives, longest, "again"),
    )
    return Cell(sum_in_words(compute, collectives), bars[: 2 if collectives else 1])
