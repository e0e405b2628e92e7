"""How many sequences of a serving row's mean length the KV caches hold."""

from __future__ import annotations

from collections.abc import Callable

from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec
from labkit.plan.layout import Layout
from labkit.plan.memory import MemoryPlan, plan_memory
from labkit.plan.model import ModelSpec
from labkit.plan.serving_rows import ServingRow


def kv_capacity(
    model: ModelSpec, device: DeviceSpec, options: EngineOptions | None = None
) -> Callable[[ServingRow], int]:
    """What `calibrate_serving` and `closed_loop` take as capacity, from the memory plan.

    Sequences of all copies of attention together, at most `max_num_seqs` in each; 0 where the
    weights leave no room for one.
    """
    chosen = options or EngineOptions()
    plans: dict[Layout, MemoryPlan] = {}

    def capacity(row: ServingRow) -> int:
        layout = row.layout
        if layout not in plans:
            plans[layout] = plan_memory(model, device, layout, chosen)
        held = plans[layout].max_concurrency(round(row.mean_context))
        return int(layout.dp * min(held, chosen.max_num_seqs))

    return capacity
