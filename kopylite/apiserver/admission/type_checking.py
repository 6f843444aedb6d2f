"""What the expressions of a ValidatingAdmissionPolicy cannot mean for the kinds that it is about, in upstream's words.

The policy works all the same; its status warns. Upstream checks validations and their messages, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kopylite.apiserver.builtin.admission_types import NAMESPACE, struct
from kopylite.apiserver.builtin.validation_hooks import HOOK_VARIABLES
from kopylite.apiserver.resources.registry import Registry, Resource
from kopylite.apiserver.schema.cel.program import CompileProblem, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape, shape_of

# For each rule of the policy.
MOST_KINDS = 10


def expression_warnings(spec: Mapping[str, Any], registry: Registry) -> list[dict[str, str]]:
    """`status.typeChecking.expressionWarnings` of a policy.

    Args:
        spec: of the policy.
        registry: the kinds that are served.
    """
    scopes = [(resource, _scope(spec, resource, registry)) for resource in _kinds(spec, registry)]
    found: list[dict[str, str]] = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            source = validation.get(field)
            if source and (text := _warning(source, scopes)):
                found.append({"fieldRef": f"spec.validations[{index}].{field}", "warning": text})
    return found


def _warning(source: str, scopes: list[tuple[Resource, dict[str, Shape]]]) -> str:
    texts = []
    for resource, scope in scopes:
        try:
            Program(source, scope)
        except CompileProblem as problem:
            kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
            texts.append(f"{kind}: {problem}\n")
    return "\n".join(texts)


def _scope(spec: Mapping[str, Any], resource: Resource, registry: Registry) -> dict[str, Shape]:
    shape = shape_of(resource.strategy.schema) or DYN
    scope = {**HOOK_VARIABLES, "namespaceObject": NAMESPACE, "object": shape, "oldObject": shape}
    if (param := spec.get("paramKind")) is not None:
        known = registry.find_kind(param.get("apiVersion", ""), param.get("kind", ""))
        scope["params"] = DYN if known is None else shape_of(known.strategy.schema) or DYN
    declared: dict[str, Shape] = {}
    scope["variables"] = struct()
    for variable in spec.get("variables") or ():
        try:
            declared[variable["name"]] = Program(variable["expression"], scope).shape
        except CompileProblem:
            declared[variable["name"]] = DYN
        scope["variables"] = struct(**declared)
    return scope


def _kinds(spec: Mapping[str, Any], registry: Registry) -> list[Resource]:
    """The kinds that the rules name, without those behind wildcards; by group, version and kind."""
    found: dict[tuple[str, str, str], Resource] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions, names = (rule.get(field) or [] for field in ("apiGroups", "apiVersions", "resources"))
        if any("*" in text for text in (*groups, *versions)):
            continue
        plain = sorted(name for name in names if "*" not in name and "/" not in name)
        wanted = [(g, v, name) for g in sorted(groups) for v in sorted(versions) for name in plain]
        matching = [resource for one in wanted for resource in _served(registry, *one)]
        for resource in matching[:MOST_KINDS]:
            found[resource.group, resource.version, resource.kind] = resource
    return [found[key] for key in sorted(found)]


def _served(registry: Registry, group: str, version: str, name: str) -> Iterator[Resource]:
    """As upstream's RESTMapper finds them: no group stands for any."""
    named = (one for one in registry if one.version == version and name in (one.plural, one.singular))
    return (one for one in named if not group or one.group == group)
