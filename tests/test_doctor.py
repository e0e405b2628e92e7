"""The doctor: containers' limits, GPUs and links as nvidia-smi writes them, and the advice."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit.doctor import Finding, Report, examination, examine, gpus, machine
from labkit.models import library

GIB = 2**30


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


MEMINFO = "MemTotal: 16777216 kB\nMemFree: 1048576 kB\nMemAvailable: 8388608 kB\n"


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({}, 8),
        ({"sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"sys/fs/cgroup/cpu.max": "1600000 100000\n"}, 8),
        (
            {
                "proc/self/cgroup": "0::/app/worker\n",
                "sys/fs/cgroup/app/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/app/worker/cpu.max": "max 100000\n",
            },
            3,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/box\n3:cpu,cpuacct:/box\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "3:cpu,cpuacct:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
    ],
    ids=["none", "v2 max", "v2", "v2 above", "v2 nested", "v1", "v1 unlimited"],
)
def test_cores_are_what_the_container_gives(tmp_path, eight_cores, files, usable):
    found = machine.cores(write_files(tmp_path, files))
    assert (found.usable, found.installed) == (usable, 8)
    assert found.limited_by == (None if usable == 8 else "the container's CPU quota")


def test_affinity_limits_cores(tmp_path, eight_cores, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {1, 5}, raising=False)
    assert machine.cores(tmp_path) == machine.Cores(2, 8, "CPU affinity")


@pytest.mark.parametrize(
    ("files", "total", "available"),
    [
        ({}, 16, 8),
        ({"sys/fs/cgroup/memory.max": "max\n"}, 16, 8),
        (
            {
                "sys/fs/cgroup/memory.max": str(4 * GIB),
                "sys/fs/cgroup/memory.current": str(GIB),
            },
            4,
            3,
        ),
        (
            {
                "proc/self/cgroup": "4:memory:/box\n",
                "sys/fs/cgroup/memory/box/memory.limit_in_bytes": str(2 * GIB),
                "sys/fs/cgroup/memory/box/memory.usage_in_bytes": str(GIB // 2),
                "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**63 - 4096),
            },
            2,
            1.5,
        ),
    ],
    ids=["none", "v2 max", "v2", "v1"],
)
def test_memory_is_what_the_container_gives(tmp_path, files, total, available):
    found = machine.memory(write_files(tmp_path, files | {"proc/meminfo": MEMINFO}))
    assert (found.total / GIB, found.available / GIB) == (total, available)
    assert (found.limited_by is not None) == (total != 16)


def test_the_real_machine_can_be_read():
    assert machine.cores().usable > 0
    memory = machine.memory()
    assert 0 < memory.available <= memory.total


QUERY = """\
0, NVIDIA H100 80GB HBM3, 81559, 81008
1, NVIDIA H100 80GB HBM3, 81559, 40000
2, NVIDIA A10G, [N/A], [N/A]
"""

TOPOLOGY = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tSYS\tSYS\tPIX\t0-55,112-167\t0\t\tN/A
GPU1\tNV18\t X \tSYS\tSYS\tNODE\t0-55,112-167\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tPHB\tSYS\t56-111\t1\t\tN/A
GPU3\tSYS\tSYS\tPHB\t X \tSYS\t56-111\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\tSYS\t X \t\t\t\t

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
"""


def test_gpus_are_read_from_nvidia_smi():
    first, second, third = gpus.parse_gpus(QUERY)
    assert first == gpus.Gpu(0, "NVIDIA H100 80GB HBM3", 81559 * 2**20, 81008 * 2**20)
    assert second.memory_free == 40000 * 2**20
    assert (third.name, third.memory_total) == ("NVIDIA A10G", 0)
    assert gpus.parse_gpus("") == gpus.parse_gpus("No devices were found\n") == ()


def test_links_are_read_from_the_topology_matrix():
    links = gpus.parse_links(TOPOLOGY)
    kinds = {(link.first, link.second): link.kind for link in links}
    assert kinds == {
        (0, 1): "NV18", (0, 2): "SYS", (0, 3): "SYS", (1, 2): "SYS", (1, 3): "SYS", (2, 3): "PHB",
    }  # fmt: skip
    assert gpus.parse_links("") == ()
    assert gpus.link_summary(links) == (
        "NVLink, 18 lanes: 0-1; the link between CPU sockets: 0-2, 0-3, 1-2, 1-3; "
        "the CPU's PCIe host bridge: 2-3"
    )
    assert gpus.link_summary(links[:1]) == "NVLink, 18 lanes, between all pairs"


