"""What each tensor parallel rank holds of a model: heads, columns, rows, and bytes.

The counts are of a loaded shard as `labkit.models.llama` loads it: whole KV heads, padded
vocabulary rows included, row-parallel biases on rank 0 only, norms whole on every rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import legal_tensor_parallel_sizes, validate
from labkit.plan.shard import partition_columns, partition_heads, partition_vocab


@dataclass(frozen=True)
class RankHoldings:
    """One rank's part. Ranges are indices into the whole model; bytes are over all layers."""

    rank: int
    q_heads: range
    kv_heads: range
    mlp_columns: range
    vocab_rows: range
    """Rows of the padded vocabulary."""
    real_vocab_rows: range
    """Those of `vocab_rows` that are tokens."""
    weight_bytes: Mapping[str, int]
    """By part: embedding, LM head (only where it is not tied to it), attention, MLP, norms."""
    kv_bytes_per_token: int
    """Keys and values this rank caches for one token, all layers together."""

    @property
    def total_bytes(self) -> int:
        """Bytes of weights, all parts."""
        return sum(self.weight_bytes.values())


@dataclass(frozen=True)
class Holdings:
    """What all ranks hold together. Build it with `holdings`."""

    spec: DecoderSpec
    tp: int
    bytes_per_element: int
    ranks: tuple[RankHoldings, ...]
    num_kv_head_replicas: int
    """Ranks that hold the same KV head; 1 when each KV head lives once."""
    padded_rows: int
    """Rows added to the vocabulary so that it divides."""

    @property
    def total_bytes(self) -> int:
        """Bytes of weights on all ranks together."""
        return sum(rank.total_bytes for rank in self.ranks)

    @property
    def kv_bytes_per_token(self) -> int:
        """Keys and values that one token leaves in the caches of all ranks together."""
        return sum(rank.kv_bytes_per_token for rank in self.ranks)

    @property
    def replicated(self) -> Mapping[str, int]:
        """Bytes of weights beyond the first copy, over all ranks, by what they belong to."""
        return {
            "KV heads": self.extra_kv_heads * self.kv_head_weight_bytes,
            "norms": (self.tp - 1) * _norm_elements(self.spec) * self.bytes_per_element,
        }

    @property
    def replicated_bytes(self) -> int:
        """Bytes of weights beyond the first copy of each, over all ranks."""
        return sum(self.replicated.values())

    @property
    def padded_bytes(self) -> int:
        """Bytes of the padding rows: once for the embedding, once more for an untied LM head."""
        tables = 1 if self.spec.tie_word_embeddings else 2
        return tables * self.padded_rows * self.spec.hidden_size * self.bytes_per_element

    @property
    def extra_kv_heads(self) -> int:
        """Copies of KV heads beyond the first of each, over all ranks."""
        return sum(len(rank.kv_heads) for rank in self.ranks) - self.spec.num_kv_heads

    @property
    def kv_head_weight_bytes(self) -> int:
        """Weights that one more copy of one KV head costs: its keys' and values' rows of every
        layer's projection, and their biases."""
        spec = self.spec
        rows = 2 * spec.head_dim
        return spec.num_layers * rows * (spec.hidden_size + spec.qkv_bias) * self.bytes_per_element

    @property
    def kv_head_bytes_per_token(self) -> int:
        """Cache that one more copy of one KV head costs per token, all layers together."""
        return 2 * self.spec.num_layers * self.spec.head_dim * self.bytes_per_element

    @property
    def extra_kv_bytes_per_token(self) -> int:
        """Cache per token that exists only because KV heads are replicated."""
        return self.extra_kv_heads * self.kv_head_bytes_per_token


def holdings(
    spec: DecoderSpec, tp: int, *, bytes_per_element: int = 2, allow_uneven_heads: bool = False
) -> Holdings:
    """What each of `tp` ranks holds, with weights and cache of `bytes_per_element`.

    Raises:
        LayoutError: the model does not divide over `tp` ranks; every reason is named.
        ValueError: bytes_per_element is below 1.
    """
    if bytes_per_element < 1:
        raise ValueError(f"an element has at least 1 byte, not {bytes_per_element}")
    validate(spec, tp=tp, allow_uneven_heads=allow_uneven_heads)
    heads = partition_heads(
        spec.num_heads, spec.num_kv_heads, tp, allow_uneven_heads=allow_uneven_heads
    )
    vocab = partition_vocab(spec.vocab_size, tp)
    columns = partition_columns(spec.intermediate_size, tp, "MLP")
    ranks = []
    for rank in range(tp):
        q_heads, kv_heads = heads.q_heads(rank), heads.kv_heads(rank)
        elements = _elements(
            spec, len(q_heads), len(kv_heads), len(columns[rank]), vocab.rows_per_rank, rank
        )
        ranks.append(
            RankHoldings(
                rank=rank,
                q_heads=q_heads,
                kv_heads=kv_heads,
                mlp_columns=columns[rank],
                vocab_rows=vocab.rows(rank),
                real_vocab_rows=vocab.real_rows(rank),
                weight_bytes={part: n * bytes_per_element for part, n in elements.items()},
                kv_bytes_per_token=(
                    2 * spec.num_layers * len(kv_heads) * spec.head_dim * bytes_per_element
                ),
            )
        )
    return Holdings(
        spec=spec,
        tp=tp,
        bytes_per_element=bytes_per_element,
        ranks=tuple(ranks),
        num_kv_head_replicas=heads.num_kv_head_replicas,
        padded_rows=vocab.padded_size - vocab.vocab_size,
    )


def nearest_legal_sizes(
    spec: DecoderSpec, tp: int, *, allow_uneven_heads: bool = False
) -> tuple[int, ...]:
    """The largest legal TP up to `tp` and the smallest from it on; one number if `tp` is legal."""
    legal = _legal_sizes(spec, allow_uneven_heads)
    below = [size for size in legal if size <= tp][-1:]
    above = [size for size in legal if size >= tp][:1]
    return tuple(sorted({*below, *above}))


@lru_cache(maxsize=64)
def _legal_sizes(spec: DecoderSpec, allow_uneven_heads: bool) -> tuple[int, ...]:
    return legal_tensor_parallel_sizes(spec, spec.num_heads, allow_uneven_heads)


def _elements(
    spec: DecoderSpec, q_heads: int, kv_heads: int, columns: int, vocab_rows: int, rank: int
) -> dict[str, int]:
    """Elements of every part on one rank."""
    hidden, is_first = spec.hidden_size, rank == 0
    q_rows, kv_rows = q_heads * spec.head_dim, 2 * kv_heads * spec.head_dim
    attention = (2 * q_rows + kv_rows) * hidden + (q_rows + kv_rows) * spec.qkv_bias
    attention += hidden * (spec.o_bias and is_first) + 2 * spec.head_dim * spec.qk_norm
    mlp = 3 * columns * hidden + 2 * columns * spec.mlp_bias + hidden * (spec.mlp_bias and is_first)
    parts = {"embedding": vocab_rows * hidden}
    if not spec.tie_word_embeddings:
        parts["LM head"] = vocab_rows * hidden
    parts["attention"] = spec.num_layers * attention
    parts["MLP"] = spec.num_layers * mlp
    parts["norms"] = (2 * spec.num_layers + 1) * hidden
    return parts


def _norm_elements(spec: DecoderSpec) -> int:
    """Elements that every rank holds whole: the norms, and those of queries and keys."""
    per_layer = 2 * spec.hidden_size + 2 * spec.head_dim * spec.qk_norm
    return spec.num_layers * per_layer + spec.hidden_size
