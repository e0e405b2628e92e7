"""One GGUF file as a checkpoint under Hugging Face names.

The file stays memory-mapped; only the rows and blocks asked for are dequantised. Llama files hold
q and k with each head's rows interleaved (rotary pairs side by side): `read` gives them back in
Hugging Face order, where a pair lies half a head apart. Forgetting this yields fluent nonsense.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, ReaderTensor
from gguf.quants import dequantize
from torch import Tensor

from labkit.models.chat import ChatML
from labkit.models.checkpoint import Checkpoint, CheckpointError, Index, bounds
from labkit.models.gguf_metadata import GGUFMetadata
from labkit.models.gguf_tokenizer import tokenizer_json
from labkit.models.tokenizer import Tokenizer
from labkit.plan.decoder import DecoderSpec

_NATIVE = {
    GGMLQuantizationType.F64: torch.float64,
    GGMLQuantizationType.F32: torch.float32,
    GGMLQuantizationType.F16: torch.float16,
}

_TOP_LEVEL = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER_NAME = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_INTERLEAVED = ("self_attn.q_proj", "self_attn.k_proj")


class GGUFCheckpoint(Checkpoint):
    """Quantised tensors read as float32, F16 and F32 as they are."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self._reader = GGUFReader(self.path)
        except (ValueError, IndexError, KeyError, OverflowError) as error:
            raise CheckpointError(
                f"{self.path} is no GGUF file, or a truncated one: {error}"
            ) from error
        self.metadata = GGUFMetadata(self._reader, self.path)
        self._check_data_is_whole()
        self._tensors = {hugging_face_name(tensor.name): tensor for tensor in self._reader.tensors}
        self.config = self.metadata.hf_config(
            tied="lm_head.weight" not in self._tensors,
            attention_bias="model.layers.0.self_attn.q_proj.bias" in self._tensors,
        )
        self.spec = DecoderSpec.from_hf(self.config)
        self.validate()

    def names(self) -> Iterable[str]:
        return self._tensors.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        # GGUF lists the fastest-varying dim first.
        return tuple(int(size) for size in reversed(self._tensor(name).shape))

    def dtype(self, name: str) -> torch.dtype | str:
        kind = self._tensor(name).tensor_type
        if kind in _NATIVE:
            return _NATIVE[kind]
        return torch.float32 if GGML_QUANT_SIZES[kind][0] > 1 or _is_bf16(kind) else kind.name

    def file(self, name: str) -> Path:
        return self.path

    def quantisation(self, name: str) -> str:
        """How one tensor is stored, in GGUF's words: Q4_1, Q8_0, F32, ..."""
        return self._tensor(name).tensor_type.name

    def _read(self, name: str, *index: Index) -> Tensor:
        tensor = self._tensor(name)
        parts = bounds(name, self.shape(name), index)
        rows = self._file_rows(name, range(*parts[0]))
        if len(parts) == 1:
            return _to_torch(tensor, _decode(tensor, tensor.data[None, :], *parts[0])[0])
        return _to_torch(tensor, _decode(tensor, tensor.data[rows], *parts[1]))

    def load_tokenizer(self) -> Tokenizer:
        return Tokenizer.from_json(self.tokenizer_json)

    def chat_format(self) -> ChatML | None:
        return ChatML.from_template(self.metadata.get("tokenizer.chat_template"))

    @cached_property
    def tokenizer_json(self) -> str:
        """The embedded tokenizer as the text of a `tokenizer.json`."""
        return tokenizer_json(self.metadata)

    def _tensor(self, name: str) -> ReaderTensor:
        if name not in self._tensors:
            raise CheckpointError(f"{self.path} holds no tensor {name}")
        return self._tensors[name]

    def _check_data_is_whole(self) -> None:
        size = self.path.stat().st_size
        for tensor in self._reader.tensors:
            end = int(tensor.data_offset + tensor.n_bytes)
            if end > size:
                raise CheckpointError(
                    f"{self.path} is truncated: tensor {tensor.name} ends at byte {end}, "
                    f"the file at {size}"
                )

    def _file_rows(self, name: str, rows: range) -> slice | np.ndarray:
        """Where the Hugging Face rows `rows` lie in the file."""
        if self.metadata.architecture != "llama" or not any(part in name for part in _INTERLEAVED):
            return slice(rows.start, rows.stop)
        return interleaved_rows(np.arange(rows.start, rows.stop), self.spec.head_dim)


def interleaved_rows(rows: np.ndarray, head_dim: int) -> np.ndarray:
    """File row of each Hugging Face row of a q or k projection.

    Hugging Face keeps the rotary pair `i` of a head in rows `i` and `i + head_dim / 2`,
    the file in rows `2 i` and `2 i + 1`.
    """
    head, within = np.divmod(rows, head_dim)
    half, pair = np.divmod(within, head_dim // 2)
    return head * head_dim + 2 * pair + half


def hugging_face_name(name: str) -> str:
    """`blk.3.attn_q.weight` -> `model.layers.3.self_attn.q_proj.weight`; unknown names stay."""
    match = _LAYER_NAME.fullmatch(name)
    if match and match[2] in _IN_LAYER:
        return f"model.layers.{match[1]}.{_IN_LAYER[match[2]]}.{match[3]}"
    stem, _, kind = name.rpartition(".")
    return f"{_TOP_LEVEL[stem]}.{kind}" if stem in _TOP_LEVEL else name


def _decode(tensor: ReaderTensor, rows: np.ndarray, start: int, stop: int) -> np.ndarray:
    """Columns `start` to `stop` of some rows; quantised ones by the whole blocks around them."""
    kind = tensor.tensor_type
    if kind in _NATIVE:
        return rows[:, start:stop]
    block, block_bytes = GGML_QUANT_SIZES[kind]
    first, last = start // block, -(-stop // block)
    packed = np.ascontiguousarray(rows[:, first * block_bytes : last * block_bytes])
    if not packed.size:  # which `dequantize` does not take
        return np.empty((len(rows), stop - start), np.float32)
    values = dequantize(packed, kind)
    return values[:, start - first * block : stop - first * block]


def _to_torch(tensor: ReaderTensor, values: np.ndarray) -> Tensor:
    dtype = _NATIVE.get(tensor.tensor_type, torch.float32)
    return torch.from_numpy(np.array(values, copy=True)).to(dtype)


def _is_bf16(kind: GGMLQuantizationType) -> bool:
    return kind is GGMLQuantizationType.BF16
