"""`labkit bench collectives`: what it refuses before a rank starts, what it prints and writes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from labkit.cli import main
from labkit.experiments import collective_bench
from labkit.experiments.collective_bench import Request, time_first_ranks
from labkit.experiments.collective_rows import read_times
from labkit.ranks import pool as pool_module
from labkit.ranks.pool import RankPool

ROOT = Path(__file__).resolve().parents[2]
BENCH = ["bench", "collectives"]


class NoPool:
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise AssertionError("a process was about to start")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--ranks", "1"], "--ranks 1: want 2 to 128"),
        (["--ranks", "2,x"], "--ranks 2,x: 'x' is no number of ranks; want one like 2,4"),
        (["--sizes", "16KB"], "16KB: sizes come in B, KiB, MiB, GiB, not in KB"),
        (["--sizes", "64KiB:1KiB"], "want 1KiB:64KiB"),
        (["--sizes", "6B"], "the nearest size is 4 B"),
        (["--sizes", "4B"], "4 B leave some of 2 ranks nothing; the smallest is 8 B"),
        (["--ops", "all_reduc"], "no collective is called 'all_reduc'; did you mean all_reduce"),
        (["--ops", ","], "no collective is named; there are all_reduce"),
        (["--implementations", "mpi"], "no way is called 'mpi'; there are gloo"),
        (["--implementations", "nccl"], "nccl wants a GPU for each of 2 ranks"),
        (["--ops", "broadcast", "--implementations", "send/recv-ring"], "has no broadcast; it has"),
        (["--turns", "0"], "--turns 0; want 1 to 1000"),
        (["--json", "times.csv"], "--json times.csv: want a name that ends with .json"),
        (["--plot", "no/such/folder/times.png"], "there is no folder no/such/folder"),
    ],
)
def test_what_cannot_be_is_refused_before_a_process_starts(monkeypatch, capsys, options, sentence):
    monkeypatch.setattr(pool_module, "RankPool", NoPool)
    assert main([*BENCH, *options]) == 2
    assert sentence in capsys.readouterr().err


def test_torchrun_bounds_the_ranks():
    assert collective_bench.parse_ranks(None, 4) == (4,)
    assert collective_bench.parse_ranks("2,4,2", 4) == (2, 4)
    assert collective_bench.parse_ranks(None, None) == (2,)
    with pytest.raises(ValueError, match="--ranks 8: want 2 to 4, which is what torchrun started"):
        collective_bench.parse_ranks("8", 4)
    with pytest.raises(ValueError, match="torchrun started 1 rank"):
        collective_bench.parse_ranks(None, 1)


def test_without_the_course_a_plot_is_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(pool_module, "RankPool", NoPool)
    monkeypatch.setattr(collective_bench.metadata, "entry_points", lambda **_: [])
    assert main([*BENCH, "--plot", str(tmp_path / "x.png")]) == 2
    assert "--plot needs the course beside labkit" in capsys.readouterr().err


def test_prints_a_table_and_writes_what_reads_back(
    monkeypatch, tmp_path, capsys, pool: Callable[[int], RankPool]
):
    monkeypatch.setattr(pool_module, "RankPool", lambda n, **_: nullcontext(pool(n)))
    json_file, png = tmp_path / "times.json", tmp_path / "times.png"
    options = ["--ranks", "2,3", "--sizes", "1KiB:4KiB", "--implementations", "gloo,shared-memory"]
    files = ["--json", str(json_file), "--plot", str(png)]
    assert main([*BENCH, *options, "--turns", "2", *files]) == 0
    shown = capsys.readouterr().out
    for text in ("all_reduce, 2 ranks, float32 (measured)", "all_reduce, 3 ranks", "4 KiB"):
        assert text in shown
    times = read_times(json_file)
    asked = {(r.ranks, r.payload_bytes, r.implementation) for r in times.rows}
    assert asked == {
        (n, size, name)
        for n in (2, 3)
        for size in (1024, 4096)
        for name in ("gloo", "shared memory")
    }
    assert [point.ranks for point in times.points("gloo")] == [2, 2, 3, 3]
    assert "random.Random(0)" in times.order
    assert os.uname().nodename not in json_file.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_under_torchrun_the_first_ranks_work_while_the_rest_wait(pool: Callable[[int], RankPool]):
    request = Request((2, 3), (1024,), ("all_reduce",), ("gloo",), "float32", 1, 60.0)
    parts = pool(3).run(time_first_ranks, request)
    sizes = [[part.rows[0].ranks for part in mine] for mine in parts]
    assert sizes == [[2, 3], [2, 3], [3]]


def test_the_same_command_works_under_torchrun(tmp_path):
    file = tmp_path / "times.json"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    options = ["--sizes", "1KiB", "--turns", "2", "--implementations", "gloo"]
    done = subprocess.run(
        [sys.executable, *launcher, "labkit", *BENCH, *options, "--json", str(file)],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("all_reduce, 2 ranks, float32 (measured)") == 1
    assert [row.ranks for row in read_times(file).rows] == [2]
