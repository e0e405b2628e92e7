"""Case I6: ranks meet on the loopback interface; the host's name need not resolve."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool

SCRIPT = """
import socket
import torch
from labkit.ranks.pool import RankPool

try:
    print(socket.gethostbyname(socket.gethostname()))
except socket.gaierror:
    print("does not resolve")

def work(comm):
    return comm.all_reduce(torch.ones(2)).tolist()

print(RankPool(3).run(work))
"""


def _can_rename_host() -> bool:
    if shutil.which("unshare") is None:
        return False
    return (
        subprocess.run(["unshare", "--uts", "hostname", "x"], capture_output=True).returncode == 0
    )


def look(comm: Comm) -> tuple[str | None, str | None]:
    return os.environ.get("GLOO_SOCKET_IFNAME"), os.environ.get("NCCL_SOCKET_IFNAME")


@pytest.mark.skipif(not _can_rename_host(), reason="needs the right to rename the host")
def test_ranks_start_where_the_host_name_does_not_resolve(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = f'hostname no-such-host.invalid && exec "{sys.executable}" "{script}"'
    done = subprocess.run(
        ["unshare", "--uts", "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))),
    )
    assert done.stdout == "does not resolve\n[[3.0, 3.0], [3.0, 3.0], [3.0, 3.0]]\n", done.stderr


def test_ranks_are_pinned_to_loopback_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "no-such-interface")
    monkeypatch.setenv("MASTER_ADDR", "no-such-host.invalid")
    monkeypatch.setenv("MASTER_PORT", "1")
    with RankPool(2) as own:
        assert own.run(look) == [("lo", "lo")] * 2 or own.run(look) == [("lo0", "lo0")] * 2


@pytest.mark.parametrize("n", [2, 3])
def test_bfloat16_and_uneven_all_to_all_work(pool: Callable[[int], RankPool], n: int) -> None:
    def work(comm: Comm) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.full((3,), comm.rank + 0.5, dtype=torch.bfloat16)
        splits = [(comm.rank + r) % 3 for r in range(comm.size)]
        rows = torch.arange(sum(splits), dtype=torch.bfloat16) + 10 * comm.rank
        return comm.all_reduce(x), comm.all_to_all(rows, splits)

    results = pool(n).run(work)
    for rank, (total, rows) in enumerate(results):
        assert total.dtype == rows.dtype == torch.bfloat16
        assert total.tolist() == [sum(r + 0.5 for r in range(n))] * 3
        expected = []
        for source in range(n):
            start = sum((source + r) % 3 for r in range(rank))
            expected += [10.0 * source + start + i for i in range((source + rank) % 3)]
        assert rows.tolist() == expected
