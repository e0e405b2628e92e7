"""What a benchmark is held to: at least so many times as fast, or at most so far off."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Bar:
    """`value` times as fast as the peer, where `bar` was asked for; None: it was not measured."""

    name: str
    value: float | None
    bar: float
    goal: float | None = None

    @property
    def ok(self) -> bool:
        """Cleared. What was not measured was not cleared."""
        return self.value is not None and self.value >= self.bar

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; `goal_met` only where there is a goal above the bar."""
        fields = asdict(self) | {"ok": self.ok}
        if self.goal is None:
            del fields["goal"]
        else:
            fields["goal_met"] = self.value is not None and self.value >= self.goal
        return fields

    def __str__(self) -> str:
        value = "not measured" if self.value is None else f"{self.value:.2f}x"
        verdict = "ok" if self.ok else "MISSED"
        goal = "" if self.goal is None else f", goal {self.goal:g}x"
        return f"{verdict:7} {self.name}: {value} (bar {self.bar:g}x{goal})"


@dataclass(frozen=True)
class ErrorBar:
    """A mean relative error, where at most `bar` was asked for; None: it was not computed."""

    name: str
    value: float | None
    bar: float

    @property
    def ok(self) -> bool:
        """Kept. What was not computed was not kept."""
        return self.value is not None and self.value <= self.bar

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"ok": self.ok}

    def __str__(self) -> str:
        value = "not computed" if self.value is None else f"{self.value:.1%}"
        verdict = "ok" if self.ok else "MISSED"
        return f"{verdict:7} {self.name}: {value} (bar at most {self.bar:.0%})"
