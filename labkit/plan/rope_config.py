"""The rotary settings of a Hugging Face config."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.plan.config_fields import ConfigFields, UnsupportedModelError
from labkit.plan.decoder import RopeScaling

SUPPORTED_ROPE_TYPES = ("default", "linear", "llama3", "yarn")


def read_rope(fields: ConfigFields, max_positions: int) -> tuple[float, RopeScaling | None]:
    """The base of the rotary frequencies, and how they are scaled if they are.

    Both ways of writing them down count: `rope_parameters`, and the older `rope_scaling` with
    `rope_theta` beside it.
    """
    new, old = fields.nested("rope_parameters"), fields.nested("rope_scaling")
    if any(isinstance(value, Mapping) for value in (*new.values(), *old.values())):
        raise fields.refuse("rope_parameters", "one rotary table serves all layers")
    if new and old and new != old:
        raise fields.refuse("rope_scaling", "rope_parameters says something else")
    rope = ConfigFields(new or old, "rope_scaling.")
    theta = _setting(rope, fields, "rope_theta", 10000.0)
    if _setting(rope, fields, "partial_rotary_factor", 1.0) != 1.0:
        owner = rope if rope.has("partial_rotary_factor") else fields
        value = owner.values["partial_rotary_factor"]
        raise UnsupportedModelError("partial_rotary_factor", value, "whole heads are rotated")
    rope_type = rope.word("rope_type", rope.word("type", "default"))
    if rope_type not in SUPPORTED_ROPE_TYPES:
        raise UnsupportedModelError(
            "rope_type", rope_type, f"supported are {', '.join(SUPPORTED_ROPE_TYPES)}"
        )
    given = rope.values.keys() - {"rope_type", "type", "rope_theta", "partial_rotary_factor"}
    for field in sorted(field for field in given if rope.has(field)):
        if rope_type == "default":
            raise rope.refuse(field, "rotary embeddings of type default are not scaled")
        if field not in RopeScaling.__dataclass_fields__:
            raise rope.refuse(field, "unknown to this project")
    if rope_type == "default":
        return theta, None
    if rope_type == "yarn" and theta <= 1:
        raise UnsupportedModelError("rope_theta", theta, "yarn needs a base above 1")
    return theta, _rope_scaling(rope, fields, rope_type, max_positions)


def _setting(rope: ConfigFields, fields: ConfigFields, field: str, default: float) -> float:
    """A rotary number kept either among the rotary settings or, as it used to be, beside them."""
    return rope.number(field) if field in rope.values else fields.number(field, default)


def _rope_scaling(
    rope: ConfigFields, fields: ConfigFields, rope_type: str, max_positions: int
) -> RopeScaling:
    if rope_type == "llama3":
        for field in ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"):
            if not rope.has(field):
                raise rope.refuse(field, "llama3 needs it")
    field = "original_max_position_embeddings"
    original = rope.positive_int(field, fields.positive_int(field, max_positions))
    low, high = _pair(rope, "low_freq_factor", 1.0, "high_freq_factor", 4.0)
    slow, fast = _pair(rope, "beta_slow", 1.0, "beta_fast", 32.0)
    return RopeScaling(
        rope_type=rope_type,
        factor=rope.number("factor", at_least=1),
        original_max_position_embeddings=original,
        low_freq_factor=low,
        high_freq_factor=high,
        beta_fast=fast,
        beta_slow=slow,
        attention_factor=rope.optional_number("attention_factor"),
        mscale=rope.optional_number("mscale", at_least=0),
        mscale_all_dim=rope.optional_number("mscale_all_dim", at_least=0),
        truncate=rope.flag("truncate", True),
    )


def _pair(
    rope: ConfigFields, low: str, low_default: float, high: str, high_default: float
) -> tuple[float, float]:
    """Two positive numbers of which the second is the larger."""
    lower = rope.number(low) if rope.has(low) else low_default
    higher = rope.number(high) if rope.has(high) else high_default
    if lower >= higher:
        raise rope.refuse(high, f"it must be above {low}, which is {lower:g}")
    return lower, higher
