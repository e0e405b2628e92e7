"""A measured step over several GPUs beside the modelled one: what the difference points at.

What a split step takes beyond reading and computing it spends between GPUs. Divided by the number
of its all-reduces, that says which cause to look for first. A larger batch cures none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.step_work import element_bytes, stage_works
from labkit.plan.steptime import System, decode_step

_NEAR = 1.5
_LAUNCH_SECONDS = 100e-6
"""What starting a collective from the host costs at most; recorded eager kernels take 20 to 70."""


class SplitCause(Enum):
    """Where to look first; the value is the question to ask."""

    AS_MODELLED = "The step takes what the model says: is one GPU fast enough for this model?"
    LAUNCHES = "Does the host start each collective (eager mode, no CUDA graph)?"
    HOST_MEMORY = (
        "Is traffic between GPUs going through host memory (no peer access, a virtual machine, "
        "an older driver)? Look at the topology and the transport in NCCL's log."
    )


@dataclass(frozen=True)
class SplitDiagnosis:
    """Seconds; measured beside modelled.

    all_reduces: of a step. each: what one took, if all the rest was as modelled.
    modelled_each: what the system's collectives say of it.
    """

    measured: float
    modelled: float
    all_reduces: int
    each: float
    modelled_each: float
    cause: SplitCause

    @property
    def slowdown(self) -> float:
        """Measured over modelled."""
        return self.measured / self.modelled


def diagnose_split(
    model: ModelSpec,
    system: System,
    layout: Layout,
    measured: float,
    *,
    batch: int = 1,
    context: float = 0,
) -> SplitDiagnosis:
    """What a measured decode step over a TP group points at.

    Raises:
        ValueError: one GPU, or a time that is not above 0.
    """
    if layout.tp < 2:
        raise ValueError(f"TP is {layout.tp}; there is nothing between GPUs to look at below 2")
    if not measured > 0:
        raise ValueError(f"measured is {measured!r} s; it must be above 0")
    step = decode_step(model, system, layout, batch, context)
    count = sum(work.all_reduces for work in stage_works(model, layout))
    payload = batch / layout.dp * model.hidden_size * element_bytes(model)
    modelled_each = system.all_reduce(layout).seconds(layout.tp, payload)
    each = max(0.0, measured - step.seconds) / count + modelled_each
    if measured <= _NEAR * step.seconds:
        cause = SplitCause.AS_MODELLED
    elif each <= _LAUNCH_SECONDS:
        cause = SplitCause.LAUNCHES
    else:
        cause = SplitCause.HOST_MEMORY
    return SplitDiagnosis(measured, step.seconds, count, each, modelled_each, cause)
