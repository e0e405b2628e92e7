"""An efficiency to plan with: fitted to the recorded serving rows when it is first asked for."""

from __future__ import annotations

from functools import cache

from labkit.plan.collective_presets import COLLECTIVE_PRESETS, CollectivePreset
from labkit.plan.device_presets import DEVICES
from labkit.plan.model_presets import resolve_model
from labkit.plan.recorded_collectives import GRAPH
from labkit.plan.recorded_serving import ROWS
from labkit.plan.serving_fit import ServingFit, calibrate_serving
from labkit.plan.step_system import System
from labkit.plan.topology import Topology

FITTED_PROMPT = 1024
FITTED_DEGREES = (2, 4)
"""The rows that are fitted: TP 2 and 4 with prompts of 1,024 tokens. The others are predictions."""
RECORDED_MODEL = "llama-3.1-70b-fp8"
RECORDED_DEVICE = "h100"


def recorded_system() -> System:
    """What the recorded rows ran on, with the data sheet reached in full: the roofline and the
    recorded all-reduce of vLLM, nothing fitted."""
    device = DEVICES[RECORDED_DEVICE]
    return System(device, Topology.for_device(device, 8), vllm_all_reduce())


def vllm_all_reduce() -> CollectivePreset:
    """The all-reduce of vLLM in a CUDA graph, recorded on H100."""
    return COLLECTIVE_PRESETS[GRAPH]


@cache
def vllm_h100() -> ServingFit:
    """vLLM as recorded on H100, fitted to `FITTED_DEGREES` and `FITTED_PROMPT` alone.

    Its `efficiency` carries over to other GPUs and models by their data sheets; other engines and
    much older versions differ, and need rows of their own.
    """
    model, system = resolve_model(RECORDED_MODEL), recorded_system()
    rows = [row for row in ROWS if row.tp in FITTED_DEGREES and row.prompt_tokens == FITTED_PROMPT]
    return calibrate_serving(rows, model, system)
