"""What to type to start vLLM, SGLang or TensorRT-LLM with a layout, and what each cannot express.

The three count axes differently. vLLM's TP is attention's, and EP is all of TP x DP or nothing.
SGLang's and TensorRT-LLM's TP is a whole stage, of which attention's copies take a part; the latter
has either TP or DP for attention. Memory shares differ too: vLLM's is of everything, SGLang's of
weights and KV cache, TensorRT-LLM's of what weights and activations leave.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from labkit.plan.candidates import Candidate
from labkit.plan.engine_cache_dtypes import cache_dtype_word, missing_cache_dtype
from labkit.plan.engine_servers import Server, servers
from labkit.plan.engine_sources import SOURCES
from labkit.plan.hardware import unknown_name
from labkit.plan.layout import Layout
from labkit.plan.layout_space import layout_title
from labkit.plan.shard import counted

ENGINES = tuple(SOURCES)
"""The names `flags` takes."""


def flags(engine: str, candidate: Candidate, model: str = "MODEL") -> str:
    """The commands that start a candidate, one a line; lines with `#` say what no flag does.

    A layout or a KV cache that the engine cannot express is a `#` line that says why.

    Args:
        engine: one of `ENGINES`.
        model: name or path of the checkpoint, as the engine wants it.

    Raises:
        ValueError: an engine that is not known.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, SOURCES)
    lines: list[str] = []
    for server, layout in servers(candidate, model):
        refusal = missing(engine, server.layout) or missing_cache_dtype(
            engine, server.options.kv_cache_dtype, server.model_dtype
        )
        if refusal:
            return f"# {refusal}"
        if layout.replicas > 1:
            lines.append(f"# {layout.replicas} of these, behind a router:")
        nodes = -(-layout.replica_size // candidate.question.links.gpus_per_node)
        if nodes > 1:
            lines.append(f"# each over {counted(nodes, 'node')}: {_NODES[engine]}")
        lines += _COMMANDS[engine](server)
    if candidate.pools is not None:
        lines.append(f"# {_PROXY[engine]}")
    return "\n".join(lines)


def missing(engine: str, layout: Layout) -> str:
    """Why an engine cannot start a layout, in a sentence; "" where it can.

    Raises:
        ValueError: an engine that is not known.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, SOURCES)
    title = layout_title(layout)
    if engine == "vllm" and layout.ep not in (1, layout.stage_size):
        return (
            f"vLLM cannot start {title}: EP is all of TP x DP = {layout.stage_size}, or off; "
            f"EP {layout.ep} has no flag"
        )
    if engine == "tensorrt-llm" and layout.dp > 1 and layout.tp > 1:
        return (
            f"TensorRT-LLM cannot start {title}: attention has either TP or DP over the whole "
            "stage, not both"
        )
    return ""


def _command(start: str, arguments: list[tuple[str, object]]) -> str:
    said = [f"{name} {value}".strip() for name, value in arguments]
    return " ".join([start, *said])


def _cache_dtype(engine: str, server: Server) -> list[tuple[str, object]]:
    word = cache_dtype_word(engine, server.options.kv_cache_dtype, server.model_dtype)
    return [("--kv-cache-dtype", word)] if word else []


def _vllm(server: Server) -> list[str]:
    layout, options = server.layout, server.options
    arguments: list[tuple[str, object]] = [("--tensor-parallel-size", layout.tp)]
    if layout.pp > 1:
        arguments.append(("--pipeline-parallel-size", layout.pp))
    if layout.dp > 1:
        arguments.append(("--data-parallel-size", layout.dp))
    if layout.ep > 1:
        arguments.append(("--enable-expert-parallel", ""))
    if options.num_redundant_experts:
        copies = json.dumps({"num_redundant_experts": options.num_redundant_experts})
        arguments += [("--enable-eplb", ""), ("--eplb-config", f"'{copies}'")]
    arguments += [
        ("--gpu-memory-utilization", f"{options.gpu_memory_utilization:g}"),
        ("--max-num-seqs", server.sequences),
        ("--max-num-batched-tokens", options.max_num_batched_tokens),
        ("--max-model-len", server.length),
        ("--block-size", options.block_size),
    ]
    arguments += _cache_dtype("vllm", server)
    if server.role:
        role = "kv_producer" if server.role == "prefill" else "kv_consumer"
        transfer = json.dumps({"kv_connector": "NixlConnector", "kv_role": role})
        arguments.append(("--kv-transfer-config", f"'{transfer}'"))
    return [_command(f"vllm serve {server.model}", arguments)]


def _sglang(server: Server) -> list[str]:
    layout, options = server.layout, server.options
    arguments: list[tuple[str, object]] = [("--tp-size", layout.stage_size)]
    if layout.pp > 1:
        arguments.append(("--pp-size", layout.pp))
    if layout.dp > 1:
        arguments += [("--dp-size", layout.dp), ("--enable-dp-attention", "")]
        if layout.tp == 1:
            arguments.append(("--moe-dense-tp-size", 1))
    if layout.ep > 1:
        arguments.append(("--ep-size", layout.ep))
        if layout.dp > 1 and layout.ep == layout.stage_size:
            arguments.append(("--moe-a2a-backend", "deepep"))
    if options.num_redundant_experts:
        arguments.append(("--ep-num-redundant-experts", options.num_redundant_experts))
    arguments += [
        ("--mem-fraction-static", f"{server.static_share:.3f}"),
        ("--max-running-requests", server.sequences * layout.dp),
        ("--chunked-prefill-size", options.max_num_batched_tokens * layout.dp),
        ("--context-length", server.length),
        ("--page-size", options.block_size),
    ]
    arguments += _cache_dtype("sglang", server)
    if server.role:
        arguments.append(("--disaggregation-mode", server.role))
    return [_command(f"python -m sglang.launch_server --model-path {server.model}", arguments)]


def _tensorrt_llm(server: Server) -> list[str]:
    layout, options = server.layout, server.options
    name = f"{server.role or 'engine'}.yaml"
    arguments: list[tuple[str, object]] = [("--tp_size", layout.stage_size)]
    if layout.pp > 1:
        arguments.append(("--pp_size", layout.pp))
    if layout.ep > 1:
        arguments.append(("--ep_size", layout.ep))
    arguments += [
        ("--kv_cache_free_gpu_memory_fraction", f"{server.free_share:.3f}"),
        ("--max_batch_size", server.sequences),
        ("--max_num_tokens", options.max_num_batched_tokens),
        ("--max_seq_len", server.length),
        ("--extra_llm_api_options", name),
    ]
    return [
        f"cat >{name} <<'END'",
        *_yaml(server),
        "END",
        _command(f"trtllm-serve {server.model}", arguments),
    ]


def _yaml(server: Server) -> list[str]:
    options = server.options
    lines = ["kv_cache_config:", f"  tokens_per_block: {options.block_size}"]
    dtype = cache_dtype_word("tensorrt-llm", options.kv_cache_dtype, server.model_dtype)
    if dtype:
        lines.append(f"  dtype: {dtype}")
    if server.layout.dp > 1:
        lines.append("enable_attention_dp: true")
    if options.num_redundant_experts:
        slots = "moe_config.load_balancer, which lists the slots of every expert"
        lines.append(f"# {options.num_redundant_experts} redundant experts: {slots}")
    if server.role:
        lines += ["cache_transceiver_config:", "  backend: NIXL"]
        if server.role == "prefill":
            lines.append("disable_overlap_scheduler: true")
    return lines


_COMMANDS: Mapping[str, Callable[[Server], list[str]]] = MappingProxyType(
    {"vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt_llm}
)
_NODES = MappingProxyType(
    {
        "vllm": "one command a node with --data-parallel-size-local, --data-parallel-address and "
        "--headless, or a Ray cluster",
        "sglang": "one command a node with --nnodes, --node-rank and --dist-init-addr",
        "tensorrt-llm": "started by mpirun or srun with trtllm-llmapi-launch",
    }
)
"""What several nodes need besides."""
_PROXY = MappingProxyType(
    {
        "vllm": "and a proxy that sends each request to a prefill server, then to a decode server",
        "sglang": "and the router: python -m sglang_router.launch_router --pd-disaggregation",
        "tensorrt-llm": "and trtllm-serve disaggregated -c FILE with the servers' addresses",
    }
)
"""What stands in front of two pools."""
