"""A Hugging Face model directory: config.json, safetensors (one file or shards), tokenizer.json."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from labkit.models.chat import ChatML
from labkit.models.checkpoint import Checkpoint, CheckpointError, Index, bounds
from labkit.models.tokenizer import Tokenizer
from labkit.plan.model import ModelSpec

SINGLE_FILE = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}
_LENGTH_BYTES = 8  # the header's own length, little-endian
_MAX_HEADER_BYTES = 100_000_000  # the format's limit


@dataclass(frozen=True)
class _Entry:
    file: Path
    shape: tuple[int, ...]
    dtype: str


class SafetensorsDirectory(Checkpoint):
    """Opened by reading the headers alone; `read` then copies only the part asked for."""

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        config = self.path / "config.json"
        if not config.is_file():
            raise CheckpointError(f"{self.path} holds no config.json; is it a model directory?")
        self.spec = _with_generation_config(ModelSpec.from_hf(read_json(config)), self.path)
        self._entries = {
            name: entry for file in _weight_files(self.path) for name, entry in _header(file)
        }
        _check_shard_index(self.path, self._entries)
        self.validate()

    def names(self) -> Iterable[str]:
        return self._entries.keys()

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def shape(self, name: str) -> tuple[int, ...]:
        return self._entry(name).shape

    def dtype(self, name: str) -> torch.dtype | str:
        word = self._entry(name).dtype
        return _DTYPES.get(word, word)

    def file(self, name: str) -> Path:
        return self._entry(name).file

    def read(self, name: str, *index: Index) -> Tensor:
        part = tuple(slice(*pair) for pair in bounds(name, self.shape(name), index))
        # Opened anew each time: pages of a mapped file count as this process's memory while the
        # mapping lives, and a rank is to hold its own shard and no more.
        with safe_open(self.file(name), framework="pt") as file:
            return file.get_slice(name)[part].clone()

    def load_tokenizer(self) -> Tokenizer:
        return Tokenizer.from_directory(self.path)

    def chat_format(self) -> ChatML | None:
        return ChatML.from_directory(self.path)

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise CheckpointError(f"{self.path} holds no tensor {name}")
        return self._entries[name]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; CheckpointError if it is damaged."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is not readable JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a JSON {type(value).__name__}, not an object")
    return value


def _with_generation_config(spec: ModelSpec, directory: Path) -> ModelSpec:
    """Chat models often name further ending tokens in generation_config.json alone."""
    file = directory / "generation_config.json"
    more = read_json(file).get("eos_token_id") if file.is_file() else None
    if more is None:
        return spec
    ids = [more] if isinstance(more, int) else list(more)
    return replace(spec, eos_token_ids=tuple(dict.fromkeys([*spec.eos_token_ids, *ids])))


def _weight_files(directory: Path) -> list[Path]:
    index = directory / SHARD_INDEX
    if index.is_file():
        files = sorted({directory / str(name) for name in _weight_map(index).values()})
        for file in files:
            if file.parent != directory:
                raise CheckpointError(f"{index} points outside its directory, at {file}")
            if not file.is_file():
                raise CheckpointError(f"{file.name}, a shard named in {index}, is missing")
        return files
    single = directory / SINGLE_FILE
    if single.is_file():
        return [single]
    pickles = sorted(
        file.name
        for pattern in ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
        for file in directory.glob(pattern)
    )
    if pickles:
        raise CheckpointError(
            f"{directory} holds {pickles[0]} but no {SINGLE_FILE}; pickled weights can run code "
            "when opened and are never read here: convert them to safetensors"
        )
    raise CheckpointError(f"{directory} holds neither {SINGLE_FILE} nor {SHARD_INDEX}")


def _weight_map(index: Path) -> dict[str, str]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index} has no weight_map from tensor to shard")
    return weight_map


def _check_shard_index(directory: Path, entries: dict[str, _Entry]) -> None:
    index = directory / SHARD_INDEX
    if not index.is_file():
        return
    for name, file in _weight_map(index).items():
        if name not in entries or entries[name].file.name != file:
            raise CheckpointError(f"{index} puts tensor {name} in {file}, which does not hold it")


def _header(file: Path) -> Iterable[tuple[str, _Entry]]:
    """The tensors of one safetensors file; its size must be exactly what the header implies."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(_LENGTH_BYTES)
        length = struct.unpack("<Q", start)[0] if len(start) == _LENGTH_BYTES else -1
        if not 0 <= length <= min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
            raise CheckpointError(
                f"{file} is no safetensors file, or cut off in its header ({size} bytes)"
            )
        raw = stream.read(length)
    try:
        header = json.loads(raw)
        header.pop("__metadata__", None)
        entries = [
            (name, _Entry(file, tuple(value["shape"]), value["dtype"]), value["data_offsets"][1])
            for name, value in header.items()
        ]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{file} has a damaged safetensors header: {error}") from error
    last, end = max(
        ((name, end) for name, _, end in entries), key=lambda pair: pair[1], default=("", 0)
    )
    expected = _LENGTH_BYTES + length + end
    if size != expected:
        kind = "truncated" if size < expected else "longer than its header says"
        raise CheckpointError(
            f"{file} is {kind}: {size} bytes where its header implies {expected} "
            f"(last tensor {last}); fetch it again"
        )
    return [(name, entry) for name, entry, _ in entries]
