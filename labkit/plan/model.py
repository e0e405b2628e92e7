"""What a model holds: the weights and caches of any decoder language model, layer by layer.

`ModelSpec.from_hf` reads a Hugging Face config. It sizes; it does not run: what our own decoders
can run is `labkit.plan.decoder.DecoderSpec`. A config that cannot be sized is refused by the name
of the field, never approximated. Standard library only.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from labkit.plan.config_fields import UnsupportedModelError
from labkit.plan.weights import Matrix

__all__ = ["CacheKind", "Experts", "LayerCache", "LayerSpec", "ModelSpec", "UnsupportedModelError"]


class CacheKind(Enum):
    """What a layer keeps of the tokens before."""

    FULL = "full"
    """Keys and values of every token."""
    WINDOW = "window"
    """Keys and values of the last `window` tokens."""
    LATENT = "latent"
    """One compressed vector a token, shared by all heads (MLA): tensor parallelism copies it."""
    RECURRENT = "recurrent"
    """A state of fixed size for a sequence."""
    NONE = "none"
    """Nothing of its own: it reads another layer's cache."""


@dataclass(frozen=True)
class LayerCache:
    """What one layer keeps of one sequence.

    Attributes:
        heads: KV heads, which tensor parallelism divides and then copies; 1 for LATENT.
        elements_per_head: that one token leaves in one head: its key and its value.
        window: tokens kept at most; None keeps all.
        state_elements: of a RECURRENT layer's state, all heads, whatever the length.
        state_heads: heads that tensor parallelism divides the state by.
        state_bytes_per_element: the state's own precision, which is no setting of the KV cache.
    """

    kind: CacheKind
    heads: int = 0
    elements_per_head: int = 0
    window: int | None = None
    state_elements: int = 0
    state_heads: int = 0
    state_bytes_per_element: float = 2.0

    @property
    def elements_per_token(self) -> int:
        """That one token leaves here, while it is kept."""
        return self.heads * self.elements_per_head

    @property
    def grows(self) -> bool:
        """Whether it grows with the length without end."""
        return self.kind in (CacheKind.FULL, CacheKind.LATENT)

    def tokens_kept(self, length: int) -> int:
        """How many of a sequence's tokens it holds."""
        if self.kind in (CacheKind.RECURRENT, CacheKind.NONE):
            return 0
        return length if self.window is None else min(length, self.window)


@dataclass(frozen=True)
class Experts:
    """The routed experts of a layer; `num_shared_experts` run for every token besides."""

    num_experts: int
    top_k: int
    intermediate_size: int
    num_shared_experts: int = 0


@dataclass(frozen=True)
class LayerSpec:
    """One decoder layer.

    Attributes:
        matrices: every weight it has, norms and biases included.
        cache: what it keeps.
        num_heads: query heads; 0 for a layer that attends to nothing.
        score_dim, value_dim: of a query head: 2 * (score_dim + value_dim) floating point
            operations for each token it looks at. For latent attention as decode runs it, both are
            of the latent.
        experts: of a mixture-of-experts layer; None for a dense one.
    """

    matrices: tuple[Matrix, ...]
    cache: LayerCache
    num_heads: int = 0
    score_dim: int = 0
    value_dim: int = 0
    experts: Experts | None = None

    @property
    def num_parameters(self) -> int:
        """All weights, biases and norms."""
        return sum(matrix.num_parameters for matrix in self.matrices)

    @property
    def num_active_parameters(self) -> int:
        """Those that one token uses."""
        return sum(matrix.num_active_parameters for matrix in self.matrices)


