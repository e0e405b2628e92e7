"""A `tokenizer.json` rebuilt from GGUF metadata (byte-level BPE families).

GGUF stores tokens, merges and the *name* of the splitting rule; the rules themselves are the ones
these families publish in their own tokenizer.json.
"""

from __future__ import annotations

import json
from typing import Any

from labkit.models.gguf_metadata import GGUFMetadata
from labkit.plan.decoder import UnsupportedModelError

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4

_QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3_WORDS = _QWEN2_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": use_regex,
    }


def _split(pattern: str) -> dict[str, Any]:
    return {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }


def _sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(steps)}


PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "gpt-2": _byte_level(True),
    "smollm": _sequence({"type": "Digits", "individual_digits": True}, _byte_level(True)),
    "qwen2": _sequence(_split(_QWEN2_WORDS), _byte_level(False)),
    "llama-bpe": _sequence(_split(_LLAMA3_WORDS), _byte_level(False)),
}


def tokenizer_json(metadata: GGUFMetadata) -> str:
    """The text of a `tokenizer.json` that encodes as the GGUF's own tokenizer does.

    Raises UnsupportedModelError for another tokenizer model or splitting rule, by its name.
    """
    model = metadata.require("tokenizer.ggml.model")
    if model != "gpt2":
        raise UnsupportedModelError(
            "tokenizer.ggml.model", model, "only byte-level BPE (gpt2) can be rebuilt from GGUF"
        )
    rule = metadata.get("tokenizer.ggml.pre", "gpt-2")
    if rule not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise UnsupportedModelError("tokenizer.ggml.pre", rule, f"known here: {known}")
    tokens: list[str] = metadata.require("tokenizer.ggml.tokens")
    kinds: list[int] = metadata.get("tokenizer.ggml.token_type") or [_NORMAL] * len(tokens)
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                _added_token(index, tokens[index], special=kind == _CONTROL)
                for index, kind in enumerate(kinds)
                if kind in (_CONTROL, _USER_DEFINED)
            ],
            "normalizer": {"type": "NFC"} if rule == "qwen2" else None,
            "pre_tokenizer": PRE_TOKENIZERS[rule],
            "post_processor": None,
            "decoder": _byte_level(True),
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": rule == "llama-bpe",
                "vocab": {token: index for index, token in enumerate(tokens)},
                "merges": [
                    merge.split(" ", 1) for merge in metadata.require("tokenizer.ggml.merges")
                ],
            },
        },
        ensure_ascii=False,
    )


def _added_token(index: int, content: str, *, special: bool) -> dict[str, Any]:
    return {
        "id": index,
        "content": content,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
