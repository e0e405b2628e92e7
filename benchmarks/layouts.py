"""Which layout of a weight gives the fastest `x @ W.T` here: the figures behind layers/weight.py.

    python benchmarks/layouts.py            # a few minutes; writes results/layouts.json
    python benchmarks/layouts.py --quick    # one shape, writes nothing

Shapes are SmolLM2-135M's, whole and cut for three ranks. Every product takes the next of many
distinct weights, so that weights come from memory as they do while decoding; a single weight would
sit in the caches. Candidates take turns; figures are medians of several passes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from torch import Tensor
from torch.nn import functional as F

from labkit.experiments.provenance import Provenance

RESULT = Path(__file__).parent / "results" / "layouts.json"
WEIGHTS_BYTES = 140_000_000
"""Distinct weights per candidate: several times the largest cache of these machines."""

SHAPES = {
    "qkv": (960, 576),
    "o": (576, 576),
    "gate_up": (3072, 576),
    "down": (576, 1536),
    "head": (49152, 576),
    "gate_up /3": (1024, 576),
    "down /3": (576, 512),
    "head /3": (16384, 576),
}
ROWS = (1, 8, 32, 128)
DTYPES = (torch.float32, torch.bfloat16)


@dataclass(frozen=True)
class Case:
    """One layout at one shape, row count, dtype and thread count."""

    layout: str
    shape: str
    rows: int
    dtype: str
    threads: int
    seconds: float
    gigabytes_per_second: float
    """Weight bytes over seconds, GB = 1e9."""
    speedup: float
    """Against `F.linear` in the same passes."""


@dataclass(frozen=True)
class Layout:
    """How a weight `[O, I]` is stored, and the product that reads it."""

    name: str
    pack: Callable[[Tensor, int], tuple[Tensor, ...]]
    """Of a weight and the row count; MKL's product wants the original beside its own copy."""
    product: Callable[..., Tensor]
    rows: tuple[int, ...] = ROWS
    dtypes: tuple[torch.dtype, ...] = DTYPES


def layouts() -> list[Layout]:
    """All candidates; the first is what the others are compared with."""
    onednn, mkl = torch.ops.mkldnn, torch.ops.mkl

    def bag(x: Tensor, weight_IO: Tensor) -> Tensor:
        every_row = torch.arange(len(weight_IO))
        start = torch.zeros(1, dtype=torch.long)
        return F.embedding_bag(every_row, weight_IO, start, mode="sum", per_sample_weights=x[0])

    return [
        Layout("row-major", lambda w, rows: (w,), F.linear),
        Layout("[in, out]", lambda w, rows: (w.t().contiguous(),), torch.matmul),
        Layout(
            "oneDNN-blocked",
            lambda w, rows: (onednn._reorder_linear_weight(w),),
            lambda x, w: onednn._linear_pointwise.default(x, w, None, "none", [], ""),
        ),
        Layout(
            "oneDNN-blocked for its row count",
            lambda w, rows: (onednn._reorder_linear_weight(w, rows),),
            lambda x, w: onednn._linear_pointwise.default(x, w, None, "none", [], ""),
        ),
        Layout(
            "MKL-packed",
            lambda w, rows: (mkl._mkl_reorder_linear_weight(w, rows), w),
            lambda x, packed, w: mkl._mkl_linear(x, packed, w, None, len(x)),
            dtypes=(torch.float32,),
        ),
        Layout("embedding_bag", lambda w, rows: (w.t().contiguous(),), bag, rows=(1,)),
    ]


def measure(shape: str, dtype: torch.dtype, threads: int, passes: int) -> Iterator[Case]:
    """Every layout at every row count, for one shape."""
    torch.set_num_threads(threads)
    size = SHAPES[shape]
    num_bytes = size[0] * size[1] * dtype.itemsize
    weights = [torch.randn(size).to(dtype) for _ in range(max(1, WEIGHTS_BYTES // num_bytes))]
    for rows in ROWS:
        x = torch.randn(rows, size[1]).to(dtype)
        contestants = [
            (layout, [layout.pack(weight, rows) for weight in weights])
            for layout in layouts()
            if rows in layout.rows and dtype in layout.dtypes
        ]
        seconds: dict[str, list[float]] = {layout.name: [] for layout, _ in contestants}
        for layout, packed in contestants:
            _check(layout, x, weights[0], packed[0])
        for _ in range(passes):
            for layout, packed in contestants:
                start = time.perf_counter()
                for weight in packed:
                    layout.product(x, *weight)
                seconds[layout.name].append((time.perf_counter() - start) / len(packed))
        baseline = seconds[contestants[0][0].name]
        for name, times in seconds.items():
            ratios = [slow / fast for slow, fast in zip(baseline, times, strict=True)]
            yield Case(
                layout=name,
                shape=shape,
                rows=rows,
                dtype=str(dtype).removeprefix("torch."),
                threads=threads,
                seconds=median(times),
                gigabytes_per_second=num_bytes / median(times) / 1e9,
                speedup=median(ratios),
            )


def _check(layout: Layout, x: Tensor, weight: Tensor, packed: tuple[Tensor, ...]) -> None:
    """A layout that multiplies wrongly must not win."""
    expected = F.linear(x.double(), weight.double())
    error = (layout.product(x, *packed).double() - expected).abs().max()
    if error > 0.05 * expected.abs().max():
        raise RuntimeError(f"{layout.name} is off by {error:.3g} for {list(weight.shape)}")


def main() -> int:
    """Measure and print, and store a full result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one shape, not stored")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    provenance = Provenance.here(threads="as in each case", packages=("torch",))
    shapes, passes = (("qkv",), 3) if options.quick else (tuple(SHAPES), 5)
    cases: list[Case] = []
    for threads in (1, 2):
        for dtype in DTYPES:
            for shape in shapes:
                for case in measure(shape, dtype, threads, passes):
                    cases.append(case)
                    print(
                        f"{case.dtype:9} {case.threads} thread(s) {case.shape:11} "
                        f"{case.rows:4} rows  {case.layout:33} {case.seconds * 1e6:9.1f} us "
                        f"{case.gigabytes_per_second:6.1f} GB/s {case.speedup:6.2f}x",
                        flush=True,
                    )
    if not options.quick:
        result = {"provenance": provenance.as_dict(), "cases": [asdict(case) for case in cases]}
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
