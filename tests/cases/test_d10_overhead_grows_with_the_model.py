"""Case D10: a 70B in INT8 on one 80 GB GPU (vllm PR 12569): some 3 GiB are neither weights nor
cache."""

import pytest

from labkit.plan.device_presets import DEVICES
from labkit.plan.engine_options import EngineOptions
from labkit.plan.memory import plan_memory
from labkit.plan.memory_questions import tokens_in_pool, unexplained_memory
from labkit.plan.model import ModelSpec
from labkit.plan.model_presets import MODELS

GIB = 2**30
INT8 = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True},
        }
    },
    "ignore": ["lm_head"],
}
MODEL = ModelSpec.from_hf(MODELS["llama-3.1-70b"].config | {"quantization_config": INT8})
OPTIONS = EngineOptions(gpu_memory_utilization=0.98, max_num_batched_tokens=2048)


def test_the_weights_are_what_the_log_says():
    assert MODEL.weight_bytes / GIB == pytest.approx(67.72, abs=0.1)


def test_1381_blocks_are_10_79_requests():
    answer = tokens_in_pool(MODEL, 1381 * 16 * 320 * 1024, length=2048)
    assert (answer.tokens, answer.bytes_per_token) == (22_096, 320 * 1024)
    assert answer.concurrency == pytest.approx(10.79, abs=0.005)
    assert answer.pool_bytes / GIB == pytest.approx(6.74, abs=0.005)


@pytest.mark.parametrize("name", ["h100", "a100-80gb"])
def test_the_plan_leaves_three_gib_for_the_rest(name):
    left = unexplained_memory(MODEL, DEVICES[name], 1381, options=OPTIONS)
    assert left.other_bytes / GIB == pytest.approx(3.1, abs=0.25)
    [stage] = plan_memory(MODEL, DEVICES[name], options=OPTIONS).stages
    assert (stage.activation_bytes + stage.runtime_bytes) / GIB == pytest.approx(3.1, abs=0.25)
    assert stage.kv_blocks == pytest.approx(1381, rel=0.07)
