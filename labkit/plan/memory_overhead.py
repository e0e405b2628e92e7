"""What a rank needs besides weights and cache: activations at their peak, and the runtime.

Both are terms of their own so that a reader sees and replaces them (`EngineOptions`).

Activations: an engine measures them with one step of `max_num_batched_tokens` tokens, and most
live in the MLP: the outputs of gate and up, their product, and three hidden states, or with
experts those of the `top_k` experts of each token; or else the logits of `max_num_seqs` sequences
are more. Case D2 has two such steps of Llama-3.1-8B in its log, 20,000 and 29,000 tokens, which
this formula gives within 1 %.

Runtime: the CUDA context, the communication buffers once ranks talk, and for quantised weights
what repacking them after loading leaves taken. Assumed but for the context: the logs of the cases
leave 0.35 GiB besides activations for an 8B model in bfloat16 (D2), 2.6 GiB for a 70B in INT8 on
one GPU (D10), and from 1 to 7 GiB a rank for a 235B in FP8 on four, by the engine (D5, whose
settings are not printed). So a plan is good to some GiB a rank: give the bytes you measured.
"""

from __future__ import annotations

from labkit.plan.layout import Layout
from labkit.plan.model import LayerSpec, ModelSpec
from labkit.plan.weights import Split

CONTEXT_BYTES = 0.35 * 2**30
"""Of one process on a GPU: "non-torch" memory in the log of case D2 (captured)."""
COMMUNICATION_BYTES = 1.0 * 2**30
"""More, once ranks talk: NCCL's buffers and those of custom all-reduces (assumed)."""
REPACKING_SHARE = 0.035
"""Of quantised weights: what stays taken besides them (assumed, so that case D10 comes out)."""
EXPERT_CHUNK = 32_768
"""Tokens that a fused kernel for experts takes at once (vLLM's default, assumed for all)."""
_HIDDEN_STATES = 3


def activation_bytes(model: ModelSpec, layout: Layout, tokens: int, sequences: int) -> float:
    """The peak on a rank for a step of `tokens` tokens that samples from `sequences` of them."""
    element = 4 if model.dtype == "float32" else 2
    widest = max(_elements(layer, model, layout, tokens) for layer, _ in model.layer_kinds)
    logits = sequences * model.vocab_size
    return element * max(widest, logits)


def runtime_bytes(model: ModelSpec, weight_bytes: float, layout: Layout) -> float:
    """Context, communication and what repacking leaves behind, on a rank with these weights."""
    talks = COMMUNICATION_BYTES if layout.replica_size > 1 else 0.0
    repacked = REPACKING_SHARE * weight_bytes if model.quantization else 0.0
    return CONTEXT_BYTES + talks + repacked


def _elements(layer: LayerSpec, model: ModelSpec, layout: Layout, tokens: int) -> float:
    """Of the hidden states and the outputs inside the MLP, or inside the rank's experts.

    Copies of attention bring their tokens together for the experts, whose ranks share the rows.
    """
    dense = sum(
        matrix.out_features if matrix.split is Split.COLUMN else matrix.in_features
        for matrix in layer.matrices
        if matrix.part in ("MLP", "shared experts") and matrix.split is not Split.WHOLE
    )
    states, inside = _HIDDEN_STATES * model.hidden_size * tokens, tokens * dense / layout.tp
    if layer.experts is None:
        return states + inside
    gathered = tokens * layout.dp
    rows = min(gathered, EXPERT_CHUNK) * layer.experts.top_k / layout.ep
    width = 3 * layer.experts.intermediate_size / layout.expert_tp + model.hidden_size
    others = gathered - tokens
    return states + others * model.hidden_size + max(inside, rows * width)
