"""Files made on the spot: GGUF and Hugging Face checkpoints of random small models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import quantize
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor

from labkit.models.parameters import parameter_shapes
from labkit.plan.decoder import DecoderSpec

LLAMA_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 300,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


def random_weights(config: dict[str, Any], seed: int = 0) -> dict[str, Tensor]:
    """Every parameter of a config, seeded."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: ("norm" in name) + torch.randn(shape, generator=generator) * 0.1
        for name, shape in parameter_shapes(DecoderSpec.from_hf(config)).items()
    }


@pytest.fixture
def hf_directory(tmp_path: Path) -> Callable[..., Path]:
    """Writes config.json and model.safetensors; keyword arguments override the config."""

    def write(weights: dict[str, Tensor] | None = None, **overrides: Any) -> Path:
        config = LLAMA_CONFIG | overrides
        directory = tmp_path / "model"
        directory.mkdir(exist_ok=True)
        (directory / "config.json").write_text(json.dumps(config))
        save_file(
            random_weights(config) if weights is None else weights,
            directory / "model.safetensors",
        )
        return directory

    return write


def interleave(weight: Tensor, heads: int) -> Tensor:
    """Hugging Face q or k rows in GGUF's order, as the public converter defines it."""
    rest = weight.shape[1:]
    return (
        weight.reshape(heads, 2, weight.shape[0] // heads // 2, *rest)
        .swapaxes(1, 2)
        .reshape(weight.shape)
    )


_GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def gguf_name(name: str) -> str:
    """The Hugging Face name as GGUF has it."""
    stem, kind = name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        _, _, layer, inner = stem.split(".", 3)
        return f"blk.{layer}.{_GGUF_NAMES[inner]}.{kind}"
    return f"{_GGUF_NAMES[stem]}.{kind}"


@pytest.fixture
def made_gguf(tmp_path: Path, byte_level_tokenizer: Tokenizer) -> Callable[..., Path]:
    """Writes a GGUF file from Hugging Face weights, matrices quantised as `kind`."""

    def write(
        config: dict[str, Any],
        weights: dict[str, Tensor],
        kind: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32,
        *,
        architecture: str | None = None,
        tokenizer_model: str = "gpt2",
        pre_tokenizer: str = "smollm",
        extra_tensors: dict[str, np.ndarray] | None = None,
        extra_fields: dict[str, str | int | float] | None = None,
    ) -> Path:
        path = tmp_path / "made.gguf"
        arch = architecture or config["model_type"]
        writer = gguf.GGUFWriter(path, arch)
        writer.add_block_count(config["num_hidden_layers"])
        writer.add_context_length(config["max_position_embeddings"])
        writer.add_embedding_length(config["hidden_size"])
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count(config["num_attention_heads"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_key_length(config["head_dim"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_vocab_size(config["vocab_size"])
        writer.add_tokenizer_model(tokenizer_model)
        _add_tokenizer(writer, byte_level_tokenizer, config, pre_tokenizer)
        for key, value in (extra_fields or {}).items():
            add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}
            add[type(value)](key, value)
        for name, weight in weights.items():
            if arch == "llama" and ("q_proj" in name or "k_proj" in name):
                heads = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
                weight = interleave(weight, config[heads])
            array = weight.numpy()
            if array.ndim == 1:
                writer.add_tensor(gguf_name(name), array)
            else:
                writer.add_tensor(gguf_name(name), quantize(array, kind), raw_dtype=kind)
        for name, array in (extra_tensors or {}).items():
            writer.add_tensor(name, array)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    return write


def _add_tokenizer(
    writer: gguf.GGUFWriter, tokenizer: Tokenizer, config: dict[str, Any], pre_tokenizer: str
) -> None:
    model = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    tokens += [f"<unused{i}>" for i in range(config["vocab_size"] - len(tokens))]
    special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}
    writer.add_tokenizer_pre(pre_tokenizer)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])


@pytest.fixture(scope="session")
def byte_level_tokenizer() -> Tokenizer:
    """A byte-level BPE of 290 tokens, trained on one sentence."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the cat and the hat sat on the mat in the night"], trainer)
    return tokenizer
