"""`labkit run` on a pool and under a real torchrun, and what it makes of a wrong target."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from labkit.cli import main
from labkit.ranks.launch import Place, choose_device, comm_from_env, loopback, run_here
from labkit.ranks.target import Arguments, TargetError, check_call, find_function

ROOT = Path(__file__).resolve().parents[2]

SPMD = """
import torch
import torch.distributed as dist

LIMIT = 3

def total(comm, start=0, scale=1.0):
    x = torch.tensor([float(start + comm.rank)]) * scale
    comm.report(f"at {comm.rank}")
    neighbour = comm.send_recv(x, (comm.rank + 1) % comm.size,
                               torch.empty(1), (comm.rank - 1) % comm.size)
    half = comm.split([(0,), (1,)], "half")
    return comm.all_reduce(x).item(), neighbour.item(), half.size

def fails_on_one(comm):
    if comm.rank == 1:
        raise ValueError("rank 1 had enough")
    comm.barrier()

class Unspeakable:
    def __repr__(self):
        raise ValueError("no words")

def odd_result(comm):
    return Unspeakable()

def waits_for_ever(comm):
    if comm.rank == 0:
        comm.barrier()
    import time
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _own_path(monkeypatch) -> None:
    """What finding a function adds to the path is gone after the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def spmd(tmp_path) -> Path:
    folder = tmp_path / "a folder"
    folder.mkdir()
    file = folder / "spmd_program.py"
    file.write_text(SPMD)
    return file


def clean_environment() -> dict[str, str]:
    launcher = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    environ = {key: value for key, value in os.environ.items() if key not in launcher}
    paths = [str(ROOT), environ.get("PYTHONPATH", "")]
    return environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def labkit(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "labkit", *arguments],
        cwd=cwd,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def torchrun(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2"]
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    return subprocess.run(
        [sys.executable, *launcher, *rendezvous, "-m", "labkit", "run", *arguments],
        cwd=cwd,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def result_lines(done: subprocess.CompletedProcess) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith("rank ")]


@pytest.mark.parametrize("launcher", ["pool", "torchrun"])
def test_run_gives_the_same_results_on_a_pool_and_under_torchrun(spmd, launcher):
    arguments = ["--ranks", "2", "--args", '{"start": 5, "scale": 2}']
    if launcher == "pool":
        done = labkit("run", f"{spmd}:total", *arguments)
    else:
        done = torchrun("spmd_program:total", *arguments, cwd=spmd.parent)
    assert done.returncode == 0, done.stderr
    assert result_lines(done) == ["rank 0: (22.0, 12.0, 1)", "rank 1: (22.0, 10.0, 1)"]
    assert "[rank 0] at 0" in done.stdout
    assert "[rank 1] at 1" in done.stdout


def test_torchrun_shows_the_traceback_of_the_rank_that_fails(spmd):
    done = torchrun(f"{spmd}:fails_on_one")
    assert done.returncode == 1
    assert "ValueError: rank 1 had enough" in done.stderr
    assert "in fails_on_one" in done.stderr


@pytest.mark.parametrize("launcher", ["pool", "torchrun"])
def test_errors_do_not_show_how_the_function_was_called(spmd, launcher):
    run = torchrun if launcher == "torchrun" else lambda target: labkit("run", target)
    done = run(f"{spmd}:fails_on_one")
    assert done.returncode == 1
    told = done.stderr.partition("ChildFailedError")[0]  # what follows is torchrun's own summary
    assert 'raise ValueError("rank 1 had enough")' in told
    assert "launch.py" not in told
    assert "run_target" not in told


@pytest.mark.parametrize("launcher", ["pool", "torchrun"])
def test_result_without_a_repr_is_shown_as_such(spmd, launcher):
    run = torchrun if launcher == "torchrun" else lambda target: labkit("run", target)
    done = run(f"{spmd}:odd_result")
    assert done.returncode == 0, done.stderr
    shown = "<Unspeakable object, whose repr raised ValueError: no words>"
    assert result_lines(done) == [f"rank 0: {shown}", f"rank 1: {shown}"]


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
@pytest.mark.parametrize("command", [["run", "module:function"], ["generate", "Hi"]])
def test_time_limit_on_the_command_line_is_named(monkeypatch, capsys, command, text):
    monkeypatch.setattr("labkit.ranks.pool.RankPool.__init__", None)  # no rank is started
    with pytest.raises(SystemExit) as ended:
        main([*command, f"--timeout={text}"])
    assert ended.value.code == 2
    said = f"argument --timeout: {text} is no time limit; want seconds above 0"
    assert said in capsys.readouterr().err


def test_torchrun_ends_a_rank_that_is_not_done_in_time(spmd):
    done = torchrun(f"{spmd}:waits_for_ever", "--timeout", "8")
    assert done.returncode == 1
    assert "in waits_for_ever" in done.stderr


def test_ranks_must_agree_with_torchrun(spmd, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="--ranks 3, but torchrun started 2; leave --ranks out"):
        run_here(f"{spmd}:total", Arguments(), 3, 10.0)


def test_one_rank_under_torchrun_needs_no_process_group(monkeypatch):
    for key, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
        monkeypatch.setenv(key, value)
    heard: list[object] = []
    comm = comm_from_env(reporter=heard.append)
    comm.report("here")
    assert (comm.rank, comm.size, comm.name, heard) == (0, 1, "world", ["here"])
    assert not torch.distributed.is_initialized()


def test_comm_from_env_says_what_is_missing(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RuntimeError, match="RANK and WORLD_SIZE are not set: start this with"):
        comm_from_env()


def test_place_reads_what_torchrun_sets():
    environ = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert Place.from_env(environ) == Place(5, 8, 1, 4)
    assert Place.from_env({"RANK": "1", "WORLD_SIZE": "2"}) == Place(1, 2, 1, 2)
    with pytest.raises(RuntimeError, match="RANK is 'one'; it must be a whole number"):
        Place.from_env({"RANK": "one", "WORLD_SIZE": "2"})
    with pytest.raises(RuntimeError, match="RANK is 2, and with WORLD_SIZE 2 it is 0 to 1"):
        Place.from_env({"RANK": "2", "WORLD_SIZE": "2"})


@pytest.mark.parametrize(
    ("gpus", "local_size", "expected"),
    [
        (0, 2, ("gloo", "cpu")),
        (1, 2, ("gloo", "cpu")),
        (2, 2, ("nccl", "cuda:1")),
        (8, 2, ("nccl", "cuda:1")),
    ],
)
def test_nccl_needs_a_gpu_for_each_local_rank(gpus, local_size, expected):
    backend, device = choose_device(Place(3, 4, 1, local_size), gpus)
    assert (backend, str(device)) == expected


def test_loopback_is_used_on_one_machine_unless_the_user_chose(monkeypatch):
    monkeypatch.setattr("socket.if_nameindex", lambda: [(2, "eth0"), (1, "lo")])
    both = {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    assert loopback(Place(0, 2, 0, 2), {}) == both
    assert loopback(Place(0, 4, 0, 2), {}) == {}
    chosen = {"GLOO_SOCKET_IFNAME": "eth0"}
    assert loopback(Place(0, 2, 0, 2), chosen) == {"NCCL_SOCKET_IFNAME": "lo"}


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("train", "'train' names no function; write module:function or file.py:function"),
        (":f", "names no function"),
        ("no.such.module:f", "there is no module 'no.such.module' on the path or in this folder"),
        ("{folder}/spmd_programme.py:total", "there is no file .*did you mean spmd_program.py"),
        ("{file}:totl", "has no function 'totl'; did you mean total?"),
        ("{file}:zzz", "has no function 'zzz'; there is total, fails_on_one"),
        ("{file}:LIMIT", "LIMIT in .* is int 3, which cannot be called"),
        ("{broken}:f", "cannot be imported: SyntaxError"),
        ("{needy}:f", "cannot be imported: ModuleNotFoundError: No module named 'not_there_'"),
    ],
)
def test_a_wrong_target_is_explained(spmd, target, sentence):
    broken, needy = spmd.parent / "broken_program.py", spmd.parent / "needy_program.py"
    broken.write_text("def f(:\n")
    needy.write_text("import not_there_\n")
    with pytest.raises(TargetError, match=sentence):
        find_function(target.format(file=spmd, folder=spmd.parent, broken=broken, needy=needy))


def test_a_module_that_needs_something_missing_names_that(spmd, monkeypatch):
    monkeypatch.chdir(spmd.parent)
    Path("wants_more.py").write_text("import not_there_\n")
    with pytest.raises(TargetError, match=r"wants_more cannot be imported: .*'not_there_'"):
        find_function("wants_more:f")


def test_a_file_may_have_the_name_of_a_module_in_use(tmp_path):
    file = tmp_path / "json.py"
    file.write_text("def f(comm):\n    return comm.size\n")
    import json

    assert find_function(f"{file}:f").__code__.co_filename == str(file)
    assert sys.modules["json"] is json


def test_nested_names_reach_methods(tmp_path):
    file = tmp_path / "holder_program.py"
    file.write_text(
        textwrap.dedent(
            """
            class Lesson:
                @staticmethod
                def first(comm):
                    return comm.size
            """
        )
    )
    assert find_function(f"{file}:Lesson.first").__name__ == "first"


def test_arguments_are_an_object_or_a_list():
    assert Arguments.from_json(None) == Arguments()
    assert Arguments.from_json('{"steps": 3}').named == {"steps": 3}
    assert Arguments.from_json('[3, "x"]').positional == (3, "x")
    with pytest.raises(TargetError, match="is not JSON"):
        Arguments.from_json("steps=3")
    with pytest.raises(TargetError, match=r"must be an object \(named\) or a list, as in '\[3\]'"):
        Arguments.from_json("3")


def test_arguments_must_fit_the_signature():
    def train(comm, steps, *, rate=0.1):
        return None

    check_call("m:train", train, Arguments(named={"steps": 3}))
    check_call("m:train", train, Arguments(positional=(3,)))
    with pytest.raises(TargetError, match="missing a required argument: 'steps'"):
        check_call("m:train", train, Arguments())
    with pytest.raises(TargetError, match="got an unexpected keyword argument 'stops'"):
        check_call("m:train", train, Arguments(named={"steps": 1, "stops": 3}))
