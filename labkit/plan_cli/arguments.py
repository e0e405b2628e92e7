"""The arguments of `labkit plan`, and what the planner is asked with them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TypeVar

from labkit.plan.collective_presets import COLLECTIVE_PRESETS, CollectivePreset
from labkit.plan.device_presets import device as find_device
from labkit.plan.engine_flags import ENGINES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.hardware import DeviceSpec, unknown_name
from labkit.plan.layout import Layout
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS, resolve_model
from labkit.plan.objectives import SLO, Objective
from labkit.plan.question import Question
from labkit.plan.serving_presets import vllm_all_reduce, vllm_h100
from labkit.plan.step_system import IDEAL, Efficiency, Fidelity, System
from labkit.plan.topology import Topology

_Value = TypeVar("_Value")
QUESTIONS = {
    "search": "which layouts serve, the best first (what MODEL alone asks)",
    "fit": "whether one layout fits, the longest context, how many requests",
    "kv": "what the KV cache takes, for a token and for a request",
    "explain": "why a layout is illegal or slow; with --blocks, which layout an engine's log is of",
    "schema": "the JSON schema of --json",
}
_ALL = frozenset(QUESTIONS) - {"schema"}
_LAYOUT = frozenset({"fit", "kv", "explain"})
_TIMED = frozenset({"search", "explain"})


@dataclass(frozen=True)
class _Option:
    """One flag; `questions` are those that it belongs to: elsewhere it is refused."""

    flags: tuple[str, ...]
    questions: frozenset[str]
    help: str
    type: type = str
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    is_switch: bool = False

    @property
    def is_layout(self) -> bool:
        """Whether it says how the model is cut."""
        return self.questions == _LAYOUT

    @property
    def name(self) -> str:
        """Its name among the parsed arguments."""
        return self.flags[0].lstrip("-").replace("-", "_")


def _o(
    flags: str,
    questions: frozenset[str],
    help: str,
    kind: type = str,
    metavar: str | None = None,
    choices: tuple[str, ...] | None = None,
    is_switch: bool = False,
) -> _Option:
    return _Option(tuple(flags.split()), questions, help, kind, choices, metavar, is_switch)


_SEARCH = frozenset({"search"})
OPTIONS = (
    _o("--gpu", frozenset({"search", "fit", "explain"}), "a device, such as h100 (h100)"),
    _o("--gpus", _SEARCH, "how many (8)", int, "N"),
    _o("--memory-gib", _ALL - {"kv"}, "memory of a GPU, if not the device's", float, "GIB"),
    _o("--link", _TIMED, "between GPUs of a node, such as pcie4 (the device's)"),
    _o("--network", _TIMED, "between nodes, such as infiniband-ndr (the device's)"),
    _o("--gpus-per-node", _TIMED, "GPUs of a node (the device's)", int, "N"),
    _o("--objective", _SEARCH, "what is best (throughput with an SLO, else latency)", str, None,
       tuple(objective.value for objective in Objective)),
    _o("--slo-tpot-ms", _SEARCH, "limit on the time per output token", float, "MS"),
    _o("--slo-ttft-ms", _SEARCH, "limit on the time to first token", float, "MS"),
    _o("--prompt", _TIMED, "tokens of a prompt (1024)", int, "N"),
    _o("--output", _TIMED, "tokens of an answer (256)", int, "N"),
    _o("--batch", _TIMED, "sequences of a replica (search: what the SLO allows; 1)", int, "N"),
    _o("--price", _SEARCH, "of a GPU and hour, in any currency", float, "P"),
    _o("--disaggregation", _SEARCH, "allow pools of their own for prefill and decode",
       is_switch=True),
    _o("--collectives", _TIMED, "textbook, or a recorded preset (vLLM's on NVLink GPUs)"),
    _o("--efficiency", _TIMED, "of the data sheet: ideal, or as fitted to vLLM (fitted)", str, None,
       ("fitted", "ideal")),
    _o("--textbook", _SEARCH, "count weights and ring all-reduces alone, the data sheet in full",
       is_switch=True),
    _o("--tensor-parallel-size --tp -tp", _LAYOUT, "ranks that cut a layer (1)", int, "N"),
    _o("--pipeline-parallel-size --pp -pp", _LAYOUT, "pipeline stages (1)", int, "N"),
    _o("--data-parallel-size --dp -dp", _LAYOUT, "copies of attention that share experts (1)", int,
       "N"),
    _o("--enable-expert-parallel", _LAYOUT, "deal experts over TP x DP", is_switch=True),
    _o("--expert-parallel-size --ep -ep", _LAYOUT, "ranks the experts are dealt over (1)", int,
       "N"),
    _o("--lora-rank", frozenset({"explain"}), "of adapters that are to be loaded", int, "R"),
    _o("--length --max-model-len", frozenset({"fit", "kv"}),
       "tokens of a request (the model's longest)", int, "N"),
    _o("--blocks", frozenset({"explain"}), "GPU blocks that an engine printed", int, "N"),
    _o("--gpu-memory-utilization", _ALL - {"kv"}, "part of the memory that is used (0.9)", float,
       "P"),
    _o("--kv-cache-dtype", _ALL, "auto, bfloat16, fp8, ... (auto)"),
    _o("--block-size", _ALL, "tokens of a KV block (16)", int, "N"),
    _o("--max-num-batched-tokens", _ALL - {"kv"}, "tokens of one step at most (8192)", int, "N"),
    _o("--max-num-seqs", _ALL - {"kv"}, "sequences of one step at most (256)", int, "N"),
    _o("--engine", _SEARCH, "whose flags to print (all)", str, None, ENGINES),
    _o("--top", _SEARCH, "layouts to show (10)", int, "N"),
    _o("--json", frozenset(QUESTIONS), "print JSON: see `labkit plan schema`", is_switch=True),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """MODEL, or a question and MODEL, and every option."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    asked = "\n".join(f"  {name:8} {what}" for name, what in QUESTIONS.items())
    parser.usage = "labkit plan [fit|kv|explain] MODEL [options]"
    parser.epilog = (
        f"questions:\n{asked}\n\n"
        "MODEL is a known name, its Hugging Face id, or the path of a config.json or its folder.\n"
        "\n  labkit plan qwen2.5-72b --gpu h100 --gpus 8 --slo-tpot-ms 13\n"
        "  labkit plan fit llama-3.1-70b --gpu h100 -tp 4 --length 32768\n"
        "  labkit plan kv deepseek-v3 --length 8192\n"
        "  labkit plan explain qwen2.5-72b-gptq-int4 -tp 8\n"
        "  labkit plan qwen2.5-72b --gpu textbook-80gb --textbook --batch 1 --slo-tpot-ms 13"
    )
    parser.add_argument("words", nargs="+", metavar="MODEL", help="what to plan for")
    for option in OPTIONS:
        if option.is_switch:
            parser.add_argument(*option.flags, action="store_true", help=option.help)
        else:
            parser.add_argument(
                *option.flags,
                type=option.type,
                choices=option.choices,
                metavar=option.metavar,
                help=option.help,
            )


