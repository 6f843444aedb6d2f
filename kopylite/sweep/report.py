"""Report: what a sweep has found, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kopylite.sweep.findings import SweepFinding


@dataclass(slots=True)
class Report:
    """The result of a sweep.

    Attributes:
        source, scenario: what was swept.
        plans: how many were run; `planned`: of how many.
        findings: what is wrong.
        unconfirmed: plans that went wrong once and not again.
        seconds: of the wall clock, reference runs included.
        on_real: how many of the plans were played on a real server, too; `differences`: where that had another verdict.
    """

    source: str = ""
    scenario: str = ""
    plans: int = 0
    planned: int = 0
    findings: list[SweepFinding] = field(default_factory=list)
    unconfirmed: int = 0
    seconds: float = 0.0
    on_real: int = 0
    differences: list[str] = field(default_factory=list)

    def to_wire(self) -> dict[str, Any]:
        """As `--json` writes it."""
        wire: dict[str, Any] = {"plans": self.plans, "findings": [finding.to_wire() for finding in self.findings]}
        return wire | ({"onReal": self.on_real, "differences": self.differences} if self.on_real else {})

    def __str__(self) -> str:
        rate = f", {60 * self.plans / self.seconds:.0f} a minute" if self.seconds > 0 and self.plans else ""
        of = f" of {self.planned}" if self.planned > self.plans else ""
        counted = "nothing found" if not self.findings else f"{len(self.findings)} found"
        lines = [f"{self.source} with {self.scenario}: {self.plans}{of} plans in {self.seconds:.1f} s{rate}: {counted}"]
        if self.planned > self.plans:
            lines.append(f"the budget was spent: {self.planned - self.plans} plans were not run")
        if self.on_real:
            equal = self.on_real - len(self.differences)
            lines += [f"on the real server: {equal} of {self.on_real} verdicts are the same"]
            lines += [f"  {difference}" for difference in self.differences]
        for number, finding in enumerate(self.findings, 1):
            lines += ["", f"{number}. {finding.sentence}"]
            if finding.others:
                lines.append(f"   (and {finding.others} more plans end alike)")
            if finding.line:
                lines.append(f"   at {finding.line}")
            if finding.object:
                lines.append(f"   object: {finding.object}{f', field: {finding.field}' if finding.field else ''}")
            lines += ["   trace:", *(f"     {line}" for line in finding.trace)]
            lines += ["   a test that shows it again:", *(f"     {line}" for line in finding.replay.splitlines())]
        return "\n".join(lines)
