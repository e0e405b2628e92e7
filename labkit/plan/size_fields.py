"""Config fields that change the size of some family: a reader that does not read one refuses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from labkit.plan.config_fields import ConfigFields
from labkit.plan.model import ModelSpec

SIZE_FIELDS = frozenset(
    (
        *("attention_bias", "mlp_bias", "use_bias", "conv_bias", "lm_head_bias"),
        *("use_qk_norm", "qk_norm", "qk_layernorm", "attn_output_gate", "use_sliding_window"),
        *("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"),
        *("n_shared_experts", "num_shared_experts", "num_shared_expert", "zero_expert_num"),
        *("moe_num_shared_experts", "shared_expert_intermediate_size", "shared_intermediate_size"),
        *("moe_shared_expert_intermediate_size", "moe_latent_size", "enable_moe_block"),
        *("first_k_dense_replace", "moe_layer_freq", "moe_layer_interval", "moe_layers"),
        *("interleave_moe_layer_step", "mlp_only_layers", "mlp_layer_types", "layers_block_type"),
        *("attn_type_list", "intermediate_size_mlp", "num_nextn_predict_layers"),
        *("mtp_num_hidden_layers", "kv_lora_rank", "q_lora_rank", "v_head_dim", "use_mla"),
        *("index_head_dim", "index_n_heads", "use_cla", "cross_attention_layers"),
        *("attention_k_eq_v", "global_head_dim", "num_global_key_value_heads"),
        *("num_kv_shared_layers", "hidden_size_per_layer_input", "laurel_rank"),
        *("use_double_wide_mlp", "vocab_size_per_layer_input", "add_cross_attention"),
        *("mamba_d_conv", "mamba_d_ssm", "mamba_d_state", "mamba_expand", "mamba_n_heads"),
        *("mamba_num_heads", "conv_L_cache", "linear_attn_config", "linear_num_key_heads"),
        *("latent_moe_use_norm", "attn_res_block_size", "sparse_attention_config", "hc_mult"),
        *("compress_ratios", "hybrid_layer_pattern", "block_configs", "num_hash_layers"),
    )
)

_LIKE_A_SIZE = re.compile(
    "(hidden_size|intermediate_size|hidden_dim|ffn_dim|head_dim|rank|heads|experts|output_gate)$"
)
"""What a field is called that a later member of a family may add."""

_SAID_ELSEWHERE = frozenset(
    (
        *("head_dim", "qk_head_dim", "attention_head_dim", "linear_head_dim", "linear_num_heads"),
        *("num_attention_heads", "num_key_value_heads", "intermediate_size", "time_step_rank"),
        *("cross_attention_hidden_size", "kv_channels", "num_heads"),
    )
)
"""Like a size, but some configs hold them where others say it, or have no use for it."""

_SAME = (
    frozenset({"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}),
    frozenset({"attention_bias", "use_bias", "qkv_bias"}),
    frozenset({"qk_layernorm", "qk_norm", "use_qk_norm"}),
    frozenset({"num_shared_experts", "num_shared_expert", "n_shared_experts"}),
    frozenset({"num_nextn_predict_layers", "mtp_num_hidden_layers"}),
)
"""Names of one thing: two of them with one value say nothing new."""

_ONE_IS_NONE = frozenset({"moe_layer_freq", "moe_layer_interval", "interleave_moe_layer_step"})
_FULL = ("full_attention", "attention", "global")


class _Noted(Mapping[str, Any]):
    """A config that remembers which of its fields were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values_given = values
        self.read: set[str] = set()

    def __getitem__(self, field: str) -> Any:
        self.read.add(field)
        return self.values_given[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_given)

    def __len__(self) -> int:
        return len(self.values_given)


def every_size_read(
    reader: Callable[[ConfigFields], ModelSpec],
) -> Callable[[ConfigFields], ModelSpec]:
    """The reader, which then refuses fields that change sizes and that it did not read."""

    def read(fields: ConfigFields) -> ModelSpec:
        noted = _Noted(fields.values)
        spec = reader(ConfigFields(noted, fields.prefix))
        unread = fields.values.keys() - noted.read
        for field in sorted(filter(_may_change_sizes, unread)):
            if not _says_nothing(fields.values, field, noted.read):
                raise fields.refuse(field, f"it is not known what it means in {spec.model_type}")
        kinds = () if "layer_types" in noted.read else fields.words("layer_types")
        if any(kind not in _FULL for kind in kinds):
            raise fields.refuse("layer_types", f"layers of {spec.model_type} are all alike here")
        return spec

    return read


def all_sizes_read(
    readers: Mapping[str, Callable[[ConfigFields], ModelSpec]],
) -> Mapping[str, Callable[[ConfigFields], ModelSpec]]:
    """`every_size_read` of each reader."""
    return {model_type: every_size_read(reader) for model_type, reader in readers.items()}


def understood(fields: ConfigFields, *names: str) -> None:
    """Mark fields as read: whatever they say, they change no size of this model."""
    for name in names:
        fields.values.get(name)


def _may_change_sizes(field: str) -> bool:
    if field in _SAID_ELSEWHERE:
        return False
    return field in SIZE_FIELDS or _LIKE_A_SIZE.search(field) is not None


def _says_nothing(values: Mapping[str, Any], field: str, read: set[str]) -> bool:
    value = values[field]
    if value is None or value is False or value in (0, [], {}):
        return True
    if field in _ONE_IS_NONE and value == 1:
        return True
    return any(
        values.get(other) == value
        for names in _SAME
        if field in names
        for other in names & read - {field}
    )
