"""A checkpoint on disk: a DecoderSpec and tensors that can be read in part.

`open_checkpoint` picks the format: a Hugging Face directory with safetensors, or one GGUF file.
Opening checks every tensor's shape and dtype against the spec before any weight is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from labkit.models.chat import ChatML
from labkit.models.json_object import CheckpointError
from labkit.models.parameters import is_derived, optional_shapes, parameter_shapes
from labkit.models.tokenizer import Tokenizer
from labkit.plan.decoder import DecoderSpec

Index = range | slice | None

__all__ = ["Checkpoint", "CheckpointError", "Index", "bounds", "open_checkpoint"]

LOADABLE_DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


class Checkpoint(ABC):
    """A `WeightSource` under Hugging Face names, with the spec it was checked against."""

    path: Path
    spec: DecoderSpec

    @abstractmethod
    def names(self) -> Iterable[str]:
        """Every tensor's name."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of one tensor, without reading it."""

    @abstractmethod
    def dtype(self, name: str) -> torch.dtype | str:
        """What `read` returns for this tensor; the file's own word for it if torch has none."""

    @abstractmethod
    def file(self, name: str) -> Path:
        """The file one tensor lies in."""

    @abstractmethod
    def _read(self, name: str, *index: Index) -> Tensor:
        """What `read` returns, whatever values it holds."""

    @abstractmethod
    def load_tokenizer(self) -> Tokenizer:
        """The tokenizer that belongs to these weights."""

    @abstractmethod
    def chat_format(self) -> ChatML | None:
        """The conversation format, where the model has one and it is ChatML."""

    def __contains__(self, name: object) -> bool:
        return name in set(self.names())

    def read(self, name: str, *index: Index) -> Tensor:
        """One tensor, or the part `index` names (one range or slice per leading dim, None = all).

        Only that part is brought into memory. Raises CheckpointError for NaN or infinity in it:
        no trained weight is either, and one would turn every later token into nonsense.
        """
        part = self._read(name, *index)
        if part.numel() and part.is_floating_point() and not _is_finite(part):
            count = int(part.isfinite().logical_not().sum())
            raise CheckpointError(
                f"tensor {name} in {self.file(name)}: {count} of the {part.numel()} values read "
                "are NaN or infinite; these weights are damaged, get them again"
            )
        return part

    def validate(self) -> None:
        """Raise CheckpointError unless the tensors are exactly those the spec asks for."""
        problems = list(self._problems())
        if problems:
            shown = "; ".join(problems[:5])
            more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
            raise CheckpointError(f"{self.path} does not fit its own config: {shown}{more}")

    def _problems(self) -> Iterable[str]:
        num_tensors = len(list(self.names()))
        if self.spec.num_layers > num_tensors:  # before a name for each of their tensors is made
            yield f"{self.spec.num_layers} layers cannot be in {num_tensors} tensors"
            return
        required = parameter_shapes(self.spec)
        allowed = required | optional_shapes(self.spec)
        present = set(self.names())
        for name in required:
            if name not in present:
                yield f"tensor {name} {list(required[name])} is missing"
        for name in self.names():
            where = f"tensor {name} in {self.file(name).name}"
            if name not in allowed:
                if not is_derived(name):
                    yield f"{where} is not part of a {self.spec.model_type} decoder of this config"
            elif self.shape(name) != allowed[name]:
                yield (
                    f"{where} has shape {list(self.shape(name))} where the config asks for "
                    f"{list(allowed[name])}"
                )
            elif self.dtype(name) not in LOADABLE_DTYPES:
                names = ", ".join(str(dtype).removeprefix("torch.") for dtype in LOADABLE_DTYPES)
                yield f"{where} has dtype {self.dtype(name)}; loadable here: {names}"


def _is_finite(tensor: Tensor) -> bool:
    """Both extremes are NaN when any value is. One pass, an eighth or less of a copy's time."""
    low, high = tensor.aminmax()
    return bool(low.isfinite() & high.isfinite())


def bounds(
    name: str, shape: tuple[int, ...], index: tuple[Index, ...]
) -> tuple[tuple[int, int], ...]:
    """`index` as one `(start, stop)` per dim of `shape`, checked to lie inside it."""
    if len(index) > len(shape):
        raise IndexError(f"{name} has {len(shape)} dims; {len(index)} were indexed")
    result = []
    for dim, size in enumerate(shape):
        part = index[dim] if dim < len(index) else None
        if part is None:
            result.append((0, size))
            continue
        if isinstance(part, slice):
            part = range(*part.indices(size))
        if part.step != 1 or part.start < 0 or part.stop > size:
            raise IndexError(f"{name}: {part} is no contiguous part of dim {dim} of size {size}")
        result.append((part.start, max(part.start, part.stop)))
    return tuple(result)


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Open and check a Hugging Face directory or a .gguf file. No weight is read yet.

    Raises CheckpointError for anything missing, truncated, misshapen or pickled, and
    UnsupportedModelError for an architecture this decoder does not implement.
    """
    from labkit.models.gguf import GGUFCheckpoint
    from labkit.models.safetensors_directory import SafetensorsDirectory

    path = Path(path)
    if path.is_dir():
        return SafetensorsDirectory(path)
    if path.suffix == ".gguf" and path.is_file():
        return GGUFCheckpoint(path)
    if not path.exists():
        raise CheckpointError(f"{path} does not exist; give a model directory or a .gguf file")
    raise CheckpointError(
        f"{path} is neither a directory with config.json and safetensors nor a .gguf file; "
        "other formats, pickled ones above all, are not opened"
    )
