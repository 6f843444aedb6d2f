"""Validation of the names of resources, and of the kinds that limit them: LimitRange and ResourceQuota. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import RawText, duplicate, forbidden, invalid, required
from kopylite.apiserver.schema.names import label_key_errors
from kopylite.objects.amounts import parse_quantity

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_QUOTA = frozenset(
    {*_COMPUTE, *(f"{part}.{name}" for part in ("requests", "limits") for name in _COMPUTE), "requests.storage", "pods",
     "resourcequotas", "services", "replicationcontrollers", "secrets", "persistentvolumeclaims", "configmaps",
     "services.nodeports", "services.loadbalancers"}
)  # fmt: skip
_ON_PODS = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating")
_SCOPES = (*_ON_PODS, "PriorityClass", "VolumeAttributesClass", "CrossNamespacePodAffinity")
_HUGE, _QUOTA_HUGE = "hugepages-", ("hugepages-", "requests.hugepages-")


def resource_name(field: str, name: str) -> Errors:
    """A name that the server knows, or a qualified one."""
    found = checks.qualified_name(field, name)
    if found or "/" in name or name == "storage" or name in _QUOTA or name.startswith(_QUOTA_HUGE):
        return found
    return [invalid(field, name, "must be a standard resource type or fully qualified")]


def container_resource(field: str, name: str) -> Errors:
    """What a container can ask for."""
    found = resource_name(field, name)
    if "/" not in name:
        if name not in _COMPUTE and not name.startswith(_HUGE):
            found.append(invalid(field, name, "must be a standard resource for containers"))
    elif "kubernetes.io/" not in name and (name.startswith("requests.") or label_key_errors(f"requests.{name}")):
        found.append(invalid(field, name, "doesn't follow extended resource name standard"))
    return found


def quota_resource(field: str, name: str) -> Errors:
    found = resource_name(field, name)
    if "/" not in name and name not in _QUOTA and not name.startswith(_QUOTA_HUGE):
        found.append(invalid(field, name, "must be a standard resource for quota"))
    return found


def resource_quota(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    for name, text in sorted((spec.get("hard") or {}).items()):
        found += quota_resource(f"spec.hard[{name}]", name)
        found += checks.quantity_not_negative(f"spec.hard[{name}]", text)
    scopes = spec.get("scopes") or []
    found += [invalid("spec.scopes", scopes, "unsupported scope") for scope in scopes if scope not in _SCOPES]
    found += _conflicts(scopes, scopes)
    requirements = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    path = "spec.scopeSelector.matchExpressions"
    for requirement in requirements:
        found += _scope_requirement(requirement, path)
    return found + _conflicts([requirement["scopeName"] for requirement in requirements], scopes)


def _conflicts(scopes: list[str], shown: list[str]) -> Errors:
    pairs = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
    return [invalid("spec.scopes", shown, "conflicting scopes") for pair in pairs if pair <= set(scopes)]


def _scope_requirement(requirement: Object, path: str) -> Errors:
    scope, operator = requirement["scopeName"], requirement["operator"]
    values = requirement.get("values") or []
    found: Errors = [] if scope in _SCOPES else [invalid(f"{path}.scopeName", scope, "unsupported scope")]
    if scope in (*_ON_PODS, "CrossNamespacePodAffinity") and operator != "Exists":
        text = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        found.append(invalid(f"{path}.operator", operator, text))
    if operator in ("In", "NotIn"):
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        found += [] if values else [required(f"{path}.values", text)]
    elif operator in ("Exists", "DoesNotExist"):
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        found += [invalid(f"{path}.values", values, text)] if values else []
    else:
        found.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return found


def update_resource_quota(new: Object, old: Object) -> Errors:
    ours, theirs = new["spec"].get("scopes") or [], old["spec"].get("scopes") or []
    if set(ours) == set(theirs):
        return []
    return [invalid("spec.scopes", ours or RawText("null"), "field is immutable")]


_PAIRS = (
    ("min", "max", "min", "min value {0} is greater than max value {1}"),
    ("min", "defaultRequest", "defaultRequest", "min value {0} is greater than default request value {1}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {0} is greater than max value {1}"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
    ),
    ("min", "default", "default", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "default value {0} is greater than max value {1}"),
)


def limit_range(obj: Object) -> Errors:
    found: Errors = []
    kinds: set[str] = set()
    for index, limit in enumerate(obj["spec"].get("limits") or ()):
        path, kind = f"spec.limits[{index}]", limit["type"]
        problems = checks.qualified_name(f"{path}.type", kind)
        if not problems and "/" not in kind and kind not in ("Container", "PersistentVolumeClaim", "Pod"):
            problems = [invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")]
        found += problems
        if kind in kinds:
            found.append(duplicate(f"{path}.type", kind))
        kinds.add(kind)
        found += _limited_names(limit, path) + _limit_amounts(limit, path)
    return found


def _limited_names(limit: Object, path: str) -> Errors:
    kind = limit["type"]
    check = container_resource if kind in ("Pod", "Container") else resource_name
    found: Errors = []
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        amounts: Mapping[str, Any] = limit.get(field) or {}
        if field.startswith("default") and kind == "Pod":
            text = "may not be specified when `type` is 'Pod'"
            found += [forbidden(f"{path}.{field}", text)] if amounts else []
            continue
        claims = field == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim"
        if claims and not any("storage" in (limit.get(side) or {}) for side in ("min", "max")):
            text = "either minimum or maximum storage value is required, but neither was provided"
            found.append(required(f"{path}.limits", text))
        for name in sorted(amounts):
            found += check(f"{path}.{field}[{name}]", name)
    return found


def _limit_amounts(limit: Object, path: str) -> Errors:
    found: Errors = []
    fields = ("min", "max", "default", "defaultRequest", "maxLimitRequestRatio")
    for name in sorted({name for field in fields for name in limit.get(field) or ()}):
        for low, high, where, text in _PAIRS:
            small, big = (limit.get(low) or {}).get(name), (limit.get(high) or {}).get(name)
            if small and big and parse_quantity(small).value > parse_quantity(big).value:
                shown = small if where == "default" and low == "min" else (limit.get(where) or {})[name]
                found.append(invalid(f"{path}.{where}[{name}]", shown, text.format(small, big)))
        ratio = (limit.get("maxLimitRequestRatio") or {}).get(name)
        if ratio is None:
            continue
        where, value = f"{path}.maxLimitRequestRatio[{name}]", parse_quantity(ratio).value
        if value < 1:
            found.append(invalid(where, ratio, f"ratio {ratio} is less than 1"))
        sides = [parse_quantity((limit.get(side) or {}).get(name) or "0").value for side in ("min", "max")]
        if sides[0] and sides[1] and value > sides[1] / sides[0]:
            text = f"ratio {ratio} is greater than max/min = {sides[1] / sides[0]:.6f}"
            found.append(invalid(where, ratio, text))
    return found
