"""A GGUF file turned, once, into an ordinary Hugging Face directory with float32 weights."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from labkit.models.fetch import PROVENANCE, sha256_of, write_json
from labkit.models.gguf import GGUFCheckpoint

_ARCHITECTURES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}


def convert_gguf(gguf: Path, directory: Path, source: dict[str, Any]) -> None:
    """Write config, weights, tokenizer and provenance into an existing empty `directory`.

    `source` says where the file came from and goes into the provenance as it is.
    Every weight passes through memory: 4 bytes per parameter.
    """
    checkpoint = GGUFCheckpoint(gguf)
    config = {"architectures": [_ARCHITECTURES[checkpoint.spec.model_type]], **checkpoint.config}
    write_json(directory / "config.json", config)
    (directory / "tokenizer.json").write_text(checkpoint.tokenizer_json, encoding="utf-8")
    write_json(directory / "tokenizer_config.json", _tokenizer_config(checkpoint))
    weights = {name: checkpoint.read(name).float().contiguous() for name in checkpoint.names()}
    save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
    (directory / "model.safetensors").chmod(0o644)  # the writer leaves it to its owner alone
    kinds = Counter(checkpoint.quantisation(name) for name in checkpoint.names())
    write_json(
        directory / PROVENANCE,
        {
            **source,
            "gguf_file": gguf.name,
            "gguf_sha256": sha256_of(gguf),
            "tensors_by_quantisation": dict(kinds),
            "dtype": "float32",
            "note": (
                "The weights are the GGUF's quantised ones, dequantised to float32: each holds "
                "the value its 4-bit (or other) code stands for, not the originally trained one."
            ),
        },
    )


def _tokenizer_config(checkpoint: GGUFCheckpoint) -> dict[str, Any]:
    metadata = checkpoint.metadata
    tokens: list[str] = metadata.require("tokenizer.ggml.tokens")
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": checkpoint.spec.max_position_embeddings,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
    }
    for key, name in (
        ("bos_token", "bos"),
        ("eos_token", "eos"),
        ("unk_token", "unknown"),
        ("pad_token", "padding"),
    ):
        token_id = metadata.get(f"tokenizer.ggml.{name}_token_id")
        if token_id is not None:
            config[key] = tokens[token_id]
    template = metadata.get("tokenizer.chat_template")
    if template is not None:
        config["chat_template"] = template
    return config
