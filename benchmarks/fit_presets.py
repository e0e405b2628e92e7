"""Make the presets of collectives from the recorded points: `python benchmarks/fit_presets.py RAW`.

RAW is the wheel of aiconfigurator-core 0.12.0 or a csv of its points (see `raw_collectives`);
without it the wheel is downloaded (82 MB). Writes `labkit/plan/collective_figures.py` (fits up to
16 MiB) and `labkit/plan/recorded_points.py` (an excerpt for figures and tests). `--check` writes
nothing and fails where the files would change. Takes about half a minute.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.raw_collectives import RELEASE, Series, fetch, read  # noqa: E402
from labkit.plan.calibration import Fit, calibrate  # noqa: E402

MIB = 2**20
LARGEST = 16 * MIB
"""Payloads that decode and short prefills send; larger ones follow other rules."""
FIGURES = ROOT / "labkit/plan/collective_figures.py"
POINTS = ROOT / "labkit/plan/recorded_points.py"
COLUMNS = (
    "system", "implementation", "version", "op", "dtype", "smallest", "largest", "ranks",
    "family", "launch", "values", "lows", "highs", "error", "kept", "fits", "outliers",
)  # fmt: skip
NCCL_FAMILIES = {
    "all_reduce": "ring",
    "all_gather": "ring_all_gather",
    "reduce_scatter": "ring_reduce_scatter",
    "alltoall": "all_to_all",
}
_EVERY_FOURTH = (2**10, 2**14, 2**18, 2**20, 2**22, 2**24)
EXCERPT: dict[tuple[str, str, str, str], tuple[Sequence[int] | None, Sequence[int]]] = {
    ("h100_sxm", "vllm_graph", "0.19.0", "all_reduce"): (None, (2, 4, 8)),
    ("h100_sxm", "vllm_eager", "0.19.0", "all_reduce"): (
        (2**10, 2**14, 2**16, 2**18, 2**20, 2**22, 2**24),
        (2, 4, 8),
    ),
    ("h100_sxm", "nccl", "2.27.3", "all_reduce"): (
        (2**10, 2**14, 2**18, 2**20, 2**24, 2**26, 2**28),
        (2, 4, 8),
    ),
    ("h100_sxm", "sglang_graph", "0.5.14", "all_reduce"): (
        tuple(2**power for power in range(8, 25)),
        (8,),
    ),
    ("h100_sxm", "trtllm", "1.3.0rc20", "all_reduce"): (_EVERY_FOURTH[::2], (2, 4, 8)),
    ("a100_sxm", "vllm_graph", "0.14.0", "all_reduce"): (_EVERY_FOURTH, (2, 4, 8)),
    ("l40s", "vllm_graph", "0.22.0", "all_reduce"): (_EVERY_FOURTH, (2, 4, 8)),
}
"""Series -> sizes in bytes (None: all) and rank counts of the excerpt."""


def family(series: Series) -> tuple[str, bool]:
    """The model of what the implementation does, and whether its start is fitted apart."""
    if series.implementation == "nccl":
        return NCCL_FAMILIES[series.op], True
    if series.implementation.endswith("_eager"):
        return "launch_bound", False
    return "one_or_two_shot", False


def rows(series: Series) -> Iterator[str]:
    """The fits of one series as lines: all rank counts, then each alone."""
    points = [point for point in series.points if point.payload_bytes <= LARGEST]
    sizes = [int(point.payload_bytes) for point in points]
    name, launch = family(series)
    head = [series.system, series.implementation, series.version, series.op, series.dtype]
    head += [str(min(sizes)), str(max(sizes))]
    yield "|".join([*head, "all", *_cells(calibrate(points, name, launch=launch), launch)])
    for ranks in sorted({point.ranks for point in points}):
        some = [point for point in points if point.ranks == ranks]
        yield "|".join([*head, str(ranks), *_cells(calibrate(some, name), False)])


def _cells(fit: Fit, launch: bool) -> list[str]:
    estimates = fit.parameters.values()
    outliers = [f"{o.point.ranks}:{o.point.payload_bytes}" for o in fit.outliers]
    return [
        fit.name,
        "launch" if launch else "",
        _words(estimate.value for estimate in estimates),
        _words(estimate.low for estimate in estimates),
        _words(estimate.high for estimate in estimates),
        f"{fit.mean_abs_error:.4f}",
        f"{fit.kept_error:.4f}",
        "fits" if fit.fits else "off",
        " ".join(dict.fromkeys(outliers)),
    ]


def _words(values: Iterable[float]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def excerpt(series: Sequence[Series]) -> Iterator[str]:
    """The points of `EXCERPT` as lines: series, ranks, payload bytes, microseconds."""
    for one in series:
        key = (one.system, one.implementation, one.version, one.op)
        sizes, counts = EXCERPT.get(key, ((), ()))
        seen: set[tuple[int, float]] = set()
        for point in one.points:
            place = (point.ranks, point.payload_bytes)
            wanted = point.ranks in counts and (sizes is None or point.payload_bytes in sizes)
            if wanted and place not in seen:
                seen.add(place)
                yield "|".join([*key, *map(str, place), f"{1e6 * point.seconds:.6g}"])


def figures_module(series: Sequence[Series]) -> str:
    """The text of `labkit/plan/collective_figures.py`."""
    return _module(
        "Fitted figures of collectives, for `labkit.plan.collective_presets`.",
        "FIGURES",
        COLUMNS,
        [line for one in series for line in rows(one)],
    )


def points_module(series: Sequence[Series]) -> str:
    """The text of `labkit/plan/recorded_points.py`."""
    columns = ("system", "implementation", "version", "op", "ranks", "bytes", "us")
    lines = list(excerpt(series))
    return _module(
        f"{len(lines)} recorded points, for `labkit.plan.recorded_collectives`.",
        "POINTS",
        columns,
        lines,
    )


def _module(title: str, name: str, columns: Sequence[str], lines: Sequence[str]) -> str:
    return (
        "# ruff: noqa: E501\n"
        f'"""{title}\n\nMade by `benchmarks/fit_presets.py` from {RELEASE} (PyPI, Apache-2.0); '
        'do not edit."""\n\n'
        f'{name} = """\n' + "\n".join(["|".join(columns), *lines]) + '\n"""\n'
    )


def main() -> int:
    """Write both modules, or compare them with what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("raw", nargs="?", type=Path, help="the wheel, .csv or .csv.gz")
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a change")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        series = read(arguments.raw or fetch(Path(folder)))
    changed = 0
    for path, text in ((FIGURES, figures_module(series)), (POINTS, points_module(series))):
        if arguments.check and path.read_text(encoding="utf-8") != text:
            print(f"{path.name} differs from what these points give")
            changed = 1
        elif not arguments.check:
            path.write_text(text, encoding="utf-8")
            print(f"{path.name}: {len(text.splitlines())} lines")
    return changed


if __name__ == "__main__":
    raise SystemExit(main())
