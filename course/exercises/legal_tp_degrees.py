"""Exercise: which tensor parallel degrees a model allows, and every rule that the others break."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from course.exercises.plain_cases import Wrong, plain_case
from course.grading.exercise import Case, Exercise

RULES = ("heads", "kv_heads", "mlp", "quantisation_group")
MESSAGES = {
    "copies-refused": "Degrees are refused at which KV heads are copied. With more ranks than KV "
    "heads, ranks may hold the same head, as long as each head is on equally many ranks.",
    "any-copies": "Every degree above the number of KV heads passes. Copies must come out even: "
    "otherwise some heads live on more ranks than others.",
    "kv-heads-ignored": "KV heads were never asked. Query heads are cut together with the KV heads "
    "that they share.",
    "heads-ignored": "Query heads were never asked. A head is not cut.",
    "mlp-ignored": "The MLP's width was never asked. Each rank takes an equal part of it.",
    "groups-ignored": "No border was asked whether it falls inside a group, or only the whole "
    "width was. Weights that share a scale cannot be parted, and borders depend on the degree.",
    "attention-forgotten": "Only the MLP's groups were asked. Attention's output projection is cut "
    "by its inputs too, so through its groups.",
    "mlp-forgotten": "Only attention's groups were asked. The MLP's last matrix is cut by its "
    "inputs too.",
    "first-reason-only": "A degree can break several rules. Only the first of them is named, so "
    "whoever repairs it meets the next one.",
    "legal-left-out": "The legal degrees are missing. They are in the answer, with no rule.",
    "illegal-left-out": "The degrees that break a rule are missing. The answer names every degree, "
    "with what speaks against it.",
}


def _parts(config: Mapping[str, Any]) -> tuple[int, ...]:
    """The inputs of the matrices that are cut by their inputs: down_proj, o_proj."""
    return config["intermediate_size"], config["num_attention_heads"] * config["head_dim"]


def _cuts(width: int, tp: int, group: int) -> bool:
    """Whether a rank's border falls inside a group; no question where the width does not divide."""
    return bool(group) and not width % tp and bool(width // tp % group)


def _broken(config: Mapping[str, Any], tp: int) -> list[str]:
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    group = config.get("group_size", 0)
    broken = {
        "heads": heads % tp,
        "kv_heads": kv_heads % tp and tp % kv_heads,
        "mlp": config["intermediate_size"] % tp,
        "quantisation_group": any(_cuts(width, tp, group) for width in _parts(config)),
    }
    return [rule for rule in RULES if broken[rule]]


def _right(config: Mapping[str, Any], degrees: list[int]) -> dict[int, list[str]]:
    return {tp: _broken(config, tp) for tp in degrees}


def _wrong(config: Mapping[str, Any], degrees: list[int]) -> Wrong:
    right = _right(config, degrees)
    kv_heads, group = config["num_key_value_heads"], config.get("group_size", 0)
    mlp, attention = _parts(config)

    def told(rule: str, breaks: Callable[[int], bool]) -> dict[int, list[str]]:
        """The right answer, but for one rule."""
        return {
            tp: [r for r in RULES if (breaks(tp) if r == rule else r in right[tp])]
            for tp in degrees
        }

    yield "copies-refused", told("kv_heads", lambda tp: bool(kv_heads % tp))
    yield "any-copies", told("kv_heads", lambda tp: tp <= kv_heads and bool(kv_heads % tp))
    for rule, key in zip(
        RULES, ("heads-ignored", "kv-heads-ignored", "mlp-ignored", "groups-ignored"), strict=True
    ):
        yield key, told(rule, lambda tp: False)
    rule = "quantisation_group"
    if group:
        yield "attention-forgotten", told(rule, lambda tp: _cuts(mlp, tp, group))
        yield "mlp-forgotten", told(rule, lambda tp: _cuts(attention, tp, group))
    yield "first-reason-only", {tp: broken[:1] for tp, broken in right.items()}
    yield "legal-left-out", {tp: broken for tp, broken in right.items() if broken}
    yield "illegal-left-out", {tp: broken for tp, broken in right.items() if not broken}


def _case(
    name: str,
    heads: int,
    kv_heads: int,
    mlp: int,
    degrees: list[int],
    group: int = 0,
    dim: int = 128,
) -> Case:
    config = {
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": dim,
        "intermediate_size": mlp,
    }
    if group:
        config["group_size"] = group
    arguments = {"config": config, "degrees": degrees}
    return plain_case(name, arguments, _right(config, degrees), _wrong(config, degrees), MESSAGES)


def _visible(seed: int) -> tuple[Case, ...]:
    return (
        _case("a 70B", 64, 8, 28672, [1, 2, 3, 4, 8, 16, 24]),
        _case("6 KV heads", 24, 6, 9216, [1, 4, 5, 7, 8, 12, 24]),
        _case("INT4, groups of 96", 12, 12, 768, [1, 2, 3, 4, 5, 6], group=96, dim=24),
    )


def _hidden(seed: int) -> tuple[Case, ...]:
    random = Random(seed)
    pairs = 4 * random.choice([5, 8, 10])
    return (
        _case("grouped", 2 * pairs, 4, 512 * random.choice([10, 11, 13, 14]), [1, 2, 3, 4, 6, 8]),
        _case("10 KV heads", 40, 10, 5120, [1, 2, 4, 8, 10, 13, 16, 20]),
        _case("groups of 160", 20, 20, 160 * 8, [1, 2, 3, 4, 5, 10, 20], group=160, dim=40),
        _case("one KV head", 14, 1, 4864, [1, 2, 3, 4, 7, 8], dim=64),
    )


EXERCISE = Exercise(
    name="legal_tp_degrees",
    chapter="03_layout_planning",
    title="Which degrees, and why not the others",
    function="legal_tp_degrees",
    parameters=("config", "degrees"),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
