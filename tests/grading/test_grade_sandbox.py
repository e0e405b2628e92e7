"""A command under its warden: limits hold for all that came of it, and nothing outlives it."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from kernels import is_alive, wait_until

from course.grading.sandbox import Ending, Sandbox, Stopped
from course.grading.workshop import Workshop

LIMIT = 300_000_000
SECONDS = 20.0


@pytest.fixture(scope="module")
def workshop() -> Iterator[Workshop]:
    started = Workshop()
    yield started
    started.close()


@pytest.fixture
def token() -> str:
    """Seconds for `sleep` that no other process has, to find it by."""
    return str(random.randint(10**7, 10**8))


def sleepers(token: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if token in process.cmdline():
                found.append(process.pid)
    return [pid for pid in found if is_alive(pid)]


def run(workshop: Workshop, code: str, **more: bool) -> Sandbox:
    return Sandbox(workshop, ["-c", code], workshop.new_folder(), LIMIT, **more)


def ending_of(sandbox: Sandbox) -> Ending:
    assert wait_until(lambda: sandbox.poll() is not None, SECONDS)
    return sandbox.end()


@pytest.mark.parametrize(
    ("code", "ending", "told"),
    [
        ("raise SystemExit(3)", Ending("exit", 3), "exit code 3"),
        ("import os; os._exit(0)", Ending("exit", 0), "exit code 0"),
        ("import os; os.kill(os.getpid(), 9)", Ending("exit", -9), "signal 9"),
    ],
)
def test_an_ending_says_how(workshop, code, ending, told):
    found = ending_of(run(workshop, code))
    assert found == ending
    assert told in found.sentence(LIMIT)


@pytest.mark.parametrize(
    "code",
    [
        "x = b'x' * 1_000_000_000; import time; time.sleep(60)",
        "import os, time\nif os.fork() == 0:\n    x = b'x' * 400_000_000\ntime.sleep(60)",
        "import os, time\nfor i in range(3):\n    if os.fork() == 0:\n"
        "        x = b'x' * 150_000_000; time.sleep(60)\ntime.sleep(60)",
    ],
    ids=["itself", "a child", "children together"],
)
def test_memory_is_that_of_the_whole_tree(workshop, code):
    sandbox = run(workshop, code)
    ending = ending_of(sandbox)
    assert ending.why == "memory"
    assert ending.amount > LIMIT
    assert sandbox.peak > LIMIT
    assert ending.sentence(LIMIT) == "used more than 0.3 GB of memory, which is the limit"


def test_a_peak_between_two_samples_counts(workshop):
    code = "x = b'x' * 400_000_000\ndel x\nimport time; time.sleep(60)"
    assert ending_of(run(workshop, code)).why == "memory"


def test_pages_that_processes_share_count_once(workshop):
    code = (
        "import os, time\nx = b'x' * 200_000_000\nfor i in range(3):\n"
        "    if os.fork() == 0: break\ntime.sleep(1)"
    )
    assert ending_of(run(workshop, code)) == Ending("exit", 0)


def test_a_spared_command_loses_only_the_child_that_takes_too_much(workshop):
    code = (
        "import os, time\npid = os.fork()\n"
        "if pid == 0:\n    x = b'x' * 500_000_000\n    time.sleep(60)\n"
        "os.waitpid(pid, 0)\nwith open('pid', 'w') as file: file.write(str(pid))\n"
        "raise SystemExit(7)"
    )
    folder = workshop.new_folder()
    sandbox = Sandbox(workshop, ["-c", code], folder, LIMIT, spares_root=True)
    assert ending_of(sandbox) == Ending("exit", 7)
    ((pid, ending),) = sandbox.killed.items()
    assert ending.why == "memory"
    assert pid == int((folder / "work" / "pid").read_text())


@pytest.mark.parametrize(
    "spawn",
    [
        "subprocess.Popen(['sleep', TOKEN])",
        "subprocess.Popen(['sleep', TOKEN], start_new_session=True)",
        "subprocess.Popen(['sleep', TOKEN], start_new_session=True, env={})",
        "subprocess.Popen('(setsid sleep ' + TOKEN + ' &) &', shell=True, env={})",
    ],
    ids=["child", "own session", "no environment", "orphan"],
)
@pytest.mark.parametrize("end", ["time.sleep(0.2)", "os._exit(1)", "time.sleep(60)"])
def test_nothing_outlives_a_command(workshop, token, spawn, end):
    code = f"import os, subprocess, time\nTOKEN = {token!r}\n{spawn}\ntime.sleep(0.2)\n{end}"
    with run(workshop, code) as sandbox:
        if end == "time.sleep(60)" and "&" not in spawn:
            assert wait_until(lambda: sleepers(token), SECONDS)
        else:
            wait_until(lambda: sandbox.poll() is not None, 2.0)
    assert sleepers(token) == []


def test_who_ignores_every_signal_ends_all_the_same(workshop, token):
    code = (
        "import signal, subprocess\n"
        "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
        f"subprocess.Popen(['nohup', 'sleep', {token!r}])\nwhile True: pass"
    )
    with run(workshop, code) as sandbox:
        assert wait_until(lambda: sleepers(token), SECONDS)
        sandbox.interrupt()
    assert sleepers(token) == []
    assert sandbox.ending == Ending("asked", -9)


def test_who_kills_its_warden_is_found_all_the_same(workshop, token):
    code = (
        "import os, subprocess, time\n"
        f"subprocess.Popen(['sleep', {token!r}], start_new_session=True)\n"
        "os.kill(os.getppid(), 9)\ntime.sleep(60)"
    )
    sandbox = run(workshop, code)
    ending = ending_of(sandbox)
    assert ending == Ending("exit", None)
    assert "watches over it" in ending.sentence(LIMIT)
    assert wait_until(lambda: not sleepers(token), 5.0)


def test_too_many_processes_end(workshop):
    code = "import os, time\nfor i in range(300):\n    if os.fork() == 0: break\ntime.sleep(60)"
    ending = ending_of(run(workshop, code))
    assert ending.why == "processes"
    assert "too many" in ending.sentence(LIMIT)


def test_an_endless_file_stops_at_a_limit(workshop):
    code = (
        "with open('big', 'wb') as file:\n    file.seek((1 << 30) + 10)\n    try:\n"
        "        file.write(b'x'); file.flush()\n    except OSError:\n"
        "        import os; os._exit(5)"
    )
    assert ending_of(run(workshop, code)) == Ending("exit", 5)


def test_students_see_copies_of_the_packages_and_nothing_of_the_graders_environment(
    workshop, monkeypatch
):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    code = (
        "import os, course.grading, labkit\n"
        "here = os.path.dirname(os.getcwd())\n"
        "ok = all(m.__file__.startswith(here) for m in (course.grading, labkit))\n"
        "ok = ok and 'SECRET_TOKEN' not in os.environ\n"
        "ok = ok and os.path.expanduser('~').startswith(here)\n"
        "raise SystemExit(0 if ok else 1)"
    )
    assert ending_of(run(workshop, code)) == Ending("exit", 0)


def test_a_grader_that_is_killed_leaves_no_process(token, tmp_path):
    code = (
        "import time\nfrom course.grading.sandbox import Sandbox\n"
        "from course.grading.workshop import Workshop\nwork = Workshop()\n"
        f'inner = \'import subprocess; subprocess.run(["sleep", "{token}"])\'\n'
        "box = Sandbox(work, ['-c', inner], work.new_folder(), 10**9)\ntime.sleep(60)"
    )
    environ = dict(os.environ, TMPDIR=str(tmp_path))
    grader = subprocess.Popen([sys.executable, "-c", code], env=environ)
    try:
        assert wait_until(lambda: sleepers(token), SECONDS)
    finally:
        grader.kill()
        grader.wait()
    assert wait_until(lambda: not sleepers(token), SECONDS)


def test_a_run_that_is_to_stop_says_so():
    stopping = Workshop()
    try:
        with run(stopping, "import time; time.sleep(60)") as sandbox:
            stopping.stop.set()
            with pytest.raises(Stopped):
                sandbox.poll()
    finally:
        stopping.close()
    assert not stopping.folder.exists()
