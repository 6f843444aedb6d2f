"""Validation of what places pods: tolerations, affinity, spreading. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import duplicate, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_value_errors

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def tolerations(listed: Any, path: str) -> Errors:
    found: Errors = []
    for index, toleration in enumerate(listed or ()):
        where = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        if key:
            found += checks.qualified_name(f"{where}.key", key)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{where}.operator", operator, text))
        effect = toleration.get("effect", "")
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid(f"{where}.effect", effect, text))
        value = toleration.get("value", "")
        if operator in ("Equal", ""):
            found += checks.texts(f"{where}.operator", value, label_value_errors(value))
        elif operator == "Exists":
            if value:
                found.append(invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"))
        elif operator not in ("Lt", "Gt"):
            found.append(unsupported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect:
            found += checks.one_of(f"{where}.effect", effect, EFFECTS)
    return found


def affinity(affinities: Object | None, path: str) -> Errors:
    found: Errors = []
    for kind, terms in (affinities or {}).items():
        where = f"{path}.{kind}"
        needed = terms.get("requiredDuringSchedulingIgnoredDuringExecution")
        preferred = terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        here = f"{where}.requiredDuringSchedulingIgnoredDuringExecution"
        if kind == "nodeAffinity":
            if needed is not None:
                found += node_selector(needed, here)
        else:
            for index, term in enumerate(needed or ()):
                found += _pod_term(term, f"{here}[{index}]")
        for index, weighted in enumerate(preferred):
            there = f"{where}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            if not 1 <= weighted["weight"] <= 100:
                found.append(invalid(f"{there}.weight", weighted["weight"], "must be in the range 1-100"))
            if kind == "nodeAffinity":
                found += _node_term(weighted["preference"], f"{there}.preference")
            else:
                found += _pod_term(weighted["podAffinityTerm"], f"{there}.podAffinityTerm")
    return found


def node_selector(selector: Object, path: str) -> Errors:
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [e for i, term in enumerate(terms) for e in _node_term(term, f"{path}.nodeSelectorTerms[{i}]")]


def _node_term(term: Object, path: str) -> Errors:
    found: Errors = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        found += checks.requirement_operator(requirement, where, comparisons=True)
        found += checks.qualified_name(f"{where}.key", requirement.get("key", ""))
    return found


def _pod_term(term: Object, path: str) -> Errors:
    found = checks.label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    found += checks.label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    key = term.get("topologyKey", "")
    if not key:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    return found + checks.qualified_name(f"{path}.topologyKey", key)


def spread_constraints(listed: Any, path: str) -> Errors:
    found: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(listed or ()):
        where = f"{path}[{index}]"
        if constraint["maxSkew"] <= 0:
            found.append(invalid(f"{where}.maxSkew", constraint["maxSkew"], "must be greater than zero"))
        key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        if not key:
            found.append(required(f"{where}.topologyKey", "can not be empty"))
        else:
            found += checks.qualified_name(f"{where}.topologyKey", key)
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            found.append(unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        if (key, action) in seen:
            found.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        found += checks.label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return found
