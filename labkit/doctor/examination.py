"""Looks at this machine, topic by topic. Each function gives the findings of one topic."""

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.doctor import gpus as nvidia
from labkit.doctor import machine
from labkit.doctor.report import Finding, Report
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import legal_tensor_parallel_sizes

if TYPE_CHECKING:
    from types import ModuleType

GIB = 2**30
RANK_BYTES = 0.3 * GIB  # assumed: what a rank with torch loaded holds before any model
PYTHON_VERSIONS = ((3, 11), (3, 13))  # first and last supported
TORCH_VERSION = (2, 6)  # first supported
COURSE_PACKAGES = ("jupyterlab", "ipywidgets", "anywidget", "matplotlib")
MIN_SHARED_MEMORY = 64 * 2**20
SHOWN_TP = 16  # tensor parallel sizes are listed up to here


def examine() -> Report:
    """Look at everything. Starts no rank and makes no CUDA context; takes a second or two."""
    torch = _import_torch()
    gpus = nvidia.gpus()
    cores, memory = machine.cores(), machine.memory()
    num_gpus = 0 if torch is None else torch.cuda.device_count()
    num_ranks, reason = sensible_ranks(cores, memory, num_gpus)
    findings = [
        *python(sys.version_info[:3], sys.platform),
        *torch_library(torch),
        *graphics(gpus, nvidia.links() if len(gpus) > 1 else (), torch),
        *processors(cores),
        *main_memory(memory),
        *shared_memory(machine.shared_memory()),
        *models(),
        *course_packages(),
        Finding("ranks", "ok", f"{num_ranks} make sense: {reason}"),
    ]
    return Report(tuple(findings), num_ranks)


