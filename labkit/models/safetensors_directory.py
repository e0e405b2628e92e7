"""A Hugging Face model directory: config.json, safetensors (one file or shards), tokenizer.json."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from labkit.models.chat import ChatML
from labkit.models.checkpoint import Checkpoint, CheckpointError, Index, bounds
from labkit.models.json_object import read_json
from labkit.models.safetensors_header import TensorEntry, read_header
from labkit.models.tokenizer import Tokenizer
from labkit.plan.config_fields import ConfigFields, UnsupportedModelError
from labkit.plan.decoder import DecoderSpec

SINGLE_FILE = "model.safetensors"
SHARD_INDEX = "model.safetensors.index.json"

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


class SafetensorsDirectory(Checkpoint):
    """Opened by reading the headers alone; `read` then copies only the part asked for."""

    def __init__(self, directory: str | Path) -> None:
        self.path = Path(directory)
        config = self.path / "config.json"
        if not config.is_file():
            raise CheckpointError(f"{self.path} holds no config.json; is it a model directory?")
        self.spec = _with_generation_config(DecoderSpec.from_hf(read_json(config)), self.path)
        self._entries = _tensors(_weight_files(self.path))
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

    def _read(self, name: str, *index: Index) -> Tensor:
        part = tuple(slice(*pair) for pair in bounds(name, self.shape(name), index))
        # Opened anew each time: pages of a mapped file count as this process's memory while the
        # mapping lives, and a rank is to hold its own shard and no more.
        try:
            with safe_open(self.file(name), framework="pt") as file:
                return file.get_slice(name)[part].clone()
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{self.file(name)}: tensor {name} cannot be read any more: {error}"
            ) from error

    def load_tokenizer(self) -> Tokenizer:
        return Tokenizer.from_directory(self.path)

    def chat_format(self) -> ChatML | None:
        return ChatML.from_directory(self.path)

    def _entry(self, name: str) -> TensorEntry:
        if name not in self._entries:
            raise CheckpointError(f"{self.path} holds no tensor {name}")
        return self._entries[name]


def _with_generation_config(spec: DecoderSpec, directory: Path) -> DecoderSpec:
    """Chat models often name further ending tokens in generation_config.json alone."""
    file = directory / "generation_config.json"
    if not file.is_file():
        return spec
    try:
        more = ConfigFields(read_json(file)).token_ids("eos_token_id", spec.vocab_size)
    except UnsupportedModelError as error:
        raise CheckpointError(f"{file}: {error}") from error
    return replace(spec, eos_token_ids=tuple(dict.fromkeys([*spec.eos_token_ids, *more])))


def _tensors(files: Iterable[Path]) -> dict[str, TensorEntry]:
    tensors: dict[str, TensorEntry] = {}
    for file in files:
        for entry in read_header(file):
            other = tensors.setdefault(entry.name, entry)
            if other is not entry:
                raise CheckpointError(
                    f"tensor {entry.name} is both in {other.file.name} and in {file.name}"
                )
    return tensors


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


def _check_shard_index(directory: Path, entries: dict[str, TensorEntry]) -> None:
    index = directory / SHARD_INDEX
    if not index.is_file():
        return
    for name, file in _weight_map(index).items():
        if name not in entries or entries[name].file.name != file:
            raise CheckpointError(f"{index} puts tensor {name} in {file}, which does not hold it")
