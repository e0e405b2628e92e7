"""`labkit plan`: answers as tables and as JSON of a documented schema; refusals in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator

from labkit.cli import main
from labkit.plan.model_presets import MODELS
from labkit.plan_cli.answer_json import schema

SEARCH = "qwen2.5-72b --gpu h100 --gpus 8 --slo-tpot-ms 25"


def plan(capsys, words: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of `labkit plan WORDS`."""
    code = main(["plan", *words.split()])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys, words: str) -> dict:
    _, out, err = plan(capsys, f"{words} --json")
    assert not err
    found = json.loads(out)
    validator = Draft202012Validator(schema())
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(found)]
    assert not errors
    return found


@pytest.mark.parametrize(
    "words",
    [
        SEARCH,
        "deepseek-v3 --gpu h200 --gpus 16 --objective kv-capacity",
        "llama-3.1-8b --gpus 4 --slo-tpot-ms 20 --slo-ttft-ms 500 --disaggregation",
        "llama-3.1-8b --objective cost --price 2.5 --slo-tpot-ms 20 --link pcie4",
        "qwen2.5-72b --slo-tpot-ms 1",
        "fit llama-3.1-70b -tp 2",
        "fit smollm2-135m -tp 2",
        "kv gpt-oss-120b",
        "kv qwen3.5-397b-a17b --length 4096 --kv-cache-dtype fp8",
        "explain llama-3.1-8b -tp 3",
        "explain deepseek-v3 --gpu h200 -tp 8 -dp 2 --enable-expert-parallel --batch 64",
        "explain llama-3.1-70b --blocks 29728",
    ],
)
def test_json_answers_are_what_the_schema_says(capsys, words):
    answer(capsys, words)


def test_the_schema_is_itself_one_and_can_be_printed(capsys):
    Draft202012Validator.check_schema(schema())
    code, out, _ = plan(capsys, "schema")
    assert code == 0
    assert json.loads(out) == schema()


def test_the_schema_refuses_another_shape(capsys):
    found = answer(capsys, "kv llama-3.1-8b")
    validator = Draft202012Validator(schema())
    assert list(validator.iter_errors({k: v for k, v in found.items() if k != "length"}))
    assert list(validator.iter_errors(found | {"schema_version": 2}))


def test_parts_and_terms_of_an_answer_sum(capsys):
    for candidate in answer(capsys, SEARCH)["ranked"]:
        decode = candidate["decode"]
        assert sum(decode["terms_seconds"].values()) == pytest.approx(decode["seconds"])
        for stage in candidate["memory"]["stages"]:
            assert sum(stage["parts_bytes"].values()) == pytest.approx(stage["usable_bytes"])


def test_the_answer_states_its_objective_reasons_and_flags(capsys):
    found = answer(capsys, SEARCH)
    assert "most output tokens per second for each GPU" in found["objective"]
    best = found["ranked"][0]
    assert best["tpot_seconds"] <= 0.025
    assert best["reasons_against"]
    assert set(best["flags"]) == {"vllm", "sglang", "tensorrt-llm"}
    assert "vllm serve Qwen/Qwen2.5-72B --tensor-parallel-size" in best["flags"]["vllm"]
    assert {one["cause"] for one in found["rejected"]} == {"too large", "SLO missed"}


def test_the_table_says_the_same(capsys):
    code, out, _ = plan(capsys, SEARCH)
    found = answer(capsys, SEARCH)
    assert code == 0
    for one in found["ranked"]:
        assert one["title"] in out
    for words in ("modelled", "limited by", "Rejected:", "too large", "vllm serve"):
        assert words in out


