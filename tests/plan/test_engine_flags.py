"""The flags of each engine say the layout, and what an engine cannot express is said instead."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import pytest

from labkit.plan.device_presets import device
from labkit.plan.engine_cache_dtypes import cache_dtype_word, missing_cache_dtype
from labkit.plan.engine_flags import ENGINES, flags, missing
from labkit.plan.engine_options import CACHE_BYTES, EngineOptions
from labkit.plan.engine_sources import SOURCES
from labkit.plan.layout import Layout
from labkit.plan.model_presets import resolve_model
from labkit.plan.search import SLO, Objective, Question, compare

NAME = "deepseek-ai/DeepSeek-V3"
WIDE = Question(
    resolve_model("deepseek-v3"),
    device("h200"),
    32,
    Objective.THROUGHPUT_PER_GPU,
    batch=256,
    options=EngineOptions(kv_cache_dtype="fp8", num_redundant_experts=32),
)
DENSE = Question(
    resolve_model("llama-3.1-70b"), device("h100"), 16, Objective.THROUGHPUT_PER_GPU, batch=32
)


def only(question, layout):
    (found,) = compare(question, [layout]).ranked
    return found


def arguments(text):
    """Flags and values of the one command; a flag alone has the value ""."""
    (command,) = (
        line for line in text.splitlines() if line.startswith(("vllm", "python", "trtllm"))
    )
    found, words = {}, shlex.split(command)
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            found[word] = "" if after.startswith("--") else after
    return found


def test_dense_tp_and_pp():
    found = only(DENSE, Layout(4, 2, replicas=2))
    vllm = arguments(flags("vllm", found, "m"))
    assert vllm["--tensor-parallel-size"] == "4"
    assert vllm["--pipeline-parallel-size"] == "2"
    assert vllm["--gpu-memory-utilization"] == "0.9"
    assert vllm["--max-num-seqs"] == "32"
    assert vllm["--max-model-len"] == "1280"
    assert not {"--data-parallel-size", "--enable-expert-parallel", "--kv-cache-dtype"} & set(vllm)
    sglang = arguments(flags("sglang", found, "m"))
    assert (sglang["--tp-size"], sglang["--pp-size"]) == ("4", "2")
    assert "--enable-dp-attention" not in sglang
    trtllm = arguments(flags("tensorrt-llm", found, "m"))
    assert (trtllm["--tp_size"], trtllm["--pp_size"]) == ("4", "2")
    assert "enable_attention_dp" not in flags("tensorrt-llm", found)
    for engine in ENGINES:
        assert "# 2 of these, behind a router:" in flags(engine, found)


def test_dp_attention_with_experts_over_all_ranks():
    found = only(WIDE, Layout(1, 1, 32, 32))
    vllm = arguments(flags("vllm", found, NAME))
    assert (vllm["--tensor-parallel-size"], vllm["--data-parallel-size"]) == ("1", "32")
    assert vllm["--enable-expert-parallel"] == ""
    assert vllm["--max-num-seqs"] == "8"
    assert json.loads(vllm["--eplb-config"]) == {"num_redundant_experts": 32}
    assert vllm["--kv-cache-dtype"] == "fp8"
    sglang = arguments(flags("sglang", found, NAME))
    assert (sglang["--tp-size"], sglang["--dp-size"], sglang["--ep-size"]) == ("32", "32", "32")
    assert sglang["--enable-dp-attention"] == ""
    assert sglang["--max-running-requests"] == "256"
    assert sglang["--chunked-prefill-size"] == str(32 * 8192)
    assert sglang["--ep-num-redundant-experts"] == "32"
    assert sglang["--kv-cache-dtype"] == "fp8_e4m3"
    text = flags("tensorrt-llm", found, NAME)
    trtllm = arguments(text)
    assert (trtllm["--tp_size"], trtllm["--ep_size"]) == ("32", "32")
    assert "enable_attention_dp: true" in text
    assert "  dtype: fp8" in text
    for engine in ENGINES:
        assert "# each over 4 nodes:" in flags(engine, found)
        assert NAME in flags(engine, found, NAME)


@pytest.mark.parametrize(
    ("engine", "layout", "words"),
    [
        ("vllm", Layout(2, 1, 8, 8), "EP is all of TP x DP = 16, or off; EP 8 has no flag"),
        ("tensorrt-llm", Layout(2, 1, 8, 16), "either TP or DP over the whole stage, not both"),
    ],
)
def test_what_an_engine_cannot_express_is_said_and_no_flag_invented(engine, layout, words):
    found = only(replace(WIDE, options=None), replace(layout, replicas=2))
    text = flags(engine, found)
    assert words in text
    assert text.startswith("# ")
    assert len(text.splitlines()) == 1
    assert not missing("sglang", layout)
    assert "--tp-size 16" in flags("sglang", found)


@pytest.mark.parametrize("layout", [Layout(8, 1, 4, 1), Layout(8, 1, 1, 8), Layout(8, 2)])
def test_vllm_has_ep_off_or_over_everything(layout):
    assert missing("vllm", layout) == ""


def cache_dtype(engine, dtype, model="llama-3.1-70b"):
    """What an engine is told of its KV cache: a word, None for nothing, or why it cannot."""
    options = EngineOptions(kv_cache_dtype=dtype)
    question = replace(DENSE, model=resolve_model(model), options=options)
    text = flags(engine, only(question, Layout(8, replicas=2)))
    if text.startswith("# ") and len(text.splitlines()) == 1:
        return text
    if engine != "tensorrt-llm":
        return arguments(text).get("--kv-cache-dtype")
    found = [line.split()[1] for line in text.splitlines() if line.startswith("  dtype: ")]
    return found[0] if found else None


TOLD = {
    "vllm": {
        **{"auto": None, "bfloat16": "bfloat16", "float16": "float16"},
        **{"fp8": "fp8", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"},
    },
    "sglang": {
        **{"auto": None, "bfloat16": "bf16"},
        **{"fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2"},
    },
    "tensorrt-llm": {"auto": None, "bfloat16": None, "fp8": "fp8", "fp8_e4m3": "fp8"},
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", ["auto", *CACHE_BYTES])
def test_each_engine_is_told_a_cache_dtype_in_its_own_words_or_says_it_has_none(engine, dtype):
    found = cache_dtype(engine, dtype)
    if dtype in TOLD[engine]:
        assert found == TOLD[engine][dtype]
        assert missing_cache_dtype(engine, dtype, "bfloat16") == ""
    else:
        assert f"has no KV cache in {dtype}" in found
        assert "takes auto" in found
        nearest = found.rpartition("nearest: ")[2]
        assert nearest in TOLD[engine]
        assert CACHE_BYTES.get(nearest, 2.0) <= CACHE_BYTES[dtype]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_16_bit_cache_of_the_models_own_dtype_needs_no_word(engine):
    """Qwen2.5's AWQ checkpoint is in float16, which SGLang and TensorRT-LLM have as auto only."""
    found = cache_dtype(engine, "float16", "qwen2.5-72b-awq")
    assert found == ("float16" if engine == "vllm" else None)
    assert cache_dtype_word(engine, "auto", "float32") == ""
    assert "has no KV cache in float32" in missing_cache_dtype(engine, "float32", "float32")