def test_a_machine_without_nvidia_smi_has_no_gpus(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert gpus.gpus() == gpus.links() == ()


def fake_torch(*, cuda: str | None, num_gpus: int, version: str = "2.9.0") -> SimpleNamespace:
    """Only the attributes that the doctor asks for."""
    return SimpleNamespace(
        __version__=version,
        version=SimpleNamespace(cuda=cuda),
        cuda=SimpleNamespace(device_count=lambda: num_gpus),
        distributed=SimpleNamespace(
            is_available=lambda: True,
            is_gloo_available=lambda: True,
            is_nccl_available=lambda: cuda is not None,
        ),
    )


def test_each_gpu_problem_has_its_advice():
    cards, links = gpus.parse_gpus(QUERY), gpus.parse_links(TOPOLOGY)
    good = list(examination.graphics(cards, links, fake_torch(cuda="12.8", num_gpus=3)))
    assert [finding.status for finding in good] == ["ok"] * 4
    assert good[1].text == "1: NVIDIA H100 80GB HBM3, 39.1 of 79.6 GiB free"
    no_cuda = list(examination.graphics(cards, links, fake_torch(cuda=None, num_gpus=0)))
    assert [f.advice for f in no_cuda if f.status == "fix"] == ["install a CUDA build of torch"]
    hidden = list(examination.graphics(cards, (), fake_torch(cuda="12.8", num_gpus=0)))
    assert [f.status for f in hidden] == ["ok", "ok", "ok", "fix", "note"]
    assert "CUDA_VISIBLE_DEVICES" in hidden[3].advice
    (none,) = examination.graphics((), (), fake_torch(cuda=None, num_gpus=0))
    assert none.status == "note"


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ((3, 10, 4), "broken"),
        ((3, 11, 0), "ok"),
        ((3, 13, 9), "ok"),
        ((3, 14, 0), "broken"),
    ],
)
def test_python_must_be_a_supported_one(version, status):
    (finding,) = examination.python(version, "linux")
    assert finding.status == status
    assert ("install Python 3.11 to 3.13" in finding.advice) == (status == "broken")


def test_windows_is_told_about_wsl():
    findings = list(examination.python((3, 12, 1), "win32"))
    assert [finding.status for finding in findings] == ["broken", "ok"]
    assert "wsl --install" in findings[0].advice


def test_supported_versions_are_those_of_the_package():
    project = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text()
    low, high = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project).groups()
    assert ((3, int(low)), (3, int(high) - 1)) == examination.PYTHON_VERSIONS
    torch_low = re.search(r'"torch>=(\d+)\.(\d+)"', project).groups()
    assert tuple(map(int, torch_low)) == examination.TORCH_VERSION


def test_torch_must_be_there_new_enough_and_able_to_communicate():
    (missing,) = examination.torch_library(None)
    (old,) = examination.torch_library(fake_torch(cuda=None, num_gpus=0, version="2.5.1"))
    assert missing.status == old.status == "broken"
    assert missing.advice == old.advice == 'pip install "torch>=2.6"'
    mute = fake_torch(cuda=None, num_gpus=0)
    mute.distributed.is_gloo_available = lambda: False
    assert [f.status for f in examination.torch_library(mute)] == ["ok", "broken"]
    fine = list(examination.torch_library(fake_torch(cuda="12.8", num_gpus=1, version="2.10.0+cu")))
    assert [f.text for f in fine] == ["torch 2.10.0+cu", "gloo, NCCL for GPUs"]


