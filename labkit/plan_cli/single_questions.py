"""Single questions of `labkit plan`: fit, kv, explain. Each returns JSON values and prints."""

from __future__ import annotations

from collections import Counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labkit.plan.layout_space import layout_title
from labkit.plan.legality import check
from labkit.plan.memory import plan_memory
from labkit.plan.memory_questions import BlockExplanation, explain_blocks, fit
from labkit.plan.model import CacheKind
from labkit.plan.quantity_text import bytes_text, percent
from labkit.plan.rank_weights import stage_shares
from labkit.plan.shard import counted
from labkit.plan.steptime import decode_step, prefill_step
from labkit.plan_cli.answer_json import layout_json, memory_json, step_json
from labkit.plan_cli.arguments import OPTIONS, Request
from labkit.plan_cli.search_report import print_memory, print_step

_NEAR = 0.15
_SHOWN = 5


def answer_fit(request: Request, console: Console) -> tuple[Any, int]:
    """Whether a layout fits. The exit code is 1 where it does not."""
    answer = fit(
        request.model,
        request.device,
        request.layout,
        request.options,
        length=request.arguments.length,
    )
    console.print(
        f"[bold]{layout_title(request.layout)} on {escape(request.device.title)}[/bold]: "
        f"{escape(answer.sentence)}"
    )
    for reason in answer.legality.reasons:
        console.print(f"  fix: {escape(reason.fix)}")
    print_memory(console, answer.plan)
    body = {
        "layout": layout_json(request.layout),
        "device": request.device.name,
        "fits": answer.fits,
        "sentence": answer.sentence,
        "illegal_because": [reason.text for reason in answer.legality.reasons],
        "length": answer.length,
        "concurrency": answer.concurrency,
        "longest_context": answer.longest_context,
        "missing_bytes": answer.missing_bytes,
        "memory": memory_json(answer.plan),
    }
    return body, 0 if answer.fits else 1


def answer_kv(request: Request, console: Console) -> tuple[Any, int]:
    """What the KV cache of a model takes."""
    model, layout, options = request.model, request.layout, request.options
    length = request.get("length", model.max_position_embeddings)
    if length < 1:
        raise ValueError(f"--length is {length}; it must be at least 1 token")
    element = options.cache_element_bytes(model)
    shares = stage_shares(model, layout)
    caches = Counter(layer.cache for layer in model.layers)
    kinds = [
        {
            "kind": cache.kind.value,
            "layers": count,
            "kv_heads": cache.heads,
            "elements_per_token": cache.elements_per_token,
            "window": cache.window,
            "state_bytes_per_sequence": cache.state_elements * cache.state_bytes_per_element,
        }
        for cache, count in caches.items()
    ]
    rank_tokens = [share.bytes_per_token(element) for share in shares]
    body = {
        "layout": layout_json(layout),
        "element_bytes": element,
        "bytes_per_token": model.kv_bytes_per_token(element),
        "length": length,
        "bytes_of_a_request": model.kv_bytes(length, element),
        "rank_bytes_per_token": max(rank_tokens),
        "rank_bytes_of_a_request": max(share.sequence_bytes(length, element) for share in shares),
        "layer_kinds": kinds,
    }
    console.print("KV cache (modelled)")
    table = Table()
    for name in ("of", "a token", f"{length:,} tokens"):
        table.add_column(name, justify="left" if name == "of" else "right")
    table.add_row(
        "the model", *map(bytes_text, (body["bytes_per_token"], body["bytes_of_a_request"]))
    )
    rank = (body["rank_bytes_per_token"], body["rank_bytes_of_a_request"])
    table.add_row(f"a rank at {layout_title(layout)}", *map(bytes_text, rank))
    console.print(table)
    for kind in kinds:
        console.print(f"- {_kind_sentence(kind)}")
    return body, 0


def _kind_sentence(kind: dict[str, Any]) -> str:
    layers, cache = kind["layers"], CacheKind(kind["kind"])
    each = counted(layers, "layer")
    if cache is CacheKind.RECURRENT:
        state = bytes_text(kind["state_bytes_per_sequence"])
        return f"{each}: a state of {state} for each sequence, whatever its length"
    if cache is CacheKind.LATENT:
        return f"{each}: a latent of {kind['elements_per_token']} elements, whole on every TP rank"
    if cache is CacheKind.NONE:
        return f"{each}: read another layer's cache"
    window = "" if kind["window"] is None else f", the last {kind['window']:,} tokens only"
    return f"{each}: keys and values of {kind['kv_heads']} KV heads{window}"


