"""The layout explorer's controls: what they are called, what they ask the planner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from course.widgets.explorer_view import Control
from labkit.plan.device_presets import DEVICES
from labkit.plan.hardware import DeviceSpec
from labkit.plan.link_presets import LINKS
from labkit.plan.model_presets import MODELS
from labkit.plan.objectives import NO_LIMIT, SLO, Objective
from labkit.plan.question import Question
from labkit.plan.serving_presets import vllm_all_reduce, vllm_h100
from labkit.plan.step_system import IDEAL
from labkit.plan.topology import Topology

OFFERED = (
    "llama-3.1-8b",
    "qwen3-30b-a3b",
    "qwen3-32b",
    "mixtral-8x7b",
    "llama-3.1-70b",
    "llama-3.1-70b-fp8",
    "qwen2.5-72b",
    "gpt-oss-120b",
    "qwen3-235b-a22b-fp8",
    "llama-3.1-405b",
    "deepseek-v3",
)
"""Names in `MODELS`, rising in size."""
GPUS = ("h100", "h200", "b200", "a100-80gb", "l40s", "rtx-4090")
NUMBERS = (1, 2, 4, 8, 16, 32)
OWN_LINK = "the GPU's own"
LINK_NAMES = ("", "nvlink4", "pcie5", "pcie4", "textbook-nvlink", "textbook-pcie")
BATCHES: tuple[int | None, ...] = (None, 1, 8, 32, 64, 128)
CONTEXTS = (512, 1024, 4096, 8192, 32768, 131072)
LIMITS: tuple[float | None, ...] = (None, 8, 10, 13, 20, 30, 50, 100)
"""Milliseconds for an output token."""
OUTPUT_TOKENS = 256
LARGEST = "the largest the limit allows"
ENGINES = ("as vLLM was recorded", "the data sheet in full")


@dataclass(frozen=True)
class Position:
    """What the controls say, as values. link: "" is the device's own. limit_ms: None is none."""

    model: str
    gpu: str
    gpus: int
    link: str
    batch: int | None
    context: int
    limit_ms: float | None
    is_fitted: bool

    @property
    def device(self) -> DeviceSpec:
        return DEVICES[self.gpu]

    @property
    def question(self) -> Question:
        """For the planner. Raises QuestionError where nothing limits the batch."""
        limit = None if self.limit_ms is None else self.limit_ms / 1e3
        link = self.link or self.device.link
        is_recorded = self.is_fitted and link.startswith("nvlink")
        model = MODELS[self.model].model
        prompt = min(self.context, model.max_position_embeddings - OUTPUT_TOKENS)
        return Question(
            model,
            self.device,
            self.gpus,
            Objective.THROUGHPUT_PER_GPU,
            prompt_tokens=prompt,
            output_tokens=OUTPUT_TOKENS,
            slo=NO_LIMIT if limit is None else SLO(tpot=limit),
            batch=self.batch,
            topology=Topology.for_device(self.device, self.gpus, link),
            collectives=vllm_all_reduce() if is_recorded else None,
            efficiency=vllm_h100().efficiency if self.is_fitted else IDEAL,
        )


CONTROLS = (
    Control("model", "Model", "menu", tuple(MODELS[name].title for name in OFFERED)),
    Control("gpu", "GPU", "menu", tuple(DEVICES[name].title for name in GPUS)),
    Control("gpus", "How many GPUs", "slider", tuple(map(str, NUMBERS))),
    Control("link", "Link between GPUs of a node", "menu",
            tuple(LINKS[name].title if name else OWN_LINK for name in LINK_NAMES)),
    Control("batch", "Batch of a replica", "menu",
            tuple(LARGEST if size is None else f"{size}" for size in BATCHES)),
    Control("context", "Prompt (tokens)", "slider", tuple(f"{size:,}" for size in CONTEXTS)),
    Control("limit", "Limit on the time per token", "slider",
            tuple("none" if ms is None else f"{ms:g} ms" for ms in LIMITS)),
    Control("engine", "What the GPU reaches", "menu", ENGINES),
)  # fmt: skip
START = {
    "model": OFFERED.index("qwen2.5-72b"),
    "gpu": 0,
    "gpus": NUMBERS.index(8),
    "link": 0,
    "batch": 0,
    "context": CONTEXTS.index(1024),
    "limit": LIMITS.index(20),
    "engine": 0,
}


def at(choice: Mapping[str, int]) -> Position:
    """What a choice, control name -> index of its option, stands for."""
    return Position(
        model=OFFERED[choice["model"]],
        gpu=GPUS[choice["gpu"]],
        gpus=NUMBERS[choice["gpus"]],
        link=LINK_NAMES[choice["link"]],
        batch=BATCHES[choice["batch"]],
        context=CONTEXTS[choice["context"]],
        limit_ms=LIMITS[choice["limit"]],
        is_fitted=choice["engine"] == 0,
    )


def in_words(choice: Mapping[str, int]) -> str:
    """Where the controls stand."""
    return "; ".join(f"{c.label}: {c.options[choice[c.name]]}" for c in CONTROLS)