@pytest.mark.parametrize(
    ("cores", "available", "num_gpus", "expected", "why"),
    [
        (8, 16, 0, 8, "one for each core"),
        (2, 16, 0, 2, "more give right results, only slower"),
        (1.5, 16, 0, 1, "one for each core"),
        (0.5, 16, 0, 1, "one for each core"),
        (16, 1, 0, 3, "memory has room for that many"),
        (2, 16, 4, 4, "one for each GPU"),
    ],
)
def test_sensible_ranks_say_why(cores, available, num_gpus, expected, why):
    memory = machine.Memory(64 * GIB, available * GIB)
    number, reason = examination.sensible_ranks(machine.Cores(cores, 64), memory, num_gpus)
    assert number == expected
    assert why in reason


def test_small_machines_get_advice():
    (one,) = examination.processors(machine.Cores(1, 8, "the container's CPU quota"))
    assert (one.status, one.text) == ("fix", "1 usable of 8, limited by the container's CPU quota")
    (little,) = examination.main_memory(machine.Memory(2 * GIB, GIB))
    assert little.status == "fix"
    (docker,) = examination.shared_memory(machine.Memory(2**26, 2**20))
    assert (docker.status, docker.advice) == ("fix", "in Docker: run with --shm-size=1g")
    (macos,) = examination.shared_memory(None)
    assert macos.status == "note"


def test_models_tell_their_size_and_degrees_or_how_to_get_them(tmp_path, monkeypatch):
    config = {
        "model_type": "llama", "hidden_size": 576, "num_hidden_layers": 2,
        "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536,
        "vocab_size": 512, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True,
        "bos_token_id": 0, "eos_token_id": 1,
    }  # fmt: skip
    tiny = tmp_path / "tiny"
    write_files(tiny, {"config.json": json.dumps(config), "tokenizer.json": "x" * 3_000_000})
    places = {"tiny": tiny, "smollm2-135m": tmp_path / "nothing"}
    monkeypatch.setattr(library, "model_directory", lambda name: places[name])
    here, missing = examination.models()
    assert here == Finding("models", "ok", "tiny: 3.0 MB, TP 1, 3 (2 with uneven heads)")
    assert (missing.status, missing.text) == ("fix", "smollm2-135m is not here")
    assert missing.advice.startswith("labkit fetch smollm2-135m (needs ")


def test_course_packages_that_are_missing_are_named(monkeypatch):
    versions = {"jupyterlab": "4.5", "ipywidgets": None, "anywidget": "0.9", "matplotlib": None}
    monkeypatch.setattr(examination, "_version", versions.get)
    here, missing = examination.course_packages()
    assert here.text == "jupyterlab 4.5, anywidget 0.9"
    assert missing.text == "not here: ipywidgets, matplotlib"
    assert missing.advice.endswith("pip install ipywidgets matplotlib")


def test_a_report_is_usable_unless_something_is_broken():
    fine = Report((Finding("a", "ok", "x"), Finding("b", "fix", "y", "do z")), 2)
    assert fine.is_usable
    assert fine.text().splitlines() == [
        "ok      a  x",
        "fix     b  y -> do z",
        "",
        "Ready; 1 could be better: see those marked fix.",
    ]
    assert fine["b"] == (fine.findings[1],)
    broken = Report((*fine.findings, Finding("c", "broken", "gone", "get it")), 2)
    assert not broken.is_usable
    assert broken.text().endswith("labkit cannot work here yet: see the 1 marked broken.")
    assert json.loads(broken.to_json())["findings"][2]["advice"] == "get it"
    assert Report((Finding("a", "ok", "x"),), 1).text().endswith("Ready.")


def test_html_escapes_and_shows_the_advice():
    page = Report(
        (Finding("torch", "broken", "a < b", 'pip install "torch>=2.6"'),), 1
    )._repr_html_()
    assert "a &lt; b" in page
    assert "pip install &quot;torch&gt;=2.6&quot;" in page


def test_examine_looks_at_this_machine():
    report = examine()
    assert report.is_usable
    assert report.num_ranks >= 1
    topics = {finding.topic for finding in report.findings}
    assert topics >= {"python", "torch", "backend", "gpu", "cores", "memory", "models", "ranks"}
    assert all(f.advice for f in report.findings if f.status in ("fix", "broken"))


def test_examine_makes_no_cuda_context():
    code = (
        "import torch\nfrom labkit.doctor import examine\nexamine()\n"
        "print(torch.cuda.is_initialized())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[1],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "False"
