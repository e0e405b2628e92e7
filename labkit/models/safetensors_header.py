"""The header of a safetensors file, checked before a byte of data is trusted.

The file is 8 bytes of header length, the header (JSON: name -> dtype, shape, data_offsets), data.
The tensors must tile the data: no gap, no overlap, each exactly as long as its shape says.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from safetensors import SafetensorError, safe_open

from labkit.models.json_object import CheckpointError, parse_json

_LENGTH_BYTES = 8  # the header's own length, little-endian
_MAX_HEADER_BYTES = 100_000_000  # the format's limit

_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
}


@dataclass(frozen=True)
class TensorEntry:
    """One tensor in one file; `start` and `stop` count bytes from the beginning of the data."""

    file: Path
    name: str
    dtype: str  # the format's own word
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header(file: Path) -> list[TensorEntry]:
    """The tensors of one safetensors file, in file order. Raises CheckpointError."""
    try:
        size = file.stat().st_size
        raw = _raw_header(file, size)
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error}") from error
    damaged = f"{file} has a damaged safetensors header"
    try:
        header = parse_json(raw, "it")
    except CheckpointError as error:
        raise CheckpointError(f"{damaged}: {error}") from error
    header.pop("__metadata__", None)
    entries = sorted(
        (_entry(file, name, value, damaged) for name, value in header.items()),
        key=lambda entry: (entry.start, entry.stop),
    )
    _check_tiling(entries, damaged)
    _check_size(file, size, _LENGTH_BYTES + len(raw), entries)
    try:  # what else the library that will read the data holds against it
        with safe_open(file, framework="pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{damaged}: {error}") from error
    return entries


def _raw_header(file: Path, size: int) -> bytes:
    with file.open("rb") as stream:
        start = stream.read(_LENGTH_BYTES)
        length = struct.unpack("<Q", start)[0] if len(start) == _LENGTH_BYTES else -1
        if not 0 <= length <= min(size - _LENGTH_BYTES, _MAX_HEADER_BYTES):
            raise CheckpointError(
                f"{file} is no safetensors file, or cut off in its header ({size} bytes)"
            )
        return stream.read(length)


def _entry(file: Path, name: str, value: Any, damaged: str) -> TensorEntry:
    fields = value if isinstance(value, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not (isinstance(dtype, str) and _are_sizes(shape) and _are_sizes(offsets)):
        raise CheckpointError(f"{damaged}: tensor {name} needs a dtype, a shape and data_offsets")
    if len(offsets) != 2 or offsets[0] > offsets[1]:
        raise CheckpointError(f"{damaged}: tensor {name} has data_offsets {offsets}")
    start, stop = offsets
    bits = math.prod(shape) * _BITS.get(dtype, 0)
    if dtype in _BITS and 8 * (stop - start) != bits:
        raise CheckpointError(
            f"{damaged}: tensor {name}, {dtype} {shape}, has {stop - start} bytes where "
            f"{bits // 8} are needed"
        )
    return TensorEntry(file, name, dtype, tuple(shape), start, stop)


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(size) is int and size >= 0 for size in value)


def _check_tiling(entries: list[TensorEntry], damaged: str) -> None:
    if entries and entries[0].start:
        raise CheckpointError(
            f"{damaged}: its first tensor {entries[0].name} starts at byte {entries[0].start}"
        )
    for before, after in pairwise(entries):
        if after.start != before.stop:
            kind = "overlaps" if after.start < before.stop else "leaves a gap after"
            raise CheckpointError(
                f"{damaged}: tensor {after.name} from byte {after.start} {kind} "
                f"tensor {before.name}, which ends at byte {before.stop}"
            )


def _check_size(file: Path, size: int, data: int, entries: list[TensorEntry]) -> None:
    last, end = (entries[-1].name, entries[-1].stop) if entries else ("none", 0)
    if size != data + end:
        kind = "truncated" if size < data + end else "longer than its header says"
        raise CheckpointError(
            f"{file} is {kind}: {size} bytes where its header implies {data + end} "
            f"(last tensor {last}); fetch it again"
        )