@dataclass(frozen=True)
class ModelSpec:
    """A decoder language model. Sizes count elements, `*_bytes` count bytes.

    Attributes:
        embedding: what the first pipeline stage holds besides its layers.
        head: what the last one does: the final norm, and the LM head unless it is tied.
        layers: in order; equal layers are equal objects' values, so they can be counted.
        mtp_layers: of multi-token prediction; in the checkpoint, not in `num_parameters`.
        mtp_extra: what these have besides layers: norms, projections, an embedding of their own.
        dtype: of what is not quantised.
        quantization: how a checkpoint is quantised, in words; "" for one that is not.
    """

    model_type: str
    hidden_size: int
    vocab_size: int
    layers: tuple[LayerSpec, ...]
    embedding: tuple[Matrix, ...]
    head: tuple[Matrix, ...]
    tie_word_embeddings: bool = False
    mtp_layers: tuple[LayerSpec, ...] = ()
    mtp_extra: tuple[Matrix, ...] = ()
    max_position_embeddings: int = 2048
    dtype: str = "bfloat16"
    quantization: str = ""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What a reader should know: what was left out (a vision tower), or taken as a default."""

    @classmethod
    def from_hf(cls, config: Mapping[str, Any] | str | Path) -> ModelSpec:
        """Read a config: its mapping, its `config.json`, or the directory that holds one.

        Raises:
            UnsupportedModelError: names the field and the value that cannot be sized.
            FileNotFoundError: there is no such file.
            ValueError: the file holds no JSON object.
        """
        from labkit.plan.hf_config import read_config_file, read_model  # which imports this module

        return read_model(config if isinstance(config, Mapping) else read_config_file(config))

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @cached_property
    def layer_kinds(self) -> tuple[tuple[LayerSpec, int], ...]:
        """Each different layer, with how many there are."""
        return count_layers(self.layers)

    @cached_property
    def _kind_numbers(self) -> tuple[int, ...]:
        """Of each layer, which of `layer_kinds` it is; hashing a layer is dear, so once each."""
        numbers = {layer: number for number, (layer, _) in enumerate(self.layer_kinds)}
        return tuple(numbers[layer] for layer in self.layers)

    def kinds_in(self, layers: range) -> tuple[tuple[LayerSpec, int], ...]:
        """Each different layer of a range of them, with how many there are."""
        counts = Counter(self._kind_numbers[layer] for layer in layers)
        return tuple((self.layer_kinds[number][0], counts[number]) for number in sorted(counts))

    @cached_property
    def num_parameters(self) -> int:
        """Weights, biases and norms; tied embeddings once, multi-token prediction not."""
        return sum(n * matrix.num_parameters for matrix, n in self.matrices)

    @cached_property
    def num_active_parameters(self) -> int:
        """Those that one token uses: of the experts only its own."""
        return sum(n * matrix.num_active_parameters for matrix, n in self.matrices)

    @cached_property
    def num_active_parameters_without_embedding(self) -> int:
        """Those that one token multiplies with: a table it only looks a row up in is left out.

        Some published figures count so, others do not. A tied embedding is the LM head as well,
        and stays.
        """
        looked_up = self.embedding[self.tie_word_embeddings :]
        return self.num_active_parameters - sum(
            matrix.num_parameters for matrix in looked_up if matrix.part == "embedding"
        )

    @cached_property
    def num_mtp_parameters(self) -> int:
        """Of multi-token prediction, on top of `num_parameters`."""
        inside = sum(layer.num_parameters for layer in self.mtp_layers)
        return inside + sum(matrix.num_parameters for matrix in self.mtp_extra)

    @cached_property
    def matrices(self) -> tuple[tuple[Matrix, int], ...]:
        """Every weight, with the number of layers that have it; multi-token prediction not."""
        inside = [(matrix, n) for layer, n in self.layer_kinds for matrix in layer.matrices]
        return (
            *((matrix, 1) for matrix in self.embedding),
            *inside,
            *((matrix, 1) for matrix in self.head),
        )

    @cached_property
    def weight_bytes(self) -> float:
        """Bytes of the weights as stored, scales included; multi-token prediction not."""
        return sum(n * matrix.total_bytes for matrix, n in self.matrices)

    @cached_property
    def weight_bytes_by_part(self) -> Mapping[str, float]:
        """`weight_bytes` by part, in the order of the model."""
        found: defaultdict[str, float] = defaultdict(float)
        for matrix, n in self.matrices:
            found[matrix.part] += n * matrix.total_bytes
        return dict(found)

    @cached_property
    def is_moe(self) -> bool:
        return any(layer.experts for layer, _ in self.layer_kinds)

    @cached_property
    def is_latent(self) -> bool:
        """Whether some layer keeps a latent that tensor parallelism does not divide."""
        return any(layer.cache.kind is CacheKind.LATENT for layer, _ in self.layer_kinds)

    @cached_property
    def num_heads(self) -> int:
        """Query heads of the layers; the largest number where they differ."""
        return max(layer.num_heads for layer, _ in self.layer_kinds)

    @cached_property
    def num_kv_heads(self) -> int:
        """KV heads of the layers; the largest number where they differ."""
        return max(layer.cache.heads for layer, _ in self.layer_kinds)

    def kv_bytes_per_token(self, bytes_per_element: float = 2) -> float:
        """Bytes one token leaves in the caches that grow without end, over all layers.

        Windows and recurrent states are left out: see `kv_bytes`.
        """
        elements = sum(
            n * layer.cache.elements_per_token for layer, n in self.layer_kinds if layer.cache.grows
        )
        return elements * bytes_per_element

    def kv_bytes(self, length: int, bytes_per_element: float = 2) -> float:
        """Bytes that a sequence of `length` tokens leaves, windows and states included."""
        return sum(
            n
            * (
                layer.cache.tokens_kept(length) * layer.cache.elements_per_token * bytes_per_element
                + layer.cache.state_elements * layer.cache.state_bytes_per_element
            )
            for layer, n in self.layer_kinds
        )


def count_layers(layers: Iterable[LayerSpec]) -> tuple[tuple[LayerSpec, int], ...]:
    """Each different layer of some, with how many there are, in the order they first come."""
    return tuple(Counter(layers).items())
