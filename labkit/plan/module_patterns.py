"""Which weights the names and patterns of a quantisation config mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from labkit.plan.config_fields import ConfigFields

_FUSED = {
    "q_proj": "qkv_proj",
    "k_proj": "qkv_proj",
    "v_proj": "qkv_proj",
    "gate_proj": "gate_up_proj",
    "up_proj": "gate_up_proj",
}
_DECODER_PREFIXES = (
    "model.language_model.",
    "language_model.model.",
    "model.text_model.",
    "backbone.",
)
_CLASSES = frozenset({"Linear", "LinearBase"})


def layer_module(index: int, name: str) -> str:
    """The full name of a layer's weight."""
    return f"model.layers.{index}.{name}"


@cache
def called(module: str) -> tuple[str, ...]:
    """What else checkpoints call a module: fused with its neighbours, below other roots."""
    head, _, last = module.rpartition(".")
    names = [module]
    if last in _FUSED:
        names.append(f"{head}.{_FUSED[last]}")
    if module.startswith("model."):
        inner = module.removeprefix("model.")
        names += [prefix + inner for prefix in _DECODER_PREFIXES]
    if module == "lm_head":
        names += ["language_model.lm_head", "model.lm_head", "head"]
    return tuple(names)


def listed(module: str, patterns: Iterable[str]) -> bool:
    """Whether some pattern is this module or holds it; `*` stands for anything.

    A pattern counts by whole parts of the name: `gate` is no `gate_proj`.
    """
    return any(_as_regex(pattern).search(name) for pattern in patterns for name in called(module))


def targeted(module: str, targets: Iterable[str]) -> bool:
    """As compressed-tensors matches: a class of layer, a name, or `re:` and an expression."""
    for target in targets:
        if target in _CLASSES:
            return True
        if target.startswith("re:"):
            expression = re.compile(target.removeprefix("re:"))
            if any(expression.match(name) for name in called(module)):
                return True
        elif listed(module, (target,)):
            return True
    return False


def refuse_bad_expressions(fields: ConfigFields, field: str, patterns: Iterable[str]) -> None:
    """Refuse the field where one of its `re:`, `+:` or `-:` patterns is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(re.sub(r"^(re|[+-]):", "", pattern))
        except re.error as error:
            raise fields.refuse(field, f"{pattern!r} is no regular expression: {error}") from None


@cache
def _as_regex(pattern: str) -> re.Pattern[str]:
    inside = ".*".join(re.escape(piece) for piece in pattern.strip(".").split("*"))
    return re.compile(rf"(^|\.){inside}(\.|$)")
