"""What collectives cost on real systems: models fitted to recorded points, and the textbook's.

A preset is one implementation, in one version, on one system. `model` is one set of parameters for
all recorded rank counts, `model_for(n)` the one fitted to n ranks alone: nearer where links are
shared or laid out unevenly. Each carries its own error; some do not fit, and say so.
`benchmarks/fit_presets.py` makes the figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from labkit.plan.calibration import Estimate
from labkit.plan.calibration_families import FAMILIES, LAUNCHED
from labkit.plan.collective_figures import FIGURES
from labkit.plan.collectives import CostModel, Ring
from labkit.plan.presets import Source


@dataclass(frozen=True)
class PresetFit:
    """One fitted model.

    Attributes:
        family: as `labkit.plan.calibration.calibrate` calls it.
        model: with the fitted parameters.
        parameters: by name, each with its doubt.
        error: mean relative error over all recorded points in range.
        kept_error: the same without the outliers.
        outliers: points that the fit set aside or that tell against it: ranks and payload bytes.
        fits: whether `kept_error` is within 10 %, with few outliers.
    """

    family: str
    model: CostModel
    parameters: Mapping[str, Estimate]
    error: float
    kept_error: float
    outliers: tuple[tuple[int, int], ...]
    fits: bool


@dataclass(frozen=True)
class CollectivePreset:
    """A collective on a system.

    Attributes:
        name: "system/implementation/version/op".
        joint: one fit over all rank counts; None where the parameters are assumed.
        by_ranks: a fit for each recorded rank count.
        model: of `joint`, or as assumed.
        valid_bytes: smallest and largest payload that was fitted; None where nothing was.
        label: "captured" or "assumed".
        note: what to know before quoting it.
    """

    name: str
    title: str
    system: str
    implementation: str
    version: str
    op: str
    dtype: str
    model: CostModel
    joint: PresetFit | None
    by_ranks: Mapping[int, PresetFit]
    valid_bytes: tuple[int, int] | None
    source: str
    label: str = "captured"
    note: str = ""

    @property
    def error(self) -> float | None:
        """Mean relative error of `model` over the recorded points in range; None if assumed."""
        return self.joint.error if self.joint else None

    def model_for(self, n: int) -> CostModel:
        """The model fitted to `n` ranks alone; `model` where that count was not recorded."""
        return self.by_ranks[n].model if n in self.by_ranks else self.model

    def chosen_model(self, n: int) -> CostModel:
        """`model` where one set of parameters fits all rank counts, else `model_for(n)`."""
        return self.model if self.joint is None or self.joint.fits else self.model_for(n)

    def error_for(self, n: int) -> float | None:
        """The error of `model_for(n)`; None where there are no points of `n` ranks to tell."""
        return self.by_ranks[n].error if n in self.by_ranks else None

    def covers(self, payload_bytes: float) -> bool:
        """Whether a payload lies in the range that was fitted."""
        if self.valid_bytes is None:
            return False
        return self.valid_bytes[0] <= payload_bytes <= self.valid_bytes[1]


SOURCE = Source(
    "https://github.com/ai-dynamo/aiconfigurator",
    "aiconfigurator-core 0.12.0 (PyPI, Apache-2.0), systems/data/*/comm; single node",
    "2026-11-30",
)
SYSTEMS = MappingProxyType({"h100_sxm": "H100 SXM", "a100_sxm": "A100 SXM", "l40s": "L40S"})
"""System -> its name in words."""
IMPLEMENTATIONS = MappingProxyType(
    {
        "vllm_graph": "vLLM {} custom, CUDA graph",
        "vllm_eager": "vLLM {} custom, eager",
        "sglang_graph": "SGLang {} custom, CUDA graph",
        "sglang_eager": "SGLang {} custom, eager",
        "trtllm": "TensorRT-LLM {}",
        "nccl": "NCCL {}",
    }
)
"""Implementation -> its name in words, with a place for the version."""
_NOTES = {
    ("h100_sxm", "nccl", "2.27.3"): "filed under NCCL 2.27.3; the rows themselves say 2.29.2",
    ("h100_sxm", "trtllm", "sglang-0.5.6.post2"): "filed under SGLang 0.5.6.post2",
    ("l40s", "trtllm", "sglang-0.5.9"): "filed under SGLang 0.5.9",
}
_L40S_NOTE = "over PCIe: depends on the host"


def _textbook(name: str, title: str, model: Ring) -> CollectivePreset:
    return CollectivePreset(
        name=f"textbook/{name}",
        title=title,
        system="textbook",
        implementation="ring",
        version="",
        op="all_reduce",
        dtype="",
        model=model,
        joint=None,
        by_ranks=MappingProxyType({}),
        valid_bytes=None,
        source="round figures of the course's source material",
        label="assumed",
    )


TEXTBOOK_NVLINK = _textbook("nvlink", "textbook ring, 450 GB/s and 2 us a hop", Ring(2e-6, 450e9))
TEXTBOOK_PCIE = _textbook("pcie", "textbook ring, 25 GB/s and 5 us a hop", Ring(5e-6, 25e9))


def _fit(fields: Mapping[str, str]) -> PresetFit:
    family = (LAUNCHED if fields["launch"] == "launch" else FAMILIES)[fields["family"]]
    values, lows, highs = (
        [float(word) for word in fields[name].split()] for name in ("values", "lows", "highs")
    )
    estimates = map(Estimate, values, lows, highs)
    pairs = [pair.split(":") for pair in fields["outliers"].split()]
    return PresetFit(
        family=fields["family"],
        model=family.build(*values),
        parameters=MappingProxyType(dict(zip(family.parameters, estimates, strict=True))),
        error=float(fields["error"]),
        kept_error=float(fields["kept"]),
        outliers=tuple((int(ranks), int(size)) for ranks, size in pairs),
        fits=fields["fits"] == "fits",
    )


def _presets() -> dict[str, CollectivePreset]:
    head, *lines = FIGURES.strip().splitlines()
    rows = [dict(zip(head.split("|"), line.split("|"), strict=True)) for line in lines]
    series: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        name = "/".join(row[key] for key in ("system", "implementation", "version", "op"))
        series.setdefault(name, []).append(row)
    presets: dict[str, CollectivePreset] = {}
    for name, some in series.items():
        preset = _preset(name, some)
        twin = next((p for p in presets.values() if _has_the_same_fits(p, preset)), None)
        note = f"the same points as {twin.name}" if twin else ""
        presets[name] = replace(preset, note="; ".join(filter(None, (preset.note, note))))
    return presets


def _has_the_same_fits(one: CollectivePreset, other: CollectivePreset) -> bool:
    return (one.system, one.joint, one.by_ranks) == (other.system, other.joint, other.by_ranks)


def _preset(name: str, rows: list[dict[str, str]]) -> CollectivePreset:
    fits = {row["ranks"]: _fit(row) for row in rows}
    joint, first = fits.pop("all"), rows[0]
    system, implementation, version = (
        first[key] for key in ("system", "implementation", "version")
    )
    notes = [_NOTES.get((system, implementation, version), "")]
    notes += [_L40S_NOTE] if system == "l40s" else []
    return CollectivePreset(
        name=name,
        title=f"{IMPLEMENTATIONS[implementation].format(version)}, {SYSTEMS[system]}",
        system=system,
        implementation=implementation,
        version=version,
        op=first["op"],
        dtype=first["dtype"],
        model=joint.model,
        joint=joint,
        by_ranks=MappingProxyType({int(ranks): fit for ranks, fit in fits.items()}),
        valid_bytes=(int(first["smallest"]), int(first["largest"])),
        source=str(SOURCE),
        note="; ".join(note for note in notes if note),
    )


COLLECTIVE_PRESETS: Mapping[str, CollectivePreset] = MappingProxyType(_presets())
"""By name, as in "h100_sxm/vllm_graph/0.19.0/all_reduce"; the textbook's are constants above."""
