"""A dense decoder of the Llama family over tensor parallel ranks.

One decoder layer is two halves, and each half is column parallel, then row parallel, then one
all-reduce:

    x = x + attention(norm(x))        QKVParallelLinear -> local heads -> RowParallelLinear
    x = x + mlp(norm(x))              MergedColumnParallelLinear -> SwiGLU -> RowParallelLinear

With the embedding's that is `2 * num_layers + 1` all-reduces a forward pass. Between them `x` is
whole and the same on every rank; the logits are left cut by vocabulary.

Config alone tells the families apart: Qwen2 has biases on q, k and v, Qwen3 normalises q and k,
Mistral looks back over a sliding window.

Shape suffixes: B batch, T new tokens, D hidden size, V vocabulary; `/r` on this rank only.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from labkit.layers.attention import GQAttention
from labkit.layers.embedding import ParallelLMHead, VocabParallelEmbedding
from labkit.layers.kv_cache import KVCache, LayerCache, Step
from labkit.layers.mlp import SwiGLU
from labkit.layers.norm import RMSNorm
from labkit.layers.rope import RotaryEmbedding, Rotation
from labkit.layers.source import WeightSource
from labkit.layers.whole_number import whole_number
from labkit.models.checkpoint import open_checkpoint
from labkit.models.library import resolve
from labkit.models.parameters import EMBEDDING, FINAL_NORM, LM_HEAD, layer_prefix
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import validate
from labkit.plan.shard import HeadPartition, partition_heads, partition_vocab
from labkit.ranks.comm import Comm


class DecoderLayer(nn.Module):
    """Attention and MLP, each on normalised input and added to the residual stream."""

    def __init__(
        self, spec: DecoderSpec, comm: Comm, heads: HeadPartition, *, dtype: torch.dtype
    ) -> None:
        super().__init__()

        def norm() -> RMSNorm:
            return RMSNorm(spec.hidden_size, spec.rms_norm_eps, dtype=dtype, device=comm.device)

        self.input_layernorm = norm()
        self.self_attn = GQAttention(spec, comm, heads, dtype=dtype)
        self.post_attention_layernorm = norm()
        self.mlp = SwiGLU(
            spec.hidden_size, spec.intermediate_size, comm, bias=spec.mlp_bias, dtype=dtype
        )

    def load(self, source: WeightSource, name: str) -> None:
        """Read this rank's part of the layer under `name` (`model.layers.0`)."""
        self.input_layernorm.load(source, f"{name}.input_layernorm")
        self.self_attn.load(source, f"{name}.self_attn")
        self.post_attention_layernorm.load(source, f"{name}.post_attention_layernorm")
        self.mlp.load(source, f"{name}.mlp")

    def forward(self, x_BTD: Tensor, rotation: Rotation, cache: LayerCache, step: Step) -> Tensor:
        """x `[B, T, D]` -> `[B, T, D]`, whole on every rank, by two all-reduces."""
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), rotation, cache, step)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class Llama(nn.Module):
    """Token ids in, this rank's logits out. Every rank of `comm` calls `forward` together."""

    def __init__(
        self,
        spec: DecoderSpec,
        comm: Comm,
        *,
        dtype: torch.dtype = torch.float32,
        allow_uneven_heads: bool = False,
    ) -> None:
        """Nothing is allocated before `load`.

        Raises LayoutError with every reason if the model does not divide over `comm.size` ranks.
        """
        super().__init__()
        validate(spec, tp=comm.size, allow_uneven_heads=allow_uneven_heads)
        self.spec = spec
        self.comm = comm
        self.dtype = dtype
        heads = partition_heads(
            spec.num_heads, spec.num_kv_heads, comm.size, allow_uneven_heads=allow_uneven_heads
        )
        vocab = partition_vocab(spec.vocab_size, comm.size)
        self.num_local_kv_heads = len(heads.kv_heads(comm.rank))
        self.embed_tokens = VocabParallelEmbedding(vocab, spec.hidden_size, comm, dtype=dtype)
        self.rotary = RotaryEmbedding(spec, device=comm.device)
        self.layers = nn.ModuleList(
            DecoderLayer(spec, comm, heads, dtype=dtype) for _ in range(spec.num_layers)
        )
        self.norm = RMSNorm(spec.hidden_size, spec.rms_norm_eps, dtype=dtype, device=comm.device)
        self.lm_head = ParallelLMHead(vocab, spec.hidden_size, comm, dtype=dtype)

    def load(self, source: WeightSource) -> Llama:
        """Read this rank's part of every weight, and no other part. Returns the model."""
        self.embed_tokens.load(source, EMBEDDING)
        for index, layer in enumerate(self.layers):
            assert isinstance(layer, DecoderLayer)
            layer.load(source, layer_prefix(index))
        self.norm.load(source, FINAL_NORM)
        if self.spec.tie_word_embeddings:
            self.lm_head.tie(self.embed_tokens)
        else:
            self.lm_head.load(source, LM_HEAD)
        return self

    def new_cache(self, batch_size: int, max_len: int) -> KVCache:
        """An empty KV cache for this rank's heads: `max_len` tokens for each sequence.

        Raises ValueError for more than the model's context: positions it was never trained on
        would be computed without complaint. `forward` goes no further than its cache.
        """
        context = self.spec.max_position_embeddings
        max_len = whole_number(max_len, "max_len", at_least=1)
        if max_len > context:
            raise ValueError(f"max_len {max_len} is more than the model's context of {context}")
        return KVCache(
            self.spec.num_layers,
            batch_size,
            self.num_local_kv_heads,
            max_len,
            self.spec.head_dim,
            sliding_window=self.spec.sliding_window,
            dtype=self.dtype,
            device=self.comm.device,
        )

    @torch.inference_mode()
    def forward(
        self,
        ids_BT: Tensor,
        cache: KVCache,
        counts: Sequence[int] | None = None,
        *,
        all_positions: bool = False,
    ) -> Tensor:
        """Run the new tokens `[B, T]` after those in `cache`, which then holds them too.

        `counts[b]` of sequence b's T columns are real and the rest padding on the right (any
        valid id); by default all are. Returns local logits after each sequence's last real token
        `[B, V/r]`, or after every column with `all_positions`, `[B, T, V/r]`.
        `lm_head.gather`, `.argmax` and `.log_softmax_at` take them from there.

        Raises ValueError for ids or counts that do not fit the cache, IndexError for an id
        outside the vocabulary.
        """
        _check_ids(ids_BT, cache)
        step = cache.step(ids_BT.shape[1], counts)
        rotation = self.rotary(step.positions_BT, self.dtype)
        x_BTD = self.embed_tokens(ids_BT)
        for layer, layer_cache in zip(self.layers, cache.layers, strict=True):
            x_BTD = layer(x_BTD, rotation, layer_cache, step)
        cache.advance(step)
        return self.lm_head(self.norm(x_BTD if all_positions else _last_tokens(x_BTD, step)))