@dataclass(frozen=True)
class Request:
    """A question about a model, with the arguments that belong to it."""

    question: str
    model_name: str
    arguments: argparse.Namespace

    @classmethod
    def parse(cls, arguments: argparse.Namespace) -> Request:
        """Raises ValueError for words that are no question and one model, or a stray option."""
        words = list(arguments.words)
        question = words.pop(0) if words[0] in QUESTIONS else "search"
        if question != "schema" and len(words) != 1:
            given = " ".join(words) or "none"
            raise ValueError(
                f"one MODEL is needed, not {given}; a question before it is one of "
                f"{', '.join(QUESTIONS)}"
            )
        for option in OPTIONS:
            value = getattr(arguments, option.name)
            if value not in (None, False) and question not in option.questions:
                belongs = ", ".join(sorted(option.questions))
                raise ValueError(
                    f"{option.flags[0]} does not belong to `labkit plan {question}`; it does to "
                    f"{belongs}"
                )
        return cls(question, words[0] if words else "", arguments)

    def get(self, name: str, default: _Value) -> _Value:
        """An argument, or its default where it was not given."""
        value: _Value | None = getattr(self.arguments, name)
        return default if value is None else value

    @property
    def model(self) -> ModelSpec:
        return resolve_model(self.model_name)

    @property
    def hf_name(self) -> str:
        """What an engine is given for the model: its Hugging Face id, or the name as it is."""
        preset = MODELS.get(self.model_name.lower())
        return preset.hf_ids[0] if preset else self.model_name

    @property
    def device(self) -> DeviceSpec:
        """The device, with the memory that was asked for."""
        found = find_device(self.get("gpu", "h100"))
        memory = self.arguments.memory_gib
        return found if memory is None else replace(found, memory_bytes=memory * 2**30)

    @property
    def layout(self) -> Layout:
        """Of the question; `--enable-expert-parallel` is EP over all of TP x DP."""
        tp, dp = self.get("tensor_parallel_size", 1), self.get("data_parallel_size", 1)
        ep = self.get("expert_parallel_size", tp * dp if self._deals_experts else 1)
        return Layout(tp=tp, pp=self.get("pipeline_parallel_size", 1), dp=dp, ep=ep)

    @property
    def _deals_experts(self) -> bool:
        return bool(self.arguments.enable_expert_parallel)

    @property
    def options(self) -> EngineOptions:
        """The engine's."""
        defaults = EngineOptions()
        names = (
            "gpu_memory_utilization", "kv_cache_dtype", "block_size", "max_num_batched_tokens",
            "max_num_seqs",
        )  # fmt: skip
        return replace(
            defaults, **{name: self.get(name, getattr(defaults, name)) for name in names}
        )

    def topology(self, gpus: int) -> Topology:
        """The links of `gpus` GPUs."""
        arguments = self.arguments
        return Topology.for_device(
            self.device, gpus, arguments.link, arguments.gpus_per_node, arguments.network
        )

    @property
    def collectives(self) -> CollectivePreset | None:
        """A recorded all-reduce, or None for the textbook's ring.

        vLLM's own is taken over NVLink, where it was recorded; over other links the textbook's.
        """
        name = self.arguments.collectives
        if name is None and not self.arguments.textbook:
            link = self.arguments.link or self.device.link
            return vllm_all_reduce() if link.startswith("nvlink") else None
        if name in (None, "textbook"):
            return None
        if name not in COLLECTIVE_PRESETS:
            raise unknown_name("collective preset", name, {"textbook": None, **COLLECTIVE_PRESETS})
        return COLLECTIVE_PRESETS[name]

    @property
    def efficiency(self) -> Efficiency:
        """Fitted to vLLM's recorded rows unless the ideal one is asked for."""
        if self.arguments.textbook or self.arguments.efficiency == "ideal":
            return IDEAL
        return vllm_h100().efficiency

    def system(self, gpus: int) -> System:
        """What a step runs on."""
        return System(self.device, self.topology(gpus), self.collectives, self.efficiency)

    @property
    def slo(self) -> SLO:
        """Both limits in seconds."""
        tpot, ttft = self.arguments.slo_tpot_ms, self.arguments.slo_ttft_ms
        return SLO(
            ttft=None if ttft is None else ttft / 1e3, tpot=None if tpot is None else tpot / 1e3
        )

    @property
    def search_question(self) -> Question:
        """For `labkit.plan.search.search`."""
        gpus = self.get("gpus", 8)
        default = "latency" if self.slo.is_empty else "throughput"
        return Question(
            self.model,
            self.device,
            gpus,
            Objective(self.get("objective", default)),
            prompt_tokens=self.get("prompt", 1024),
            output_tokens=self.get("output", 256),
            slo=self.slo,
            batch=self.arguments.batch,
            topology=self.topology(max(gpus, 1)),
            options=self.options,
            collectives=self.collectives,
            efficiency=self.efficiency,
            fidelity=Fidelity.TEXTBOOK if self.arguments.textbook else Fidelity.FULL,
            price_per_gpu_hour=self.arguments.price,
            allow_disaggregation=self.arguments.disaggregation,
        )
