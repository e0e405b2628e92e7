"""Tables and pictures of lesson 03 about models: what they weigh, what a token leaves in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from course.labels import Label, quantity
from course.picture import Picture, curves, stacked_bars
from course.table import Table
from labkit.plan.model import CacheKind, ModelSpec
from labkit.plan.model_presets import MODELS

GIB = 2**30
_CACHE_WORDS = {
    CacheKind.FULL: "all tokens",
    CacheKind.WINDOW: "a window",
    CacheKind.LATENT: "a latent",
    CacheKind.RECURRENT: "a state",
    CacheKind.NONE: "nothing",
}
_DRAWN_PARTS = ("attention", "MLP", "experts")


def weights_table(names: Iterable[str]) -> Table:
    """What models weigh, as their checkpoints store them, beside what their makers publish."""
    rows = []
    for name in names:
        preset = MODELS[name]
        model = preset.model
        rows.append(
            (
                preset.title,
                in_billions(model.num_parameters),
                in_billions(model.num_active_parameters),
                storage(model),
                quantity(model.weight_bytes, "B", short=True),
                f"{8 * model.weight_bytes / model.num_parameters:.2f}",
            )
        )
    return Table(
        ("model", "parameters", "one token uses", "stored in", "weights", "bits each"),
        rows,
        caption=f"Counted from configs ({Label.MODELLED})",
    )


def in_billions(count: float) -> str:
    """`72.71e9`, as this course writes parameter counts."""
    return f"{count / 1e9:.4g}e9"


def storage(model: ModelSpec) -> str:
    """The formats of a model's weights, the largest share first."""
    found: dict[str, float] = {}
    for matrix, count in model.matrices:
        found[matrix.format.name] = found.get(matrix.format.name, 0) + count * matrix.total_bytes
    shares = sorted(found.items(), key=lambda item: -item[1])
    return ", ".join(name for name, _ in shares if found[name] > 0.001 * model.weight_bytes)


def parts_picture(names: Sequence[str]) -> Picture:
    """Which part of the weights' bytes belongs to what, as percentages."""
    models = {MODELS[name].title: MODELS[name].model for name in names}
    shares = {title: _shares(model) for title, model in models.items()}
    parts = {part: [shares[title][part] for title in models] for part in (*_DRAWN_PARTS, "rest")}
    title, most = max(((t, s["experts"]) for t, s in shares.items()), key=lambda found: found[1])
    return stacked_bars(
        f"{most:.0f} % of the bytes of {title} are experts",
        parts,
        list(models),
        "%",
        Label.MODELLED,
    )


def _shares(model: ModelSpec) -> dict[str, float]:
    by_part = model.weight_bytes_by_part
    found = {part: 100 * by_part.get(part, 0.0) / model.weight_bytes for part in _DRAWN_PARTS}
    return {**found, "rest": 100 - sum(found.values())}


def cache_table(names: Iterable[str], lengths: Sequence[int]) -> Table:
    """What one token and whole sequences leave in the caches of models, in 16 bits."""
    rows = []
    for name in names:
        model = MODELS[name].model
        token = quantity(model.kv_bytes_per_token(2), "B", short=True)
        sizes = (quantity(model.kv_bytes(length), "B", short=True) for length in lengths)
        rows.append((MODELS[name].title, kept(model), token, *sizes))
    columns = ("model", "layers keep", "a token", *(f"{length:,} tokens" for length in lengths))
    return Table(columns, rows, caption=f"KV cache in 16 bits ({Label.MODELLED})")


def kept(model: ModelSpec) -> str:
    """How many layers keep what, as in `18 all tokens, 18 a window (128)`."""
    counts: dict[str, int] = {}
    for layer, count in model.layer_kinds:
        window = f" ({layer.cache.window:,})" if layer.cache.window else ""
        words = _CACHE_WORDS[layer.cache.kind] + window
        counts[words] = counts.get(words, 0) + count
    return ", ".join(f"{count} {words}" for words, count in counts.items())


def cache_picture(names: Sequence[str], lengths: Sequence[int]) -> Picture:
    """The cache of one sequence in 16 bits, by its length."""
    series = {
        MODELS[name].title: [
            (length, MODELS[name].model.kv_bytes(length) / GIB) for length in lengths
        ]
        for name in names
    }
    ends = [points[-1][1] for points in series.values()]
    return curves(
        f"{lengths[-1]:,} tokens: {min(ends):.3g} GiB or {max(ends):.3g} GiB",
        series,
        x=("tokens of one sequence", ""),
        y=("its cache", "GiB"),
        label=Label.MODELLED,
    )
