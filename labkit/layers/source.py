"""Where a layer reads its weights from: any object that can hand out part of a named tensor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import torch
from torch import Tensor

Index = range | slice | None


class WeightSource(Protocol):
    """Named tensors, of which any rectangular part can be read without reading the rest."""

    def read(self, name: str, *index: Index) -> Tensor:
        """The part of tensor `name` that `index` selects, one range for each leading dim.

        `None`, or a dim without an index, takes all of it. The dtype is the file's.
        """
        ...

    def shape(self, name: str) -> tuple[int, ...]: ...

    def __contains__(self, name: object) -> bool: ...

    def names(self) -> Iterable[str]: ...


class DictSource:
    """A `WeightSource` over tensors already in memory."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = dict(tensors)

    def read(self, name: str, *index: Index) -> Tensor:
        part = self._tensors[name][tuple(map(_as_slice, index))]
        return part.clone(memory_format=torch.contiguous_format)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def names(self) -> Iterable[str]:
        return self._tensors.keys()


def read_part(
    source: WeightSource,
    name: str,
    shape: tuple[int, ...],
    *index: Index,
    dtype: torch.dtype,
    device: torch.device,
) -> Tensor:
    """Read part of `name`, which as a whole must have `shape`; return it as `dtype` on `device`.

    Raises:
        KeyError: the source has no tensor of that name.
        ValueError: the whole tensor has another shape than the layer was built for.
    """
    if name not in source:
        raise KeyError(f"no tensor {name} among the weights")
    found = tuple(source.shape(name))
    if found != shape:
        raise ValueError(f"{name} has shape {list(found)}; this layer needs {list(shape)}")
    return source.read(name, *index).to(device=device, dtype=dtype).contiguous()


def _as_slice(index: Index) -> slice:
    if index is None:
        return slice(None)
    return slice(index.start, index.stop, index.step)
