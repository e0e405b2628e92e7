"""Cores, memory and shared memory that this process may really use: containers give less.

Every function takes the root of the file system, so that tests can bring their own.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/")


@dataclass(frozen=True)
class Cores:
    """`usable` counts what this process may use at once, `installed` what the machine has."""

    usable: float
    installed: int
    limited_by: str | None = None  # "the container's CPU quota", "CPU affinity"

    @property
    def whole(self) -> int:
        """Cores that can be kept busy, at least one."""
        return max(1, math.floor(self.usable))


@dataclass(frozen=True)
class Memory:
    """Bytes."""

    total: int
    available: int
    limited_by: str | None = None


def cores(root: Path = ROOT) -> Cores:
    """The smallest of what is installed, what affinity allows and what the cgroup's quota gives."""
    installed = os.cpu_count() or 1
    found = Cores(installed, installed)
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
        if allowed < found.usable:
            found = Cores(allowed, installed, "CPU affinity")
    quota = _cpu_quota(root)
    if quota is not None and quota < found.usable:
        found = Cores(quota, installed, "the container's CPU quota")
    return found


def memory(root: Path = ROOT) -> Memory | None:
    """Total and available memory, or the container's limit where that is lower; None: unknown."""
    meminfo = _read(root / "proc/meminfo")
    if meminfo is None:
        try:
            page = os.sysconf("SC_PAGE_SIZE")
            total = page * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError, AttributeError):
            return None
        return Memory(total, total)
    kib = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in meminfo.splitlines())
        if rest.split()
    }
    total = kib.get("MemTotal", 0) * 1024
    available = kib.get("MemAvailable", kib.get("MemFree", 0)) * 1024
    limit, used = _memory_limit(root)
    if limit is not None and limit < total:
        left = max(0, limit - used)
        return Memory(limit, min(left, available), "the container's memory limit")
    return Memory(total, available)


def shared_memory(path: Path = Path("/dev/shm")) -> Memory | None:
    """Size and free part of /dev/shm; None where there is none (macOS)."""
    try:
        disk = os.statvfs(path)
    except (OSError, AttributeError):
        return None
    return Memory(disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize)


def _cpu_quota(root: Path) -> float | None:
    """Cores' worth of CPU time that the tightest enclosing cgroup gives; None: no limit."""
    quotas = []
    for folder in _cgroups(root, "cpu"):
        words = (_read(folder / "cpu.max") or "").split()
        if len(words) == 2 and words[0] != "max":
            quotas.append(int(words[0]) / int(words[1]))
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _memory_limit(root: Path) -> tuple[int | None, int]:
    """Limit and use, in bytes, of the tightest enclosing cgroup."""
    limits = []
    for folder in _cgroups(root, "memory"):
        for limit_file, use_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit = _number(folder / limit_file)
            if limit is not None:
                limits.append((limit, _number(folder / use_file) or 0))
    return min(limits, default=(None, 0))


def _cgroups(root: Path, controller: str) -> list[Path]:
    """Folders of this process's cgroup and of all around it, for cgroup v2 and v1."""
    folders = []
    for line in (_read(root / "proc/self/cgroup") or "0::/").splitlines():
        _, names, path = line.split(":", 2)
        if names and controller not in names.split(","):
            continue
        base = root / "sys/fs/cgroup" / (controller if names else "")
        inner = base / path.lstrip("/")
        folders += [inner, *(up for up in inner.parents if up.is_relative_to(base))]
    return folders


def _number(path: Path) -> int | None:
    text = _read(path)
    try:
        return None if text is None else int(text)
    except ValueError:  # "max"
        return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return None
