"""What the texts of lesson 03 quote: computed once from presets, never typed."""

from __future__ import annotations

from course.labels import Label, quantity
from course.lessons.figures import modelled_bytes, modelled_seconds, times
from course.lessons.layout_serving_tables import few_clients, line_over_tp
from labkit.plan.collective_presets import (
    COLLECTIVE_PRESETS,
    TEXTBOOK_NVLINK,
    TEXTBOOK_PCIE,
    CollectivePreset,
)
from labkit.plan.presets import PRESETS
from labkit.plan.recorded_collectives import GRAPH
from labkit.plan.recorded_serving import ROWS
from labkit.plan.shard import pad_up
from labkit.plan.tp_steps import TPStep, tp_step
from labkit.plan.traffic import decode_traffic, gathered_weight_bytes

BF16 = 2
QWEN = PRESETS["qwen2.5-72b"].spec
"""The model of the worked example."""

GPU_BYTES = 80e9
"""Of the worked example's GPU: what its name says, in GB of 10^9 bytes (assumed)."""
USABLE_PART = 0.9
"""What an engine may use of it (assumed)."""
SMALL_TP, LARGE_TP, TOO_SMALL_TP = 4, 8, 2
BATCH = 64
LOOSE_SLO, TIGHT_SLO = 13e-3, 10e-3
"""Seconds per token that a user will wait (assumed)."""
CONTEXT = 32_768
INT4_GROUP = 128
PADDED_UNIT = INT4_GROUP * LARGE_TP


def step(tp: int, batch: int, preset: CollectivePreset = TEXTBOOK_NVLINK) -> TPStep:
    """A decode step of the worked example: weights over memory bandwidth, and all-reduces."""
    return tp_step(QWEN, tp, batch, preset.chosen_model(tp))


def largest_batch(tp: int, slo: float, preset: CollectivePreset = TEXTBOOK_NVLINK) -> int:
    """The largest batch of a group of `tp` whose step takes at most `slo` seconds; 0 for none."""
    legal = (b for b in range(1, 2048) if step(tp, b, preset).seconds <= slo)
    return max(legal, default=0)


WEIGHTS = modelled_bytes(QWEN.num_parameters * BF16)
USABLE = f"{quantity(USABLE_PART * GPU_BYTES, 'B', short=True)} ({Label.ASSUMED})"
HALF_WEIGHTS = modelled_bytes(QWEN.num_parameters * BF16 / TOO_SMALL_TP)
KV_TOKEN = modelled_bytes(QWEN.kv_bytes_per_token(BF16))
KV_CONTEXT = modelled_bytes(CONTEXT * QWEN.kv_bytes_per_token(BF16))
KV_RANK = modelled_bytes(QWEN.kv_bytes_per_token(BF16) / LARGE_TP)

ALONE = {tp: step(tp, 1) for tp in (SMALL_TP, LARGE_TP)}
"""One sequence, over the textbook's link."""
FULL = {tp: step(tp, BATCH) for tp in (SMALL_TP, LARGE_TP)}
"""A batch for each group."""
CALIBRATED = {tp: step(tp, 1, COLLECTIVE_PRESETS[GRAPH]) for tp in (SMALL_TP, LARGE_TP)}
"""One sequence, all-reduces as recorded with vLLM's kernel in a CUDA graph."""
STEP_SMALL, STEP_LARGE = (modelled_seconds(found.seconds) for found in ALONE.values())
CALIBRATED_SMALL, CALIBRATED_LARGE = (
    modelled_seconds(found.seconds) for found in CALIBRATED.values()
)
MEETINGS_LARGE = modelled_seconds(ALONE[LARGE_TP].collective_seconds)
CALIBRATED_MEETINGS = modelled_seconds(CALIBRATED[LARGE_TP].collective_seconds)
PCIE_GAIN = step(SMALL_TP, 1, TEXTBOOK_PCIE).seconds / step(LARGE_TP, 1, TEXTBOOK_PCIE).seconds

GROUPS = LARGE_TP // SMALL_TP
MORE_TOKENS = GROUPS * FULL[LARGE_TP].seconds / FULL[SMALL_TP].seconds - 1
SAME_USERS = step(LARGE_TP, GROUPS * BATCH)
"""All users of both replicas on one group."""
LESS_TOKENS = SAME_USERS.seconds / FULL[SMALL_TP].seconds - 1
"""The replicas' tokens per second against that group's, with as many users: below 0, fewer."""
SAME_USERS_STEP = modelled_seconds(SAME_USERS.seconds)
FULL_SMALL = modelled_seconds(FULL[SMALL_TP].seconds)

LOOSE_BATCH = {tp: largest_batch(tp, LOOSE_SLO) for tp in (SMALL_TP, LARGE_TP)}

MLP = QWEN.intermediate_size
MLP_RANK = MLP // LARGE_TP
PADDED_MLP = pad_up(MLP, PADDED_UNIT)

PAYLOAD = modelled_bytes(FULL[LARGE_TP].payload_bytes)
ONE_TOKEN = decode_traffic(QWEN, LARGE_TP, 1, BF16)
GATHERED = gathered_weight_bytes(QWEN, LARGE_TP, BF16)
GATHERED_TIMES = times(GATHERED / ONE_TOKEN.wire_bytes_per_rank)
BOUNDARY = modelled_bytes(BATCH * QWEN.hidden_size * BF16)
MEETINGS = 2 * QWEN.num_layers
MEETING_BYTES = modelled_bytes(MEETINGS * BATCH * QWEN.hidden_size * BF16)

STAGES, FEW, MANY = 4, 4, 16
"""Of a pipeline, with few and with many microbatches."""

_divided, _fixed = line_over_tp(few_clients(ROWS))
DIVIDED, FIXED = (f"{quantity(seconds, 's')} ({Label.CAPTURED})" for seconds in (_divided, _fixed))
"""Of a recorded step of a 70B with few clients: what the degree divides, and what it does not."""
