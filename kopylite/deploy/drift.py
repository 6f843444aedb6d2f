"""Drift: in what files differ from what would be made now. Of roles each right is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kopylite.errors import UsageError
from kopylite.objects.yamlread import read_documents

_Right = tuple[str, str, str, str]


def differences(found: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """One text for each difference between the files of a folder and those that would be made, both by their names."""
    for name in sorted({*found, *wanted}):
        if name not in wanted:
            yield f"{name}: is not made any more"
        elif name not in found:
            yield f"{name}: missing"
        elif found[name] != wanted[name]:
            yield from _in_file(name, found[name], wanted[name])


def _in_file(name: str, found: str, wanted: str) -> Iterator[str]:
    try:
        here = _objects(wanted, name)
    except UsageError:
        here = {}  # a chart's template
    if not here or any(of.startswith("None ") for of in here):
        yield f"{name}: differs"
        return
    try:
        there = _objects(found, name)
    except UsageError as error:
        yield str(error)
        return
    if there == here:
        yield f"{name}: was edited, though it means the same"
    for of in sorted({*there, *here}):
        if there.get(of) == here.get(of):
            continue
        if of not in here or of not in there:
            yield f"{name}: {of} is {'missing' if of in here else 'not made any more'}"
            continue
        rights, wished = _rights(there[of]), _rights(here[of])
        yield from (f"{name}: {of} lacks the rule {_shown(right)}" for right in sorted(wished - rights))
        yield from (f"{name}: {of} has a rule that is not needed: {_shown(right)}" for right in sorted(rights - wished))
        if rights == wished:
            yield f"{name}: {of} differs"


def _objects(text: str, where: str) -> dict[str, Any]:
    objects: dict[str, Any] = {}
    for document in read_documents(text.encode(), where):
        metadata = document.get("metadata") if isinstance(document, dict) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        namespace = f" in {metadata['namespace']}" if metadata.get("namespace") else ""
        kind = document.get("kind") if isinstance(document, dict) else "?"
        objects[f"{kind} {metadata.get('name', '?')}{namespace}"] = document
    return objects


def _rights(role: Any) -> set[_Right]:
    found: set[_Right] = set()
    for rule in role.get("rules") or () if isinstance(role, dict) else ():
        if isinstance(rule, dict):
            groups, resources, verbs = (rule.get(part) or () for part in ("apiGroups", "resources", "verbs"))
            names = [str(name) for name in rule.get("resourceNames") or ("",)]
            found.update((str(g), str(r), str(v), n) for g in groups for r in resources for v in verbs for n in names)
    return found


def _shown(right: _Right) -> str:
    group, resource, verb, name = right
    names = f', resourceNames: ["{name}"]' if name else ""
    return f'{{apiGroups: ["{group}"], resources: ["{resource}"]{names}, verbs: ["{verb}"]}}'
