"""A Diagnosis as people and programs read it. Pure."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from kopylite.doctor.findings import Diagnosis, Finding, FindingSeverity, Unchecked

# The form of the JSON. It grows by fields; what is there keeps its meaning.
VERSION = 1


def as_json(diagnosis: Diagnosis) -> str:
    """The diagnosis as one JSON document; docs/how-to/operate.md describes it."""
    return json.dumps(to_wire(diagnosis), indent=2)


def to_wire(diagnosis: Diagnosis) -> dict[str, Any]:
    """The document of `as_json`."""
    return {
        "kopyliteDoctor": VERSION,
        "server": diagnosis.server,
        "serverVersion": diagnosis.version,
        "reachable": not diagnosis.unreachable,
        "failedStep": diagnosis.unreachable,
        "errors": diagnosis.count(FindingSeverity.ERROR),
        "warnings": diagnosis.count(FindingSeverity.WARNING),
        "findings": [
            {
                "severity": each.severity.value,
                "check": each.check,
                "where": each.where,
                "what": each.what,
                "fix": each.fix,
            }
            for each in diagnosis.ordered
        ],
        "unchecked": [{"check": each.check, "what": each.what, "needs": each.needs} for each in diagnosis.unchecked],
    }


def as_table(diagnosis: Diagnosis, width: int = 100) -> str:
    """A row for each finding, with its fix below, to be copied as it stands; then what could not be looked at.

    Args:
        width: of the terminal; fixes are never wrapped.
    """
    lines: list[str] = []
    if diagnosis.findings:
        lines.append(f"{'SEVERITY':<10}{'CHECK':<14}WHERE, WHAT, and the fix")
    for finding in diagnosis.ordered:
        lines += _row(finding, max(width, 60))
    if diagnosis.unchecked:
        lines += ["", "not checked:"]
        for each in diagnosis.unchecked:
            lines += _missing(each, max(width, 60))
    lines += ["", summary(diagnosis)] if lines else [summary(diagnosis)]
    return "\n".join(lines) + "\n"


def summary(diagnosis: Diagnosis) -> str:
    """One line."""
    errors, warnings = diagnosis.count(FindingSeverity.ERROR), diagnosis.count(FindingSeverity.WARNING)
    version = f", Kubernetes {diagnosis.version}" if diagnosis.version else ""
    if not errors and not warnings:
        found = "nothing found"
    else:
        found = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
    left = f", {len(diagnosis.unchecked)} not checked" if diagnosis.unchecked else ""
    return f"{diagnosis.server}{version}: {found}{left}"


def _row(finding: Finding, width: int) -> list[str]:
    head = f"{finding.severity.value:<10}{finding.check:<14}"
    lines = textwrap.wrap(finding.where, width, initial_indent=head, subsequent_indent=" " * 24) or [head]
    lines += textwrap.wrap(finding.what, width, initial_indent=" " * 24, subsequent_indent=" " * 24)
    lines += [f"    {line}".rstrip() for line in finding.fix.splitlines()]
    return lines


def _missing(each: Unchecked, width: int) -> list[str]:
    lines = textwrap.wrap(f"{each.check:<14}{each.what}", width, initial_indent="  ", subsequent_indent=" " * 16)
    if each.needs:
        lines += [f"    needs rule {each.needs}"]
    return lines