def sensible_ranks(
    cores: machine.Cores, memory: machine.Memory | None, num_gpus: int
) -> tuple[int, str]:
    """How many ranks to start, and why."""
    if num_gpus > 0:
        return num_gpus, "one for each GPU (more than that run on the CPU, over gloo)"
    by_cores = cores.whole
    by_memory = by_cores if memory is None else max(1, int(memory.available // RANK_BYTES))
    if by_memory < by_cores:
        return by_memory, f"memory has room for that many ({RANK_BYTES / GIB:.1f} GiB each)"
    more = "more give right results, only slower: 4 are fine for a lesson"
    return by_cores, f"one for each core ({more})" if by_cores < 4 else "one for each core"


def python(version: tuple[int, ...], platform: str) -> Iterator[Finding]:
    """The interpreter and the operating system."""
    first, last = (".".join(map(str, v)) for v in PYTHON_VERSIONS)
    shown = f"Python {'.'.join(map(str, version))}"
    if platform == "win32":
        yield Finding(
            "system", "broken", "Windows: ranks need a Unix", "install WSL: wsl --install"
        )
    if PYTHON_VERSIONS[0] <= version[:2] <= PYTHON_VERSIONS[1]:
        yield Finding("python", "ok", shown)
    else:
        yield Finding("python", "broken", shown, f"install Python {first} to {last}")


def torch_library(torch: "ModuleType | None") -> Iterator[Finding]:
    """torch and its communication backends."""
    wanted = ".".join(map(str, TORCH_VERSION))
    if torch is None:
        yield Finding("torch", "broken", "torch is not here", f'pip install "torch>={wanted}"')
        return
    version = str(torch.__version__)
    if tuple(int(part) for part in version.split(".")[:2]) < TORCH_VERSION:
        yield Finding("torch", "broken", f"torch {version}", f'pip install "torch>={wanted}"')
        return
    yield Finding("torch", "ok", f"torch {version}")
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_gloo_available()):
        yield Finding(
            "backend", "broken", "this torch has no gloo", "install torch with distributed support"
        )
        return
    nccl = "NCCL for GPUs" if distributed.is_nccl_available() else "no NCCL (none needed for CPUs)"
    yield Finding("backend", "ok", f"gloo, {nccl}")


def graphics(
    gpus: tuple[nvidia.Gpu, ...], links: tuple[nvidia.Link, ...], torch: "ModuleType | None"
) -> Iterator[Finding]:
    """GPUs, and how they reach each other."""
    if not gpus:
        yield Finding("gpu", "note", "none: ranks run on the CPU, over gloo; every lesson works")
        return
    for gpu in gpus:
        free, total = gpu.memory_free / GIB, gpu.memory_total / GIB
        yield Finding("gpu", "ok", f"{gpu.index}: {gpu.name}, {free:.1f} of {total:.1f} GiB free")
    if torch is not None and torch.version.cuda is None:
        yield Finding(
            "gpu",
            "fix",
            "this torch was built without CUDA and cannot use them",
            "install a CUDA build of torch",
        )
    elif torch is not None and torch.cuda.device_count() == 0:
        yield Finding(
            "gpu", "fix", "torch sees none of them", "check CUDA_VISIBLE_DEVICES and the driver"
        )
    if len(gpus) > 1:
        known = nvidia.link_summary(links) if links else "unknown (nvidia-smi topo -m said nothing)"
        yield Finding("links", "ok" if links else "note", known)


def processors(cores: machine.Cores) -> Iterator[Finding]:
    """CPU cores."""
    text = f"{cores.usable:g} usable"
    if cores.limited_by:
        text += f" of {cores.installed}, limited by {cores.limited_by}"
    if cores.usable < 2:
        yield Finding(
            "cores", "fix", text, "ranks will take turns: 2 cores or more make timings meaningful"
        )
    else:
        yield Finding("cores", "ok", text)


def main_memory(memory: machine.Memory | None) -> Iterator[Finding]:
    """Memory."""
    if memory is None:
        yield Finding("memory", "note", "unknown on this system")
        return
    text = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB available"
    if memory.limited_by:
        text += f", limited by {memory.limited_by}"
    if memory.available < 2 * GIB:
        yield Finding("memory", "fix", text, "close other programs: 2 GiB are comfortable")
    else:
        yield Finding("memory", "ok", text)


def shared_memory(shared: machine.Memory | None) -> Iterator[Finding]:
    """/dev/shm, through which ranks of one machine can pass tensors."""
    if shared is None:
        yield Finding("shared memory", "note", "no /dev/shm on this system; none is needed")
        return
    text = f"{shared.available / GIB:.2f} of {shared.total / GIB:.2f} GiB free in /dev/shm"
    if shared.available < MIN_SHARED_MEMORY:
        advice = "in Docker: run with --shm-size=1g"
        yield Finding("shared memory", "fix", text, advice)
    else:
        yield Finding("shared memory", "ok", text)


def models() -> Iterator[Finding]:
    """Every model known by name: here or not, how large, how it may be cut."""
    try:
        from labkit.models import library
    except ImportError as error:
        yield Finding("models", "broken", str(error), "install labkit's requirements")
        return
    for name, model in library.known_models().items():
        folder = library.model_directory(name)
        if library.is_present(name):
            yield Finding("models", "ok", f"{name}: {_size(folder)}, {_degrees(folder)}")
        elif model.is_packaged:
            yield Finding("models", "fix", f"{name} is missing from labkit", "install labkit again")
        else:
            room = f"needs {model.disk_bytes / 1e9:.2f} GB of disk meanwhile"
            yield Finding("models", "fix", f"{name} is not here", f"labkit fetch {name} ({room})")


def course_packages() -> Iterator[Finding]:
    """What the notebooks want beyond labkit's own requirements."""
    versions = {name: _version(name) for name in COURSE_PACKAGES}
    here = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    if here:
        yield Finding("notebooks", "ok", here)
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        yield Finding(
            "notebooks",
            "fix",
            f"not here: {', '.join(missing)}",
            "needed for the notebooks only: `make lab`, or pip install " + " ".join(missing),
        )


def _degrees(folder: Path) -> str:
    """`TP 1, 3 (2 with uneven heads)`."""
    try:
        spec = DecoderSpec.from_hf(folder)
    except ValueError as error:
        return str(error)
    even = legal_tensor_parallel_sizes(spec, limit=SHOWN_TP)
    uneven = legal_tensor_parallel_sizes(spec, limit=SHOWN_TP, allow_uneven_heads=True)
    more = [str(size) for size in uneven if size not in even]
    note = f" ({', '.join(more)} with uneven heads)" if more else ""
    return f"TP {', '.join(map(str, even))}{note}"


def _size(folder: Path) -> str:
    return f"{sum(f.stat().st_size for f in folder.rglob('*') if f.is_file()) / 1e6:.1f} MB"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _import_torch() -> "ModuleType | None":
    try:
        import torch
    except ImportError:
        return None
    return torch
