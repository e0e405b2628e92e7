"""The questions that the planner and its peer are timed on."""

from __future__ import annotations

from labkit.plan.device_presets import device
from labkit.plan.model_presets import resolve_model
from labkit.plan.search import SLO, Objective, Question
from labkit.plan.serving_presets import vllm_all_reduce, vllm_h100

BAR_GPUS = 256
SIZES = (8, 32, BAR_GPUS, 512)
"""GPUs on which every layout of the large model is ranked."""


def large_moe(gpus: int = BAR_GPUS) -> Question:
    """A MoE of 671B parameters on H200: the question that the bar is about."""
    return Question(
        resolve_model("deepseek-v3"),
        device("h200"),
        gpus,
        Objective.THROUGHPUT_PER_GPU,
        prompt_tokens=4096,
        output_tokens=1024,
        slo=SLO(ttft=5.0, tpot=0.05),
    )


PEER_MODEL, PEER_SYSTEM = "meta-llama/Meta-Llama-3.1-70B", "h200_sxm"
"""The next question's model and GPU as aiconfigurator calls them."""


def dense_70b() -> Question:
    """A question that both answer: 70B in bf16 on 8 H200, one pool or two, with both limits."""
    return Question(
        resolve_model(PEER_MODEL.replace("Meta-Llama", "Llama")),
        device("h200"),
        8,
        Objective.THROUGHPUT_PER_GPU,
        prompt_tokens=1024,
        output_tokens=256,
        slo=SLO(ttft=1.0, tpot=0.03),
        efficiency=vllm_h100().efficiency,
        collectives=vllm_all_reduce(),
        allow_disaggregation=True,
    )
