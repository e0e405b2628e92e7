"""GGUF as a checkpoint under Hugging Face names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFReader
from gguf.quants import dequantize, quantize

from labkit.models.checkpoint import CheckpointError, open_checkpoint
from labkit.models.gguf import GGUFCheckpoint
from labkit.models.gguf_metadata import GGUFMetadata
from labkit.models.llama import load_model
from labkit.plan.decoder import DecoderSpec, RopeScaling, UnsupportedModelError
from labkit.ranks.comm import Comm

from .conftest import LLAMA_CONFIG, random_weights

QWEN3_CONFIG = LLAMA_CONFIG | {"model_type": "qwen3", "tie_word_embeddings": False}
QWEN2_CONFIG = LLAMA_CONFIG | {"model_type": "qwen2"}


@pytest.mark.parametrize("config", [LLAMA_CONFIG, QWEN2_CONFIG, QWEN3_CONFIG])
def test_gguf_gives_back_the_weights_it_was_written_from(
    config: dict[str, Any], made_gguf: Callable[..., Path]
) -> None:
    weights = random_weights(config)
    checkpoint = open_checkpoint(made_gguf(config, weights))
    assert set(checkpoint.names()) == set(weights)
    for name, weight in weights.items():
        torch.testing.assert_close(checkpoint.read(name), weight, rtol=0, atol=0)


@pytest.mark.parametrize(
    "config",
    # transformers' reader takes Qwen3's heads to be 128 wide whatever the file says.
    [LLAMA_CONFIG, QWEN2_CONFIG, QWEN3_CONFIG | {"head_dim": 128}],
)
def test_logits_agree_with_transformers_reading_the_same_file(
    config: dict[str, Any], made_gguf: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    path = made_gguf(config, random_weights(config), Kind.Q8_0)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    ).eval()
    ids = torch.tensor([[5, 290, 17, 44, 203, 9, 9, 120]])
    model = load_model(path, Comm.solo())
    ours = model.lm_head.gather(model(ids, model.new_cache(1, 8), all_positions=True))
    with torch.inference_mode():
        expected = theirs(ids).logits
    assert expected.std() > 0.1
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-4)


def test_q_and_k_rows_lie_in_another_order_in_the_file(made_gguf: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    stored = {
        tensor.name: tensor.data for tensor in GGUFReader(made_gguf(LLAMA_CONFIG, weights)).tensors
    }
    query = weights["model.layers.0.self_attn.q_proj.weight"].numpy()
    assert not np.array_equal(stored["blk.0.attn_q.weight"], query)
    assert np.array_equal(np.sort(stored["blk.0.attn_q.weight"], 0), np.sort(query, 0))
    value = weights["model.layers.0.self_attn.v_proj.weight"].numpy()
    assert np.array_equal(stored["blk.0.attn_v.weight"], value)


@pytest.mark.parametrize("kind", [Kind.Q4_1, Kind.Q8_0, Kind.F16, Kind.BF16])
def test_gguf_dequantises_exactly_as_the_format_defines(
    kind: Kind, made_gguf: Callable[..., Path]
) -> None:
    weights = random_weights(LLAMA_CONFIG)
    checkpoint = open_checkpoint(made_gguf(LLAMA_CONFIG, weights, kind))
    for name, weight in weights.items():
        if weight.ndim == 2:
            expected = torch.from_numpy(dequantize(quantize(weight.numpy(), kind), kind))
            torch.testing.assert_close(checkpoint.read(name).float(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("kind", [Kind.F32, Kind.Q4_1])
@pytest.mark.parametrize("rows", [range(0, 64), range(5, 41), range(64, 64), range(63, 64)])
@pytest.mark.parametrize("columns", [None, range(0, 32), range(7, 45), slice(60, 64)])
def test_gguf_reads_any_part(
    kind: Kind, rows: range, columns: range | slice | None, made_gguf: Callable[..., Path]
) -> None:
    checkpoint = open_checkpoint(made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG), kind))
    for part in ("q_proj", "o_proj"):
        name = f"model.layers.1.self_attn.{part}.weight"
        whole = checkpoint.read(name)
        column_slice = (
            columns
            if isinstance(columns, slice)
            else slice(*((columns.start, columns.stop) if columns else (None,)))
        )
        expected = whole[rows.start : rows.stop, column_slice]
        torch.testing.assert_close(checkpoint.read(name, rows, columns), expected, rtol=0, atol=0)


def test_part_outside_the_tensor_is_refused(made_gguf: Callable[..., Path]) -> None:
    checkpoint = open_checkpoint(made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG)))
    with pytest.raises(IndexError, match=r"model\.norm\.weight.*size 64"):
        checkpoint.read("model.norm.weight", range(60, 70))
    with pytest.raises(CheckpointError, match="no tensor nonsense"):
        checkpoint.read("nonsense")


@pytest.mark.parametrize("config", [LLAMA_CONFIG, QWEN2_CONFIG, QWEN3_CONFIG])
def test_spec_from_gguf_equals_the_config_it_was_written_from(
    config: dict[str, Any], made_gguf: Callable[..., Path]
) -> None:
    checkpoint = open_checkpoint(made_gguf(config, random_weights(config)))
    assert checkpoint.spec == DecoderSpec.from_hf(config)


def test_unknown_architecture_is_refused_by_name(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG), architecture="gemma2")
    with pytest.raises(UnsupportedModelError, match=r"gemma2.*llama, qwen2, qwen3"):
        open_checkpoint(path)


def test_rotary_scaling_kept_as_a_table_is_refused(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(
        LLAMA_CONFIG,
        random_weights(LLAMA_CONFIG),
        extra_tensors={"rope_freqs.weight": np.ones(8, np.float32)},
    )
    with pytest.raises(UnsupportedModelError, match=r"rope_freqs\.weight"):
        open_checkpoint(path)


def test_unknown_rotary_scaling_is_refused(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(
        LLAMA_CONFIG,
        random_weights(LLAMA_CONFIG),
        extra_fields={"llama.rope.scaling.type": "longrope"},
    )
    with pytest.raises(UnsupportedModelError, match="longrope"):
        open_checkpoint(path)


def test_rotary_scaling_and_window_are_read(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(
        LLAMA_CONFIG,
        random_weights(LLAMA_CONFIG),
        extra_fields={
            "llama.rope.scaling.type": "yarn",
            "llama.rope.scaling.factor": 4.0,
            "llama.rope.scaling.original_context_length": 128,
            "llama.attention.sliding_window": 33,
        },
    )
    spec = open_checkpoint(path).spec
    assert spec.model_type == "mistral"
    assert spec.sliding_window == 33
    assert spec.rope_scaling == RopeScaling("yarn", 4.0, 128)


def test_sentencepiece_tokenizer_is_refused_by_name(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG), tokenizer_model="llama")
    with pytest.raises(UnsupportedModelError, match=r"tokenizer\.ggml\.model.*llama"):
        open_checkpoint(path).load_tokenizer()


def test_missing_metadata_is_named(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(
        LLAMA_CONFIG,
        random_weights(LLAMA_CONFIG),
        extra_fields={"llama.rope.scaling.type": "linear"},
    )
    with pytest.raises(CheckpointError, match=r"no metadata llama\.rope\.scaling\.factor"):
        open_checkpoint(path)


def test_unknown_splitting_rule_is_refused(made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG), pre_tokenizer="tekken")
    with pytest.raises(UnsupportedModelError, match="tekken"):
        open_checkpoint(path).load_tokenizer()


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("llama.attention.head_count", 0, "num_attention_heads = 0"),
        ("llama.attention.head_count", "four", "num_attention_heads = 'four'"),
        ("llama.embedding_length", "wide", "hidden_size = 'wide'"),
        ("llama.attention.layer_norm_rms_epsilon", float("nan"), "rms_norm_eps = nan"),
        ("llama.rope.freq_base", "high", "rope_theta = 'high'"),
        ("tokenizer.ggml.eos_token_id", 2**32 - 1, "eos_token_id = 4294967295"),
        ("llama.vocab_size", "many", "vocab_size = 'many'"),
    ],
)
def test_metadata_of_another_kind_is_refused_by_name(
    field: str,
    value: Any,
    named: str,
    made_gguf: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG))
    read = GGUFMetadata.get
    monkeypatch.setattr(
        GGUFMetadata,
        "get",
        lambda self, key, default=None: value if key == field else read(self, key, default),
    )
    with pytest.raises(UnsupportedModelError, match=f"config field {named}"):
        open_checkpoint(path)


def test_nan_in_a_gguf_is_named(made_gguf: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    weights["model.norm.weight"][3] = float("nan")
    checkpoint = open_checkpoint(made_gguf(LLAMA_CONFIG, weights))
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight in .*made\.gguf: 1 of the 64"):
        checkpoint.read("model.norm.weight")


def test_missing_and_extra_tensors_are_named(made_gguf: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    del weights["model.layers.1.mlp.up_proj.weight"]
    extra = {"blk.0.ffn_gate_inp.weight": np.ones((4, 64), np.float32)}
    path = made_gguf(LLAMA_CONFIG, weights, extra_tensors=extra)
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(path)
    assert "model.layers.1.mlp.up_proj.weight [96, 64] is missing" in str(error.value)
    assert "blk.0.ffn_gate_inp.weight" in str(error.value)


@pytest.mark.parametrize("kept", [0, 3, 100, 5_000, 20_000, -1])
def test_truncated_gguf_is_refused_by_name(kept: int, made_gguf: Callable[..., Path]) -> None:
    path = made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"made\.gguf"):
        open_checkpoint(path)


def test_rebuilt_tokenizer_encodes_like_the_one_it_came_from(
    made_gguf: Callable[..., Path], byte_level_tokenizer: Any
) -> None:
    checkpoint = GGUFCheckpoint(made_gguf(LLAMA_CONFIG, random_weights(LLAMA_CONFIG)))
    rebuilt = checkpoint.load_tokenizer()
    for text in ("the cat sat on 1234 hats", "  naïve\n\n\tπ <|im_end|>", ""):
        ids = rebuilt.encode(text)
        assert ids == byte_level_tokenizer.encode(text).ids
        assert rebuilt.decode(ids, skip_special_tokens=False) == text
