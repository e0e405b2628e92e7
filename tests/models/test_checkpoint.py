"""Hugging Face directories: what opens, what is refused, how much memory reading takes."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from labkit.models.checkpoint import CheckpointError, open_checkpoint
from labkit.models.llama import Llama
from labkit.plan.decoder import UnsupportedModelError
from labkit.ranks.comm import Comm

from .conftest import LLAMA_CONFIG, random_weights

Q_PROJ = "model.layers.1.self_attn.q_proj.weight"


def shard(directory: Path, weights: dict[str, Tensor]) -> dict[str, str]:
    """Replace the single file by two shards and an index; returns the weight map."""
    (directory / "model.safetensors").unlink()
    names = sorted(weights)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: weights[name] for name in part}, directory / file)
    weight_map = {name: file for file, part in halves.items() for name in part}
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return weight_map


def test_directory_gives_back_its_weights(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    checkpoint = open_checkpoint(hf_directory(weights))
    assert set(checkpoint.names()) == set(weights)
    for name, weight in weights.items():
        assert name in checkpoint
        assert checkpoint.shape(name) == tuple(weight.shape)
        assert torch.equal(checkpoint.read(name), weight)
    assert "nonsense" not in checkpoint


def test_shards_give_back_the_same_weights(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    directory = hf_directory(weights)
    shard(directory, weights)
    checkpoint = open_checkpoint(directory)
    for name, weight in weights.items():
        assert torch.equal(checkpoint.read(name), weight)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_weights_are_read_in_the_dtype_of_the_file(
    dtype: torch.dtype, hf_directory: Callable[..., Path]
) -> None:
    weights = {name: w.to(dtype) for name, w in random_weights(LLAMA_CONFIG).items()}
    assert torch.equal(open_checkpoint(hf_directory(weights)).read(Q_PROJ), weights[Q_PROJ])


@pytest.mark.parametrize(
    "index",
    [
        (range(3, 9),),
        (None, range(16, 48)),
        (range(0, 64), range(63, 64)),
        (slice(10, 20), slice(None, 5)),
        (range(5, 5), None),
    ],
)
def test_any_part_is_read_as_a_tensor_of_its_own(
    index: tuple[range | slice | None, ...], hf_directory: Callable[..., Path]
) -> None:
    weights = random_weights(LLAMA_CONFIG)
    part = open_checkpoint(hf_directory(weights)).read(Q_PROJ, *index)
    slices = [slice(None) if i is None else slice(i.start, i.stop) for i in index]
    assert torch.equal(part, weights[Q_PROJ][tuple(slices)])
    assert part.is_contiguous()
    assert part.untyped_storage().nbytes() == part.nbytes


@pytest.mark.parametrize("index", [(range(60, 65),), (None, None, None), (range(0, 8, 2),)])
def test_part_that_is_not_there_is_refused(
    index: tuple[range | None, ...], hf_directory: Callable[..., Path]
) -> None:
    with pytest.raises(IndexError, match=r"q_proj\.weight"):
        open_checkpoint(hf_directory()).read(Q_PROJ, *index)


def test_missing_extra_and_misshapen_tensors_are_all_named(
    hf_directory: Callable[..., Path],
) -> None:
    weights = random_weights(LLAMA_CONFIG)
    del weights["model.norm.weight"]
    weights["model.layers.0.mlp.experts.weight"] = torch.ones(3)
    weights[Q_PROJ] = torch.ones(64, 63)
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(hf_directory(weights))
    message = str(error.value)
    assert "tensor model.norm.weight [64] is missing" in message
    assert "tensor model.layers.0.mlp.experts.weight in model.safetensors is not part" in message
    assert f"tensor {Q_PROJ} in model.safetensors has shape [64, 63]" in message
    assert "asks for [64, 64]" in message


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ({"num_hidden_layers": 3}, "model.layers.2.input_layernorm.weight"),
        ({"num_hidden_layers": 1}, "model.layers.1.input_layernorm.weight"),
        ({"attention_bias": True}, "model.layers.0.self_attn.q_proj.bias"),
        ({"model_type": "qwen3"}, "model.layers.0.self_attn.q_norm.weight"),
        ({"vocab_size": 320}, "model.embed_tokens.weight"),
        ({"tie_word_embeddings": False}, "lm_head.weight"),
    ],
)
def test_config_of_another_model_is_refused(
    overrides: dict[str, object], name: str, hf_directory: Callable[..., Path]
) -> None:
    with pytest.raises(CheckpointError, match=name):
        open_checkpoint(hf_directory(random_weights(LLAMA_CONFIG), **overrides))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float8_e4m3fn, torch.bool])
def test_dtype_that_cannot_be_loaded_is_named(
    dtype: torch.dtype, hf_directory: Callable[..., Path]
) -> None:
    weights = random_weights(LLAMA_CONFIG)
    weights[Q_PROJ] = torch.zeros(64, 64).to(dtype)
    with pytest.raises(CheckpointError, match=r"q_proj\.weight in model\.safetensors has dtype"):
        open_checkpoint(hf_directory(weights))


def test_tied_head_may_be_repeated_in_the_file(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(8)
    assert open_checkpoint(hf_directory(weights)).spec.tie_word_embeddings


@pytest.mark.parametrize("kept", [0, 4, 9, 500, 3_000, 60_000, -1])
def test_truncated_file_is_refused(kept: int, hf_directory: Callable[..., Path]) -> None:
    directory = hf_directory()
    file = directory / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match=r"model\.safetensors"):
        open_checkpoint(directory)


def test_file_with_more_than_its_header_says_is_refused(
    hf_directory: Callable[..., Path],
) -> None:
    directory = hf_directory()
    with (directory / "model.safetensors").open("ab") as file:
        file.write(b"more")
    with pytest.raises(CheckpointError, match="longer than its header says"):
        open_checkpoint(directory)


def test_header_that_is_no_json_is_refused(hf_directory: Callable[..., Path]) -> None:
    directory = hf_directory()
    (directory / "model.safetensors").write_bytes((5).to_bytes(8, "little") + b"{nope")
    with pytest.raises(CheckpointError, match="damaged safetensors header"):
        open_checkpoint(directory)


class _Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "consolidated.00.pth", "model.safetensors"])
def test_pickled_weights_are_never_opened(
    name: str, hf_directory: Callable[..., Path], tmp_path: Path
) -> None:
    directory = hf_directory()
    (directory / "model.safetensors").unlink()
    trace = tmp_path / "opened"
    (directory / name).write_bytes(pickle.dumps(_Bomb(trace)))
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(directory)
    assert name in str(error.value)
    assert not trace.exists()


def test_missing_shard_is_named(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    directory = hf_directory(weights)
    shard(directory, weights)
    (directory / "b.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"b\.safetensors.* is missing"):
        open_checkpoint(directory)


def test_index_that_points_elsewhere_is_refused(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    directory = hf_directory(weights)
    index = directory / "model.safetensors.index.json"
    weight_map = shard(directory, weights)
    index.write_text(json.dumps({"weight_map": weight_map | {Q_PROJ: "../a.safetensors"}}))
    with pytest.raises(CheckpointError, match="outside its directory"):
        open_checkpoint(directory)
    swapped = dict.fromkeys(weight_map, "a.safetensors")
    index.write_text(json.dumps({"weight_map": swapped}))
    with pytest.raises(CheckpointError, match=r"in a\.safetensors, which does not hold it"):
        open_checkpoint(directory)
    index.write_text("{}")
    with pytest.raises(CheckpointError, match="no weight_map"):
        open_checkpoint(directory)


def test_what_is_no_model_is_refused(tmp_path: Path, hf_directory: Callable[..., Path]) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        open_checkpoint(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"no config\.json"):
        open_checkpoint(tmp_path)
    text = tmp_path / "model.txt"
    text.write_text("hello")
    with pytest.raises(CheckpointError, match=r"neither a directory.*nor a \.gguf"):
        open_checkpoint(text)
    directory = hf_directory()
    (directory / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"neither model\.safetensors nor"):
        open_checkpoint(directory)
    (directory / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json is not readable JSON"):
        open_checkpoint(directory)


def test_unsupported_architecture_is_refused_by_name(hf_directory: Callable[..., Path]) -> None:
    directory = hf_directory()
    config = LLAMA_CONFIG | {"model_type": "mamba"}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(UnsupportedModelError, match="mamba"):
        open_checkpoint(directory)


@pytest.mark.parametrize("value", ["1.5", '"abc"', "[1, [2]]", "300", "-1", "{}", "true"])
def test_ending_tokens_of_the_generation_config_are_token_ids(
    value: str, hf_directory: Callable[..., Path]
) -> None:
    directory = hf_directory()
    (directory / "generation_config.json").write_text(f'{{"eos_token_id": {value}}}')
    with pytest.raises(CheckpointError, match=r"generation_config\.json.*eos_token_id"):
        open_checkpoint(directory)


def test_ending_tokens_of_the_generation_config_count_too(
    hf_directory: Callable[..., Path],
) -> None:
    directory = hf_directory()
    (directory / "generation_config.json").write_text('{"eos_token_id": [7, 1, 9]}')
    assert open_checkpoint(directory).spec.eos_token_ids == (1, 7, 9)


@pytest.mark.parametrize("text", ["[" * 200_000, "[]", "nope", "\0"])
@pytest.mark.parametrize(
    "name", ["config.json", "generation_config.json", "model.safetensors.index.json"]
)
def test_json_that_is_no_object_is_refused_by_its_file(
    name: str, text: str, hf_directory: Callable[..., Path]
) -> None:
    directory = hf_directory()
    (directory / name).write_text(text)
    with pytest.raises(CheckpointError, match=name.replace(".", r"\.")):
        open_checkpoint(directory)


def test_chat_format_in_a_damaged_file_is_refused(hf_directory: Callable[..., Path]) -> None:
    directory = hf_directory()
    (directory / "tokenizer_config.json").write_text("[" * 200_000)
    with pytest.raises(CheckpointError, match=r"tokenizer_config\.json is not readable JSON"):
        open_checkpoint(directory).chat_format()


def test_absurd_number_of_layers_is_refused_at_once(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    directory = hf_directory(weights)
    config = LLAMA_CONFIG | {"num_hidden_layers": 10**12}
    (directory / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=f"10{'0' * 11} layers cannot be in 20 tensors"):
        open_checkpoint(directory)


def test_tensor_in_two_shards_is_refused(hf_directory: Callable[..., Path]) -> None:
    weights = random_weights(LLAMA_CONFIG)
    directory = hf_directory(weights)
    weight_map = shard(directory, weights)
    name = next(name for name, file in weight_map.items() if file == "b.safetensors")
    names = [n for n, file in weight_map.items() if file == "a.safetensors"]
    save_file({n: weights[n] for n in [*names, name]}, directory / "a.safetensors")
    with pytest.raises(CheckpointError, match=r"is both in a\.safetensors and in b\.safetensors"):
        open_checkpoint(directory)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_weight_that_is_no_number_is_named_by_whoever_reads_it(
    bad: float, dtype: torch.dtype, hf_directory: Callable[..., Path]
) -> None:
    weights = {name: w.to(dtype) for name, w in random_weights(LLAMA_CONFIG).items()}
    weights[Q_PROJ][50, 7] = bad
    checkpoint = open_checkpoint(hf_directory(weights))
    with pytest.raises(CheckpointError, match=r"q_proj\.weight in .*safetensors: 1 of the 2048"):
        checkpoint.read(Q_PROJ, range(32, 64))
    assert checkpoint.read(Q_PROJ, range(0, 32)).isfinite().all()
    with pytest.raises(CheckpointError, match="NaN or infinite"):
        Llama(checkpoint.spec, Comm.solo()).load(checkpoint)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_the_largest_numbers_of_a_dtype_are_weights(
    dtype: torch.dtype, hf_directory: Callable[..., Path]
) -> None:
    weights = {name: w.to(dtype) for name, w in random_weights(LLAMA_CONFIG).items()}
    weights[Q_PROJ][:] = torch.finfo(dtype).max
    weights[Q_PROJ][:, ::2] = torch.finfo(dtype).min
    assert torch.equal(open_checkpoint(hf_directory(weights)).read(Q_PROJ), weights[Q_PROJ])


_LOAD_ONE_OF_FOUR = """
import json, re, sys
import torch
from labkit.layers.weight import PackedWeight
from labkit.models.checkpoint import open_checkpoint
from labkit.models.llama import Llama
from labkit.ranks.comm import Comm

