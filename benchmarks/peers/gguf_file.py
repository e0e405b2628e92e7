"""Writes a Hugging Face Llama directory as GGUF in float32 or bfloat16, for llama.cpp.

Tensor names and metadata keys follow the GGUF specification (ggml repository, docs/gguf.md).
llama.cpp rotates neighbouring pairs of a head's dims where Hugging Face rotates the two halves, so
rows of q and k change order within each head.
"""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors import safe_open

BLOCK_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def gguf_name(name: str) -> str:
    """`model.layers.3.mlp.up_proj.weight` -> `blk.3.ffn_up.weight`."""
    stem = name.removesuffix(".weight")
    if stem in TOP_NAMES:
        return f"{TOP_NAMES[stem]}.weight"
    layer, _, part = stem.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{BLOCK_NAMES[part]}.weight"


def pair_neighbours(weight_OI: np.ndarray, num_heads: int) -> np.ndarray:
    """Rows of each head from (first half, second half) to (0, half, 1, half + 1, ...)."""
    half = weight_OI.shape[0] // num_heads // 2
    halves = weight_OI.reshape(num_heads, 2, half, *weight_OI.shape[1:])
    return halves.swapaxes(1, 2).reshape(weight_OI.shape)


def write(directory: Path, target: Path, dtype: str) -> None:
    """Write `directory` (config.json, model.safetensors, tokenizer.json) to `target`."""
    config = json.loads((directory / "config.json").read_text())
    writer = gguf.GGUFWriter(target, "llama")
    _write_settings(writer, config, dtype)
    _write_vocabulary(writer, json.loads((directory / "tokenizer.json").read_text()), config)
    heads = {
        "q_proj.weight": config["num_attention_heads"],
        "k_proj.weight": config["num_key_value_heads"],
    }
    with safe_open(directory / "model.safetensors", framework="pt") as tensors:
        for name in tensors.keys():  # noqa: SIM118
            array = tensors.get_tensor(name).float().numpy()
            for ending, count in heads.items():
                if name.endswith(ending):
                    array = pair_neighbours(array, count)
            if array.ndim == 2 and dtype == "bfloat16":
                bits = torch.from_numpy(array.copy()).bfloat16().view(torch.uint8).numpy()
                writer.add_tensor(gguf_name(name), bits, raw_dtype=gguf.GGMLQuantizationType.BF16)
            else:
                writer.add_tensor(gguf_name(name), np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_settings(writer: gguf.GGUFWriter, config: dict, dtype: str) -> None:
    is_bf16 = dtype == "bfloat16"
    kind = gguf.LlamaFileType.MOSTLY_BF16 if is_bf16 else gguf.LlamaFileType.ALL_F32
    writer.add_file_type(kind)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])


def _write_vocabulary(writer: gguf.GGUFWriter, tokenizer: dict, config: dict) -> None:
    """Prompts travel as ids, so only the sizes and the special ids matter to the benchmark."""
    by_id = {index: token for token, index in tokenizer["model"]["vocab"].items()}
    added = {entry["id"]: entry["content"] for entry in tokenizer["added_tokens"]}
    by_id |= added
    tokens = [by_id.get(index, f"<unused {index}>") for index in range(config["vocab_size"])]
    types = [
        gguf.TokenType.CONTROL if index in added else gguf.TokenType.NORMAL
        for index in range(config["vocab_size"])
    ]
    merges = tokenizer["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)