def test_without_an_slo_the_objective_is_latency(capsys):
    assert "shortest time" in answer(capsys, "llama-3.1-8b --gpus 2")["objective"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("qwen2.5-72b --slo-tpot-ms 1", 1),
        ("fit llama-3.1-70b", 1),
        ("fit llama-3.1-70b -tp 4", 0),
        ("explain qwen2.5-0.5b -tp 4", 1),
        ("explain qwen2.5-0.5b -tp 2", 0),
    ],
)
def test_the_exit_code_says_whether_it_can_be(capsys, words, code):
    assert plan(capsys, words)[0] == code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nosuch-model", "no preset, no Hugging Face id of one and no path"),
        ("fit", "one MODEL is needed, not none"),
        ("llama-3.1-8b qwen3-8b", "one MODEL is needed"),
        ("llama-3.1-8b --gpu h900", "no GPU is called 'h900'; near it"),
        ("llama-3.1-8b --gpus 0", "gpus is 0"),
        ("llama-3.1-8b --gpus 1000", "covers 1 to 512"),
        ("llama-3.1-8b --link string", "no link is called 'string'"),
        ("llama-3.1-8b --objective cost --slo-tpot-ms 9", "cost needs price_per_gpu_hour"),
        ("llama-3.1-8b --objective throughput", "give an SLO"),
        ("llama-3.1-8b --slo-tpot-ms nan", "tpot is nan"),
        ("llama-3.1-8b --slo-tpot-ms -3", "tpot is -0.003"),
        ("llama-3.1-8b --gpu-memory-utilization 90", "gpu_memory_utilization is 90"),
        ("llama-3.1-8b --memory-gib 0", "memory_bytes is 0"),
        ("llama-3.1-8b --prompt 200000", "beyond the model's context"),
        ("llama-3.1-8b --collectives nccl", "no collective preset is called 'nccl'"),
        ("llama-3.1-8b --top 0", "--top is 0"),
        ("llama-3.1-8b -tp 2", "does not belong to `labkit plan search`"),
        ("kv llama-3.1-8b --gpu h100", "--gpu does not belong to `labkit plan kv`"),
        ("kv llama-3.1-8b --length 0", "length is 0"),
        ("kv llama-3.1-8b -tp 0", "TP must be at least 1, not 0"),
        ("fit llama-3.1-8b -ep 3 -tp 2", "EP 3 does not divide"),
        ("explain llama-3.1-8b --blocks 0", "blocks is 0"),
        ("explain llama-3.1-8b --blocks 100 -tp 2", "exclude each other"),
        ("fit llama-3.1-70b -tp 3", "the layout is illegal"),
        ("explain llama-3.1-8b --prompt 0", "prompt is 0"),
        ("explain llama-3.1-8b -pp 64", "PP 64 leaves stages empty"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(capsys, words, message):
    code, out, err = plan(capsys, words)
    said = out if code == 1 else err
    assert code in (1, 2)
    assert message in said
    assert "Traceback" not in err


def test_an_option_that_is_not_known_is_told_with_those_spelt_like_it(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["plan", "kv", "llama-3.1-8b", "--lenght", "4096"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "usage: labkit plan" in said
    assert "unrecognized arguments: --lenght (near it: --length" in said


@pytest.mark.parametrize("words", ["fit llama-3.1-8b --tp 2", "fit llama-3.1-8b -tp 2"])
def test_degrees_have_the_short_names_of_all_engines(capsys, words):
    assert plan(capsys, words) == plan(capsys, "fit llama-3.1-8b --tensor-parallel-size 2")


def test_a_model_that_is_too_large_is_told_how_many_gpus_hold_it(capsys):
    _, told, _ = plan(capsys, "deepseek-v3 --gpu h100 --gpus 8")
    assert "No layout serves." in told
    assert told.index("Nearest: TP 8 x EP 8") < told.index("Rejected: ")
    assert "Doubled until it fits: 16 GPUs, TP 8 x DP 2 x EP 16." in told


def test_a_config_on_disk_is_planned_for(capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(dict(MODELS["qwen3-8b"].config)))
    found = answer(capsys, f"kv {tmp_path}")
    assert found["bytes_per_token"] == MODELS["qwen3-8b"].model.kv_bytes_per_token(2)
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    code, _, err = plan(capsys, f"kv {tmp_path}")
    assert code == 2
    assert "model_type" in err


@pytest.mark.parametrize(
    ("limit", "titles"),
    [("13", ["2 replicas x TP 4", "TP 8"]), ("10", ["TP 8"])],
)
def test_the_textbooks_two_limits_have_two_answers(capsys, limit, titles):
    words = f"qwen2.5-72b --gpu textbook-80gb --textbook --batch 1 --slo-tpot-ms {limit}"
    found = answer(capsys, words)
    assert [one["title"] for one in found["ranked"]][: len(titles)] == titles
    assert found["ranked"][0]["tpot_seconds"] == pytest.approx(
        0.0128 if limit == "13" else 0.0099, rel=0.01
    )
    too_large = [one for one in found["rejected"] if one["layout"]["tp"] == 2]
    assert any("are more than the 67.1 GiB" in one["reasons"][0] for one in too_large)


def test_the_planner_needs_no_torch():
    program = (
        "import sys; sys.modules['torch'] = None; sys.modules['numpy'] = None\n"
        "from labkit.cli import main\n"
        "sys.exit(main(['plan', 'llama-3.1-8b', '--gpus', '2']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "TP 2" in done.stdout