def _check_ids(ids_BT: Tensor, cache: KVCache) -> None:
    if not isinstance(ids_BT, Tensor) or ids_BT.dtype not in (torch.int64, torch.int32):
        kind = ids_BT.dtype if isinstance(ids_BT, Tensor) else type(ids_BT).__name__
        raise ValueError(f"token ids are a tensor of int64 or int32, not {kind}")
    if ids_BT.dim() != 2:
        raise ValueError(f"ids have shape {list(ids_BT.shape)}; [batch, tokens] is needed")
    if len(ids_BT) != cache.batch_size:
        raise ValueError(f"{len(ids_BT)} sequences do not fit a cache for {cache.batch_size}")


def _last_tokens(x_BTD: Tensor, step: Step) -> Tensor:
    """The vectors of each sequence's last real token, `[B, D]`."""
    if step.slots is None:
        return x_BTD[:, -1]
    rows = torch.arange(x_BTD.shape[0], device=x_BTD.device)
    return x_BTD[rows, torch.tensor(step.last_columns, device=x_BTD.device)]


def load_model(
    name_or_path: str | Path,
    comm: Comm,
    *,
    dtype: torch.dtype = torch.float32,
    allow_uneven_heads: bool = False,
) -> Llama:
    """Open a known model or a path, and read this rank's part of it.

    Raises ModelNotFoundError, CheckpointError, UnsupportedModelError or LayoutError, each before
    any weight is read.
    """
    checkpoint = open_checkpoint(resolve(name_or_path))
    model = Llama(checkpoint.spec, comm, dtype=dtype, allow_uneven_heads=allow_uneven_heads)
    return model.load(checkpoint)
