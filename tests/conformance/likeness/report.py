"""Compare the answers of two servers and say how alike they are, by section."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.likeness.normalise import Normaliser, without_messages
from tests.conformance.likeness.player import Answer
from tests.conformance.likeness.script import Script, Step

KNOWN = Path(__file__).parent / "known_differences.yaml"
KNOWN_KINDS = Path(__file__).parent / "known_kinds.yaml"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One request, answered by both servers. `equal` leaves texts for people out; `same_text` does not.

    Answers that a step waited for in vain are never equal: nobody knows what it would have compared.
    """

    script: Script
    number: int
    step: Step
    real: dict[str, Any]
    embedded: dict[str, Any]
    equal: bool
    same_text: bool

    @property
    def id(self) -> str:
        return identifier(self.script, self.number)

    def difference(self) -> str:
        """The lines that differ, `-` real and `+` embedded."""
        return "\n".join(_differences("", self.real, self.embedded)) or f"    {dict(self.step.until)} never came"


def canonical(value: Any) -> str:
    """Equal for equal JSON only: Python takes 1, 1.0 and true for the same."""
    return json.dumps(value, sort_keys=True)


def compare(script: Script, namespace: str, real: list[Answer], embedded: list[Answer]) -> Iterable[Comparison]:
    """Compare the answers to each step of a script that was played in a namespace."""
    left, right = Normaliser(real, namespace), Normaliser(embedded, namespace)
    for number, (step, one, other) in enumerate(zip(script.steps, real, embedded, strict=True), 1):
        found, ours = left(step, one), right(step, other)
        comparable = not (one.in_vain or other.in_vain)
        equal = comparable and canonical(without_messages(found)) == canonical(without_messages(ours))
        same_text = equal and canonical(found) == canonical(ours)
        yield Comparison(script, number, step, found, ours, equal, same_text)


def identifier(script: Script, number: int) -> str:
    """The id of a step, by its number from 1: with the step's name, where it has one."""
    name = script.steps[number - 1].name
    return f"{script.name}: {name}" if name else f"{script.name} #{number}"


def known_differences(file: Path = KNOWN) -> Mapping[str, str]:
    """Request id → why it differs and may."""
    entries = yaml.safe_load(file.read_text()) or []
    return {identifier: entry["reason"] for entry in entries for identifier in entry["requests"]}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run; `left_out` are the ids of requests that were not played."""

    comparisons: tuple[Comparison, ...]
    known: Mapping[str, str]
    left_out: frozenset[str] = frozenset()

    @property
    def percent(self) -> float:
        return 100 * sum(c.equal for c in self.comparisons) / max(1, len(self.comparisons))

    def surprises(self) -> list[Comparison]:
        """Requests that differ and are not known to."""
        return [c for c in self.comparisons if not c.equal and c.id not in self.known]

    def outdated(self) -> list[str]:
        """Known differences that are none (any more), or that nothing asks for."""
        differing = {c.id for c in self.comparisons if not c.equal}
        return sorted(set(self.known) - differing - self.left_out)

    def table(self) -> str:
        """Matches by section."""
        sections: dict[str, list[Comparison]] = defaultdict(list)
        for comparison in self.comparisons:
            sections[comparison.script.section].append(comparison)
        lines = [f"{'section':44} requests  equal  texts too"]
        for section, found in sections.items():
            equal, texts = sum(c.equal for c in found), sum(c.same_text for c in found)
            lines.append(f"{section:44} {len(found):8} {equal:6} {texts:10}")
        return "\n".join(lines)

    def verdict(self) -> str:
        """The last line of a run."""
        equal = sum(c.equal for c in self.comparisons)
        return f"{equal} of {len(self.comparisons)} equal ({self.percent:.1f} %)"


def _differences(path: str, left: Any, right: Any) -> Iterable[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted({*left, *right}, key=str):
            if key not in left or key not in right or canonical(left[key]) != canonical(right[key]):
                yield from _differences(f"{path}.{key}", left.get(key, _MISSING), right.get(key, _MISSING))
    elif isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            if canonical(one) != canonical(other):
                yield from _differences(f"{path}[{index}]", one, other)
    else:
        yield f"    - {path.lstrip('.')}: {_short(left)}"
        yield f"    + {path.lstrip('.')}: {_short(right)}"


_MISSING = object()


def _short(value: Any) -> str:
    if value is _MISSING:
        return "(missing)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 400 else text[:400] + "…"
