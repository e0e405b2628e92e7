"""Where a number comes from: what ran, on what kind of machine, when. Names no host and no path."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from labkit.doctor.machine import cores

Label = Literal["measured", "captured", "modelled", "assumed"]


@dataclass(frozen=True)
class Provenance:
    """Printed and stored beside every result."""

    label: Label
    date: str
    """UTC, ISO 8601, to the second."""
    commit: str | None
    """Git commit of this labkit; None where it was installed without its repository."""
    has_local_changes: bool | None
    """Whether tracked files other than results differed from that commit."""
    cpu: str
    cores: int
    """Cores this process may use."""
    threads: str
    """How many threads did the work, in words when it varied."""
    system: str
    python: str
    packages: tuple[tuple[str, str], ...]
    """Name and version of each package that matters for the number."""

    @classmethod
    def here(
        cls,
        *,
        label: Label = "measured",
        threads: int | str = 1,
        packages: Iterable[str] = ("torch", "numpy"),
    ) -> Provenance:
        """The provenance of a number obtained now, in this process's environment."""
        commit, has_local_changes = _git_state()
        return cls(
            label=label,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            commit=commit,
            has_local_changes=has_local_changes,
            cpu=_cpu_model(),
            cores=cores().whole,
            threads=str(threads),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            packages=tuple((name, _version(name)) for name in packages),
        )

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Provenance:
        """Inverse of `as_dict`. Raises TypeError where a field is missing."""
        return cls(**{**fields, "packages": tuple(fields["packages"].items())})

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"packages": dict(self.packages)}

    def __str__(self) -> str:
        commit = self.commit[:10] if self.commit else "unknown commit"
        changed = " with local changes" if self.has_local_changes else ""
        versions = ", ".join(f"{name} {version}" for name, version in self.packages)
        return (
            f"{self.label} {self.date}, {commit}{changed}, {self.cpu}, {self.cores} cores, "
            f"threads: {self.threads}, {self.system}, Python {self.python}, {versions}"
        )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    """The processor's name and model numbers, which says nothing about whose machine it is in."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields: dict[str, str] = {}
        for line in cpuinfo.read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
        if "model name" in fields:
            family, model = fields.get("cpu family", "?"), fields.get("model", "?")
            return f"{fields['model name']} (family {family}, model {model})"
    if platform.system() == "Darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    return platform.processor() or platform.machine()


def _git_state() -> tuple[str | None, bool | None]:
    """Commit and whether tracked files changed; (None, None) if this file is in no repository."""
    here = Path(__file__)
    git = ("git", "-C", str(here.parent))
    if _output(*git, "ls-files", "--error-unmatch", here.name) is None:
        return None, None
    commit = _output(*git, "rev-parse", "HEAD")
    top = (":/", ":(top,exclude)benchmarks/results")
    changes = _output(*git, "status", "--porcelain", "--untracked-files=no", "--", *top)
    return commit, None if changes is None else bool(changes)


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
