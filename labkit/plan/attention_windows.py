"""Which layers look at a window of the last tokens only, as the families' configs say it."""

from __future__ import annotations

from collections.abc import Callable

from labkit.plan.config_fields import ConfigFields, is_whole

Windows = tuple[int | None, ...]
"""Tokens that each layer keeps at most; None keeps all."""

WindowRule = Callable[[ConfigFields, int], Windows]
"""From the fields and the number of layers."""

FULL, SLIDING = "full_attention", "sliding_attention"


def no_windows(fields: ConfigFields, num_layers: int) -> Windows:
    """Every layer keeps all tokens; `layer_types` may say so, and nothing else."""
    for kind in _layer_types(fields, num_layers):
        if kind != FULL:
            raise fields.refuse("layer_types", f"{kind!r} is no layer of this family")
    return (None,) * num_layers


def window_on_all(default: int | None = None) -> WindowRule:
    """Every layer has the window of `sliding_window`; null means none, absent the default."""

    def rule(fields: ConfigFields, num_layers: int) -> Windows:
        if _layer_types(fields, num_layers):
            return _typed(fields, _layer_types(fields, num_layers), default)
        if "sliding_window" in fields.values and not fields.has("sliding_window"):
            return (None,) * num_layers
        if default is None and not fields.has("sliding_window"):
            return (None,) * num_layers
        return (fields.positive_int("sliding_window", default),) * num_layers

    return rule


def window_pattern(
    default_every: int,
    default_window: int | None = None,
    *,
    full_first: bool = False,
    every_fields: tuple[str, ...] = ("sliding_window_pattern", "_sliding_window_pattern"),
    null_is_full: bool = False,
) -> WindowRule:
    """`layer_types`, or one full layer in every so many: the last of them, or the first."""

    def rule(fields: ConfigFields, num_layers: int) -> Windows:
        types = _layer_types(fields, num_layers)
        is_null = "sliding_window" in fields.values and not fields.has("sliding_window")
        if not types and null_is_full and is_null:
            return (None,) * num_layers
        if not types:
            types = _repeated(fields, num_layers, every_fields, default_every, full_first)
        return _typed(fields, types, default_window)

    return rule


def upper_layers_slide(fields: ConfigFields, num_layers: int) -> Windows:
    """Qwen: with `use_sliding_window`, the layers from `max_window_layers` on have the window."""
    types = _layer_types(fields, num_layers)
    if not fields.flag("use_sliding_window"):
        return (None,) * num_layers
    if not types:
        if "sliding_window" in fields.values and not fields.has("sliding_window"):
            return (None,) * num_layers
        first = fields.values.get("max_window_layers", 28)
        if not is_whole(first) or first < 0:
            raise fields.refuse("max_window_layers", "a whole number of layers is needed")
        types = tuple(SLIDING if i >= first else FULL for i in range(num_layers))
    return _typed(fields, types, 4096)


def rotary_layers_slide(fields: ConfigFields, num_layers: int) -> Windows:
    """SmolLM3: with `use_sliding_window`, the layers without rotary positions have the window."""
    types = _layer_types(fields, num_layers)
    if not fields.flag("use_sliding_window") or not fields.has("sliding_window"):
        return (None,) * num_layers
    if not types:
        interval = fields.positive_int("no_rope_layer_interval", 4)
        rotary = fields.values.get("no_rope_layers")
        if rotary is None:
            rotary = [int((i + 1) % interval != 0) for i in range(num_layers)]
        if not isinstance(rotary, list | tuple) or len(rotary) != num_layers:
            raise fields.refuse("no_rope_layers", f"{num_layers} layers need as many marks")
        types = tuple(FULL if has_rotary else SLIDING for has_rotary in rotary)
    return _typed(fields, types, None)


def _layer_types(fields: ConfigFields, num_layers: int) -> tuple[str, ...]:
    types = fields.words("layer_types")
    if types and len(types) != num_layers:
        raise fields.refuse("layer_types", f"{num_layers} layers need as many types")
    for kind in types:
        if kind not in (FULL, SLIDING):
            raise fields.refuse("layer_types", f"{kind!r} is no layer of this family")
    return types


def _typed(fields: ConfigFields, types: tuple[str, ...], default: int | None) -> Windows:
    if SLIDING not in types:
        return (None,) * len(types)
    window = fields.positive_int("sliding_window", default)
    return tuple(window if kind == SLIDING else None for kind in types)


def _repeated(
    fields: ConfigFields, num_layers: int, names: tuple[str, ...], every: int, full_first: bool
) -> tuple[str, ...]:
    """Layers by a word such as "LLLG" (local, global), or a number of them with one full."""
    name = next((name for name in names if fields.has(name)), None)
    if name is not None:
        word = fields.values[name]
        if isinstance(word, str) and word and set(word) <= set("LG"):
            marks = (word[i % len(word)] for i in range(num_layers))
            return tuple(SLIDING if mark == "L" else FULL for mark in marks)
        every = fields.positive_int(name)
    full = 0 if full_first else every - 1
    return tuple(FULL if i % every == full else SLIDING for i in range(num_layers))