def test_a_cache_no_engine_has_is_planned_all_the_same():
    question = replace(DENSE, options=EngineOptions(kv_cache_dtype="int8"))
    found, plain = only(question, Layout(8, replicas=2)), only(DENSE, Layout(8, replicas=2))
    (stage,), (wide,) = found.memory.stages, plain.memory.stages
    assert stage.kv_bytes_per_token == wide.kv_bytes_per_token / 2
    for engine in ENGINES:
        text = flags(engine, found)
        assert text.endswith("nearest: fp8")
        assert len(text.splitlines()) == 1


def test_an_engine_that_is_not_known_has_no_cache_dtypes():
    with pytest.raises(ValueError, match=r"no engine is called 'vlm'; near it: vllm"):
        cache_dtype_word("vlm", "fp8", "bfloat16")


def test_memory_shares_mean_the_same_bytes_in_every_engine():
    found = only(DENSE, Layout(8))
    (stage,) = found.memory.stages
    total = DENSE.device.memory_bytes
    static = float(arguments(flags("sglang", found))["--mem-fraction-static"])
    used = stage.total_weight_bytes + stage.kv_pool_bytes
    assert static * total == pytest.approx(used, rel=2e-3)
    free = float(arguments(flags("tensorrt-llm", found))["--kv_cache_free_gpu_memory_fraction"])
    assert free * (total - stage.taken_bytes) == pytest.approx(stage.kv_pool_bytes, rel=2e-3)


def test_two_pools_are_two_servers_and_something_in_front():
    question = replace(
        DENSE, batch=None, slo=SLO(2.0, 0.05), prompt_tokens=4096, allow_disaggregation=True
    )
    answer = compare(question, [Layout(8, replicas=2), Layout(4, replicas=4)])
    found = next(each for each in answer.ranked if each.pools is not None)
    vllm, sglang, trtllm = (flags(engine, found) for engine in ENGINES)
    assert vllm.index("kv_producer") < vllm.index("kv_consumer")
    assert "proxy" in vllm.splitlines()[-1]
    assert sglang.index("--disaggregation-mode prefill") < sglang.index("mode decode")
    assert trtllm.count("backend: NIXL") == 2
    assert "disaggregated" in trtllm.splitlines()[-1]


def test_engines_have_sources_and_an_unknown_one_is_refused_with_near_names():
    assert all(source.url.startswith("https://") for some in SOURCES.values() for source in some)
    found = only(DENSE, Layout(8))
    with pytest.raises(ValueError, match=r"no engine is called 'vlm'; near it: vllm"):
        flags("vlm", found)
