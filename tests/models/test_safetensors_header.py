"""Headers made to do damage: every one is refused, by one error, before any data is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save

from labkit.models.checkpoint import CheckpointError
from labkit.models.safetensors_header import read_header


def write(folder: Path, header: bytes | dict[str, Any], data: int) -> Path:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    file = folder / "model.safetensors"
    file.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(data))
    return file


def tensor(start: Any, stop: Any, shape: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def test_tensors_come_in_file_order(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"format": "pt"},
        "b": tensor(16, 24, [2]),
        "empty": tensor(16, 16, [0, 5]),
        "a": tensor(0, 16, [2, 2]),
        "bytes": tensor(24, 27, [3], "U8"),
    }
    entries = read_header(write(tmp_path, header, 27))
    assert [(entry.name, entry.shape, entry.dtype) for entry in entries] == [
        ("a", (2, 2), "F32"),
        ("empty", (0, 5), "F32"),
        ("b", (2,), "F32"),
        ("bytes", (3,), "U8"),
    ]


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (b"[" * 200_000, "not readable JSON"),
        (b'{"a":' * 200_000, "not readable JSON"),
        (b"[1]", "holds a JSON list"),
        (b"null", "holds a JSON NoneType"),
        (b"\xff\xfe", "not readable JSON"),
        (b"", "not readable JSON"),
        ({"a": 1}, "tensor a needs a dtype"),
        ({"a": []}, "tensor a needs a dtype"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, [2], ["F32"])}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, [2], None)}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, 2)}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, [2.0])}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, [True, 2])}, "tensor a needs a dtype"),
        ({"a": tensor(0, 8, [-2])}, "tensor a needs a dtype"),
        ({"a": tensor(-8, 8, [4])}, "tensor a needs a dtype"),
        ({"a": tensor(0, "8", [2])}, "tensor a needs a dtype"),
        ({"a": tensor(0, None, [2])}, "tensor a needs a dtype"),
        ({"a": tensor(8, 0, [2])}, r"tensor a has data_offsets \[8, 0\]"),
        ({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8]}}, "tensor a has data_offsets"),
        ({"a": tensor(0, 8, [3])}, "has 8 bytes where 12 are needed"),
        ({"a": tensor(0, 8, [2], "F64")}, "has 8 bytes where 16 are needed"),
        ({"a": tensor(4, 8, [1])}, "first tensor a starts at byte 4"),
        ({"a": tensor(0, 4, [1]), "b": tensor(0, 8, [2])}, "tensor b from byte 0 overlaps"),
        ({"a": tensor(0, 8, [2]), "b": tensor(4, 8, [1])}, "tensor b from byte 4 overlaps"),
        ({"a": tensor(0, 4, [1]), "b": tensor(6, 8, [1], "F16")}, "leaves a gap after tensor a"),
        ({"a": tensor(0, 4, [1])}, "longer than its header says"),
        ({"a": tensor(0, 12, [3])}, "truncated"),
        ({}, "longer than its header says"),
        ({"a": tensor(0, 8, [2]), "__metadata__": {"x": 3}}, "damaged safetensors header"),
        ({"a": tensor(0, 8, [2], "Q9")}, "damaged safetensors header"),
        ({"a": tensor(0, 10**30, [10**30], "U8")}, "truncated"),
    ],
)
def test_what_does_not_tile_the_data_is_refused(
    header: bytes | dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    file = write(tmp_path, header, 8)
    with pytest.raises(CheckpointError, match=complaint) as error:
        read_header(file)
    assert "model.safetensors" in str(error.value)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_file_with_changed_bytes_is_refused_or_still_tiles(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = bytearray(save({"a": torch.ones(3, 2), "b": torch.ones(5, dtype=torch.bfloat16)}))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.getbasetemp() / "changed.safetensors"
    file.write_bytes(whole)
    try:
        entries = read_header(file)
    except CheckpointError:
        return
    starts, stops = [entry.start for entry in entries], [entry.stop for entry in entries]
    assert [0, *stops] == [*starts, 3 * 2 * 4 + 5 * 2]
