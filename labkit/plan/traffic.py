"""Bytes that the ranks move for one decode step: tensor parallel, and gathering weights instead.

Tensor parallel moves activations: one all-reduce for the embedding and two a layer, each of
batch x hidden size elements. FSDP and ZeRO-3 move weights: every layer is gathered before it is
used, whatever the batch. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass

from labkit.plan.collectives import ring_wire_bytes
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import validate
from labkit.plan.shard import pad_up, partition_columns

CANDIDATE_BYTES = 16
"""What a rank tells the others to pick a token greedily: a logit and an id, 8 bytes each."""


@dataclass(frozen=True)
class DecodeTraffic:
    """The collectives of one decode step. `payload` is what a rank passes in, `wire` what it sends.

    Attributes:
        all_reduces: one for the embedding and two for each layer; none for one rank.
        all_gathers: one, with each rank's candidate for the next token; none for one rank.
        payload_bytes_each: of one all-reduce, batch x hidden size elements.
        payload_bytes: of all all-reduces.
        layer_payload_bytes: of the layers' all-reduces alone, without the embedding's.
        gather_bytes: payload of the all-gather.
        wire_bytes_per_rank: what a rank sends in all all-reduces, as rings.
    """

    all_reduces: int
    all_gathers: int
    payload_bytes_each: int
    payload_bytes: int
    layer_payload_bytes: int
    gather_bytes: int
    wire_bytes_per_rank: float


def decode_traffic(spec: DecoderSpec, tp: int, batch: int, bytes_per_element: int) -> DecodeTraffic:
    """What one decode step of `batch` sequences moves over `tp` ranks.

    Raises:
        LayoutError: the model does not divide over `tp` ranks, unevenly neither.
        ValueError: there is no sequence, or an element has no byte.
    """
    validate(spec, tp=tp, allow_uneven_heads=True)
    _require_at_least_one(batch=batch, bytes_per_element=bytes_per_element)
    each = batch * spec.hidden_size * bytes_per_element
    in_layers = 2 * spec.num_layers if tp > 1 else 0
    all_reduces = in_layers + 1 if tp > 1 else 0
    all_gathers = 1 if tp > 1 else 0
    return DecodeTraffic(
        all_reduces=all_reduces,
        all_gathers=all_gathers,
        payload_bytes_each=each,
        payload_bytes=all_reduces * each,
        layer_payload_bytes=in_layers * each,
        gather_bytes=all_gathers * batch * CANDIDATE_BYTES,
        wire_bytes_per_rank=all_reduces * ring_wire_bytes(each, tp),
    )


def layer_parameters(spec: DecoderSpec) -> int:
    """Weights, biases and norms of one decoder layer."""
    tables = 1 if spec.tie_word_embeddings else 2
    ends = tables * spec.vocab_size * spec.hidden_size + spec.hidden_size
    return (spec.num_parameters - ends) // spec.num_layers


def flat_shard_size(parameters: int, ranks: int) -> int:
    """Elements each of `ranks` ranks keeps of a layer laid out flat and padded to divide evenly."""
    return pad_up(parameters, ranks) // ranks


def gathered_weight_bytes(spec: DecoderSpec, ranks: int, bytes_per_element: int) -> int:
    """Bytes each rank sends, and gets, in one forward pass that gathers every layer: FSDP, ZeRO-3.

    That is (n-1)/n of all layers' weights, for one token as for a thousand. Embedding and LM head
    are left out: where they are sharded too, they come on top.

    Raises ValueError for no rank or an element without a byte.
    """
    _require_at_least_one(ranks=ranks, bytes_per_element=bytes_per_element)
    kept = flat_shard_size(layer_parameters(spec), ranks) * bytes_per_element
    return spec.num_layers * (ranks - 1) * kept


@dataclass(frozen=True)
class MLPShard:
    """One rank's slice of the first MLP matrix (W1, cut by columns), and the block's message.

    Attributes:
        w1_shape: `(hidden size, columns)` that a rank holds.
        w1_bytes: the whole matrix.
        w1_shard_bytes: one slice.
        payload_bytes: of the one all-reduce after the MLP, tokens x hidden size elements.
    """

    w1_shape: tuple[int, int]
    w1_bytes: int
    w1_shard_bytes: int
    payload_bytes: int


def mlp_shard(
    hidden_size: int, intermediate_size: int, tp: int, tokens: int, bytes_per_element: int
) -> MLPShard:
    """An MLP cut over `tp` ranks, for `tokens` tokens.

    Raises PartitionError if `intermediate_size` does not divide, ValueError for a size below 1.
    """
    _require_at_least_one(
        hidden_size=hidden_size, tokens=tokens, bytes_per_element=bytes_per_element
    )
    columns = len(partition_columns(intermediate_size, tp, "MLP")[0])
    return MLPShard(
        w1_shape=(hidden_size, columns),
        w1_bytes=hidden_size * intermediate_size * bytes_per_element,
        w1_shard_bytes=hidden_size * columns * bytes_per_element,
        payload_bytes=tokens * hidden_size * bytes_per_element,
    )


def _require_at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; it must be at least 1")
