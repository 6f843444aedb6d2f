"""Validation of what places pods: tolerations, affinity, spreading. Pure."""

from __future__ import annotations

import re
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, go_quote, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, label_value_errors, subdomain_errors

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
        elif operator in ("Lt", "Gt"):
            found += _whole_number(f"{where}.value", value)
        else:
            found.append(unsupported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect:
            found += checks.one_of(f"{where}.effect", effect, EFFECTS)
    return found


def _whole_number(field: str, value: str) -> Errors:
    """A decimal integer of 64 bits."""
    if not re.fullmatch(r"0|-?[1-9][0-9]*", value):
        parsed = f"strconv.ParseInt: parsing {go_quote(value)}: invalid syntax"
        return checks.texts(field, value, ["must be a valid decimal integer in canonical form", parsed])
    if len(value) > 20 or not -(2**63) <= int(value) < 2**63:
        return [invalid(field, value, f"strconv.ParseInt: parsing {go_quote(value)}: value out of range")]
    return []


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
                found += _node_term(weighted["preference"], f"{there}.preference", strict=False)
            else:
                found += _pod_term(weighted["podAffinityTerm"], f"{there}.podAffinityTerm")
    return found


def node_selector(selector: Object, path: str, *, strict: bool = False) -> Errors:
    """Args: strict: values must be values of labels."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        e for i, term in enumerate(terms) for e in _node_term(term, f"{path}.nodeSelectorTerms[{i}]", strict=strict)
    ]


def _node_term(term: Object, path: str, *, strict: bool) -> Errors:
    found: Errors = []
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{index}]"
        found += checks.requirement_operator(requirement, where, comparisons=True)
        found += checks.qualified_name(f"{where}.key", requirement.get("key", ""))
        if strict:
            found += _label_values(requirement, where)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        found += _node_field(requirement, f"{path}.matchFields[{index}]")
    return found


def _label_values(requirement: Object, path: str) -> Errors:
    found: Errors = []
    for index, value in enumerate(requirement.get("values") or ()):
        found += checks.texts(f"{path}.values[{index}]", value, label_value_errors(value))
    return found


def _node_field(requirement: Object, path: str) -> Errors:
    """A node is picked by its name; it has no other field to pick it by."""
    operator, key, values = (requirement.get(field) for field in ("operator", "key", "values"))
    found: Errors = []
    if operator not in ("In", "NotIn"):
        found.append(invalid(f"{path}.operator", operator or "", "not a valid selector operator"))
    elif len(values or ()) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{path}.values", text))
    if key != "metadata.name":
        return [*found, invalid(f"{path}.key", key or "", "not a valid field selector key")]
    for index, value in enumerate(values or ()):
        found += checks.texts(f"{path}.values[{index}]", value, subdomain_errors(value))
    return found


def _pod_term(term: Object, path: str) -> Errors:
    found = checks.label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    found += checks.label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found += checks.texts(f"{path}.namespace", name, label_errors(name))
    found += _label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    return found + checks.qualified_name(f"{path}.topologyKey", key)


def _label_keys(holder: Object, path: str) -> Errors:
    """Keys of labels of the pod itself: valid, and each of them in one place only."""
    selector = holder.get("labelSelector")
    matched, unmatched = holder.get("matchLabelKeys") or [], holder.get("mismatchLabelKeys") or []
    found: Errors = []
    for field, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", unmatched)):
        if keys and selector is None:
            found.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
            continue
        for index, key in enumerate(keys):
            found += checks.qualified_name(f"{path}.{field}[{index}]", key)
    seen = set((selector or {}).get("matchLabels") or ())
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key", "")
        if key in matched and key in seen:
            last = len(matched) - 1 - matched[::-1].index(key)
            found.append(invalid(f"{path}[{last}]", key, "exists in both matchLabelKeys and labelSelector"))
        seen.add(key)
    for index, key in enumerate(matched):
        if key in unmatched:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            found.append(invalid(f"{path}.matchLabelKeys[{index}]", key, text))
    return found


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
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            found.append(unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
        if (key, action) in seen:
            found.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        seen.add((key, action))
        least = constraint.get("minDomains")
        if least is not None and least <= 0:
            found.append(invalid(f"{where}.minDomains", least, "must be greater than zero"))
        if least is not None and action != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            found.append(invalid(f"{where}.minDomains", least, text))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in ("Honor", "Ignore"):
                found.append(unsupported(f"{where}.{field}", policy, ("Honor", "Ignore")))
        found += _label_keys(constraint, where)
        found += checks.label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")
    return found
