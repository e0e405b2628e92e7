"""What the doctor found, as data that prints as text, as HTML and as JSON."""

import html
import json
from dataclasses import asdict, dataclass
from typing import Literal

Status = Literal["ok", "note", "fix", "broken"]

_MEANINGS = {
    "ok": "as it should be",
    "note": "good to know",
    "fix": "works without, better with",
    "broken": "labkit cannot work",
}


@dataclass(frozen=True)
class Finding:
    """One line. `advice` says what to do about it, where something should be done."""

    topic: str
    status: Status
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.text} -> {self.advice}" if self.advice else self.text


@dataclass(frozen=True)
class Report:
    """Everything the doctor looked at, on this machine, now."""

    findings: tuple[Finding, ...]
    num_ranks: int  # how many ranks make sense here

    @property
    def is_usable(self) -> bool:
        """Whether labkit can work here at all."""
        return not any(finding.status == "broken" for finding in self.findings)

    def __getitem__(self, topic: str) -> tuple[Finding, ...]:
        """The findings about one topic, such as "cores"."""
        return tuple(finding for finding in self.findings if finding.topic == topic)

    def text(self) -> str:
        """One line per finding, and a last one that sums up."""
        topics = max(len(finding.topic) for finding in self.findings)
        lines = [
            f"{finding.status:<6}  {finding.topic:<{topics}}  {finding}"
            for finding in self.findings
        ]
        return "\n".join([*lines, "", self._summary()])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def to_json(self) -> str:
        """The same as JSON."""
        findings = [asdict(finding) for finding in self.findings]
        return json.dumps(
            {"is_usable": self.is_usable, "num_ranks": self.num_ranks, "findings": findings},
            indent=2,
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td title="{_MEANINGS[finding.status]}"><b>{finding.status}</b></td>'
            f"<td>{html.escape(finding.topic)}</td>"
            f'<td style="text-align:left">{html.escape(finding.text)}'
            + (f"<br><i>{html.escape(finding.advice)}</i>" if finding.advice else "")
            + "</td></tr>"
            for finding in self.findings
        )
        return f"<table><tbody>{rows}</tbody></table><p>{html.escape(self._summary())}</p>"

    def _summary(self) -> str:
        broken = sum(finding.status == "broken" for finding in self.findings)
        if broken:
            return f"labkit cannot work here yet: see the {broken} marked broken."
        fixes = sum(finding.status == "fix" for finding in self.findings)
        return "Ready." if not fixes else f"Ready; {fixes} could be better: see those marked fix."
