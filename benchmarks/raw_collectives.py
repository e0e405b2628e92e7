"""Recorded collectives of aiconfigurator-core: read from its wheel, or from a csv of it.

systems/data/SYSTEM/comm/LIBRARY/VERSION/*_perf.parquet     in the wheel
sys,impl,ver,op_name,dtype,num_gpus,bytes,us                in the csv
"""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.plan.measured_points import Point

RELEASE = "aiconfigurator-core==0.12.0"
SLUGS = {
    "NCCL": "nccl",
    "TRTLLM": "trtllm",
    "vLLM_custom_graph": "vllm_graph",
    "vLLM_custom_eager": "vllm_eager",
    "SGLang_CustomAllReduce_graph": "sglang_graph",
    "SGLang_CustomAllReduce_eager": "sglang_eager",
}
"""The csv's names -> those of `labkit.plan.collective_presets`."""
SYSTEMS = ("a100_sxm", "h100_sxm", "l40s")
DTYPES = ("half", "bfloat16")
"""What is fitted: NCCL also has int8, which moves the same bytes."""


@dataclass(frozen=True)
class Series:
    """Points that one fit may mix: same system, implementation, version and collective."""

    system: str
    implementation: str
    version: str
    op: str
    dtype: str
    points: tuple[Point, ...]


def fetch(folder: Path) -> Path:
    """Download the wheel (82 MB) into `folder`; its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", RELEASE, "-d", str(folder)]
    subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("aiconfigurator_core-*.whl"))


def read(path: Path) -> list[Series]:
    """Every series of a wheel, a csv or a csv.gz, in a fixed order.

    Raises ValueError for another kind of file, or for a wheel where pyarrow is not installed.
    """
    if path.suffix == ".whl":
        return _together(_wheel_rows(path))
    if path.name.endswith((".csv", ".csv.gz")):
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", newline="", encoding="utf-8") as file:
            return _together(list(csv.DictReader(file)))
    raise ValueError(f"{path.name} is neither .whl, .csv nor .csv.gz")


def _together(rows: Iterable[dict[str, str]]) -> list[Series]:
    found: dict[tuple[str, str, str, str, str], list[Point]] = {}
    for row in rows:
        if row["dtype"] not in DTYPES or int(row["num_gpus"]) < 2:
            continue
        library, _, number = row["ver"].partition("/")
        own = row["impl"].lower().startswith(library)
        version = number if own else f"{library}-{number}"
        key = (row["sys"], SLUGS[row["impl"]], version, row["op_name"], row["dtype"])
        seconds = round(float(row["us"]), 3) * 1e-6
        found.setdefault(key, []).append(Point(int(row["num_gpus"]), int(row["bytes"]), seconds))
    return [
        Series(*key, tuple(sorted(points, key=lambda p: (p.ranks, p.payload_bytes))))
        for key, points in sorted(found.items())
    ]


def _wheel_rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ValueError(
            "a wheel holds parquet files, and pyarrow is not installed; pip install pyarrow"
        ) from error
    with zipfile.ZipFile(path) as wheel:
        for name in sorted(wheel.namelist()):
            parts = name.split("/")
            if len(parts) != 8 or parts[3] not in SYSTEMS or parts[4] != "comm":
                continue
            if parts[7] not in ("nccl_perf.parquet", "custom_allreduce_perf.parquet"):
                continue
            for row in parquet.read_table(io.BytesIO(wheel.read(name))).to_pylist():
                yield _csv_row(parts[3], f"{parts[5]}/{parts[6]}", row)


def _csv_row(system: str, folder: str, row: dict[str, Any]) -> dict[str, str]:
    """A row of the wheel, which counts elements of 2 bytes and milliseconds, as the csv has it."""
    dtype = row.get("nccl_dtype") or row.get("allreduce_dtype")
    return {
        "sys": system,
        "impl": row["kernel_source"],
        "ver": folder,
        "op_name": row["op_name"],
        "dtype": str(dtype),
        "num_gpus": str(row["num_gpus"]),
        "bytes": str(2 * int(row["message_size"])),
        "us": str(1e3 * float(row["latency"])),
    }
