"""The script that makes the presets: what it reads, and that it gives the committed figures."""

import gzip

import pytest

from benchmarks.fit_presets import family, points_module, rows
from benchmarks.raw_collectives import Series, read
from labkit.plan.calibration import Point
from labkit.plan.collective_figures import FIGURES
from labkit.plan.recorded_collectives import GRAPH, recorded

HEAD = "sys,impl,ver,op_name,dtype,num_gpus,bytes,us\n"


def test_series_come_from_a_csv_by_system_implementation_version_and_collective(tmp_path):
    path = tmp_path / "points.csv.gz"
    lines = (
        "h100_sxm,TRTLLM,sglang/0.5.6,all_reduce,bfloat16,4,1024,3.5\n"
        "h100_sxm,TRTLLM,trtllm/1.2.0,all_reduce,bfloat16,4,2048,3.0\n"
        "h100_sxm,TRTLLM,trtllm/1.2.0,all_reduce,bfloat16,2,1024,2.5\n"
        "l40s,NCCL,nccl/2.27.3,alltoall,half,2,512,7\n"
        "l40s,NCCL,nccl/2.27.3,alltoall,int8,2,512,7\n"
    )
    with gzip.open(path, "wt") as file:
        file.write(HEAD + lines)
    ours, filed_elsewhere, nccl = read(path)
    assert (ours.implementation, ours.version) == ("trtllm", "1.2.0")
    assert [(p.ranks, p.payload_bytes) for p in ours.points] == [(2, 1024), (4, 2048)]
    assert ours.points[0].seconds == pytest.approx(2.5e-6)
    assert filed_elsewhere.version == "sglang-0.5.6"
    assert (nccl.op, nccl.dtype, len(nccl.points)) == ("alltoall", "half", 1)


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"points\.txt is neither"):
        read(tmp_path / "points.txt")


def test_the_committed_figures_are_what_the_script_makes_of_the_points():
    series = Series(*GRAPH.split("/"), "bfloat16", recorded(GRAPH))
    committed = [line for line in FIGURES.splitlines() if line.startswith(GRAPH.replace("/", "|"))]
    made = list(rows(series))
    assert len(made) == len(committed) == 4
    for line, kept in zip(made, committed, strict=True):
        for cell, kept_cell in zip(line.split("|"), kept.split("|"), strict=True):
            assert same(cell, kept_cell), (cell, kept_cell)


def same(cell: str, other: str) -> bool:
    """Equal, or numbers that differ by what another processor's last digits do."""
    words, others = cell.split(), other.split()
    if cell == other or len(words) != len(others):
        return cell == other
    return [float(w) for w in words] == pytest.approx([float(w) for w in others], rel=2e-3)


def test_each_implementation_has_the_model_of_what_it_does():
    def series(implementation, op="all_reduce"):
        return Series("h100_sxm", implementation, "1", op, "half", ())

    assert family(series("nccl", "reduce_scatter")) == ("ring_reduce_scatter", True)
    assert family(series("vllm_eager")) == ("launch_bound", False)
    assert family(series("trtllm")) == ("one_or_two_shot", False)


def test_the_excerpt_takes_each_place_once():
    points = (Point(2, 256, 4e-6), Point(2, 256, 5e-6), Point(4, 256, 6e-6))
    text = points_module([Series(*GRAPH.split("/"), "bfloat16", points)])
    lines = [line for line in text.splitlines() if line.startswith("h100_sxm")]
    assert [line.split("|")[4:] for line in lines] == [["2", "256", "4"], ["4", "256", "6"]]