class RankOfFour(Comm):  # one rank's view of a group of four; loading sends nothing
    def __init__(self):
        self.rank, self.size, self.device = 2, 4, torch.device("cpu")

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])

checkpoint = open_checkpoint(sys.argv[1])
PackedWeight(torch.randn(512, 512)).matmul(torch.randn(1, 512))  # brings in oneDNN's own pages
before = peak()
model = Llama(checkpoint.spec, RankOfFour()).load(checkpoint)
print(json.dumps(peak() - before))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's peak memory")
def test_rank_needs_memory_for_its_own_shard_and_not_for_the_model(
    hf_directory: Callable[..., Path],
) -> None:
    """A quarter of 224 MB, one weight being repacked and its file pages: far below the whole."""
    config = {
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 64,
        "intermediate_size": 2048,
        "num_hidden_layers": 10,
        "vocab_size": 16384,
        "tie_word_embeddings": False,
    }
    directory = hf_directory(None, **config)
    whole = (directory / "model.safetensors").stat().st_size
    assert whole > 190e6
    done = subprocess.run(
        [sys.executable, "-c", _LOAD_ONE_OF_FOUR, str(directory)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    growth = json.loads(done.stdout)
    assert whole / 5 < growth, "less than the shard itself: the measurement is broken"
    assert growth < 0.45 * whole, f"{growth / 1e6:.0f} MB for a quarter of {whole / 1e6:.0f} MB"
    print(f"peak growth {growth / 1e6:.0f} MB for a quarter of {whole / 1e6:.0f} MB")