def answer_explain(request: Request, console: Console) -> tuple[Any, int]:
    """Why a layout is illegal or what its step consists of; or which layout printed some blocks."""
    if request.arguments.blocks is not None:
        return _answer_blocks(request, console)
    model, layout = request.model, request.layout
    legality = check(model, layout, lora_rank=request.arguments.lora_rank)
    console.print(f"[bold]{layout_title(layout)} on {escape(request.device.title)}[/bold]")
    console.print("legal" if legality.is_legal else "illegal:")
    for reason in legality.reasons:
        console.print(f"  - {escape(reason.text)}\n    fix: {escape(reason.fix)}")
    for note in legality.notes:
        console.print(f"  note: {escape(note)}")
    body: dict[str, Any] = {
        "layout": layout_json(layout),
        "device": request.device.name,
        "is_legal": legality.is_legal,
        "reasons": [
            {"rule": r.rule, "text": r.text, "fix": r.fix, "padding": r.is_fixable_by_padding}
            for r in legality.reasons
        ],
        "notes": list(legality.notes),
        "legal_tp": list(legality.legal_tp),
        "memory": None,
        "decode": None,
        "prefill": None,
    }
    if not legality.is_legal:
        return body, 1
    plan = plan_memory(model, request.device, layout, request.options)
    prompt, output = request.get("prompt", 1024), request.get("output", 256)
    for name, value in (("--prompt", prompt), ("--output", output)):
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1 token")
    system = request.system(layout.world_size)
    batch = request.get("batch", layout.dp)
    decode = decode_step(model, system, layout, batch, prompt + output / 2, request.options)
    prefill = prefill_step(model, system, layout, prompt, layout.dp, options=request.options)
    if not plan.fits:
        console.print(f"  does not fit: {escape(plan.reason)}")
    print_memory(console, plan)
    sequences, tokens = counted(batch, "sequence"), counted(prompt, "token")
    print_step(console, f"Decode step of {sequences}, each halfway through its answer", decode)
    print_step(console, f"Prefill of {tokens}", prefill)
    body |= {
        "memory": memory_json(plan),
        "decode": step_json(decode),
        "prefill": step_json(prefill),
    }
    return body, 0 if plan.fits else 1


def _answer_blocks(request: Request, console: Console) -> tuple[Any, int]:
    blocks = request.arguments.blocks
    for option in OPTIONS:
        if option.is_layout and getattr(request.arguments, option.name) not in (None, False):
            raise ValueError(
                f"{option.flags[0]} and --blocks exclude each other: --blocks asks which layout "
                "it was"
            )
    found = explain_blocks(request.model, request.device, blocks, request.options)
    if not found:
        raise ValueError(f"no layout of {request.model_name} fits on {request.device.title}")
    near = [one for one in found if abs(one.error) <= _NEAR]
    if near:
        console.print(f"{blocks:,} blocks: {_block_sentence(near[0])}")
    else:
        console.print(
            f"{blocks:,} blocks: nothing comes within {percent(_NEAR)}; the nearest are below. "
            "Check the memory, --gpu-memory-utilization, --block-size and --max-num-batched-tokens"
        )
    console.print("\nLayouts, the nearest first (modelled)")
    table = Table()
    for name in ("layout", "KV dtype", "blocks", "error", "the printed blocks take"):
        table.add_column(name, justify="left" if name in ("layout", "KV dtype") else "right")
    for one in found[:_SHOWN]:
        cells = (f"{one.blocks:,}", _error(one.error), bytes_text(one.pool_bytes))
        table.add_row(layout_title(one.layout), one.kv_cache_dtype, *cells)
    console.print(table)
    body = {
        "device": request.device.name,
        "blocks": blocks,
        "explanations": [
            {
                "layout": layout_json(one.layout),
                "kv_cache_dtype": one.kv_cache_dtype,
                "blocks": one.blocks,
                "relative_error": one.error,
                "pool_bytes": one.pool_bytes,
            }
            for one in found
        ],
    }
    return body, 0 if near else 1


def _error(error: float) -> str:
    return f"{100 * error:+.1f} %" if error < 1 else f"{1 + error:,.1f} times"


def _block_sentence(one: BlockExplanation) -> str:
    dtype = "" if one.kv_cache_dtype == "auto" else f" and an {one.kv_cache_dtype} cache"
    return (
        f"{layout_title(one.layout)}{dtype} explains them, to {percent(abs(one.error))}: "
        f"{one.blocks:,} modelled"
    )
