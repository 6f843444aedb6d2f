"""What an object takes of a namespace's quota, by the names of quota's resources. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from kopylite.objects.amounts import Amount, parse_quantity

Object = dict[str, Any]
Amounts = dict[str, Amount]

# Kinds whose number has a short name too.
COUNTED = frozenset(
    {"pods", "services", "secrets", "configmaps", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas"}
)
_ONE = Amount(Decimal(1), "decimal")
_NONE = Amount(Decimal(0), "decimal")
# Requests that quota also knows by their plain names.
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_FINISHED = ("Succeeded", "Failed")
_CLASS = ".storageclass.storage.k8s.io/"


def usage_of(storage: str, obj: Object) -> Amounts:
    """What an object of a kind (its storage name, as `replicasets.apps`) takes."""
    used = {f"count/{storage}": _ONE}
    if storage == "pods" and (obj.get("status") or {}).get("phase") in _FINISHED:
        return used
    if storage in COUNTED:
        used[storage] = _ONE
    if storage == "pods":
        used |= _pod_usage(obj["spec"])
    elif storage == "services":
        used |= _service_usage(obj["spec"])
    elif storage == "persistentvolumeclaims":
        used |= _claim_usage(obj["spec"])
    return used


def counted_by(name: str) -> str:
    """The storage name of the kind that a resource of quota counts."""
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name == "requests.storage" or _CLASS in name:
        return "persistentvolumeclaims"
    if name.startswith("services."):
        return "services"
    return name if name in COUNTED else "pods"


def add(left: Amounts, right: Mapping[str, Amount], *, sign: int = 1) -> Amounts:
    """The sum by names; each in the form of the left side, where there is something."""
    total = dict(left)
    for name, quantity in right.items():
        present = total.get(name, _NONE)
        form = present.form if present.value else quantity.form
        total[name] = Amount((present.value + sign * quantity.value).normalize(), form)
    return total


def quantities(texts: Mapping[str, Any] | None) -> Amounts:
    return {name: parse_quantity(str(text)) for name, text in (texts or {}).items()}


def is_best_effort(spec: Object) -> bool:
    """Whether no container asks for, or is limited in, CPU or memory."""
    return not any(
        name in ("cpu", "memory") and parse_quantity(str(text)).value
        for container in _containers(spec)
        for part in ("requests", "limits")
        for name, text in ((container.get("resources") or {}).get(part) or {}).items()
    )


def unspecified(spec: Object, names: Iterable[str]) -> str:
    """What a quota of `names` makes obligatory and containers leave out: `limits.cpu for: a,b; memory for: a`."""
    missing: dict[str, set[str]] = {}
    for container in _containers(spec):
        resources = container.get("resources") or {}
        given = set(resources.get("requests") or ())
        given |= {f"{part}.{name}" for part in ("requests", "limits") for name in resources.get(part) or ()}
        for name in names:
            if name.rpartition(".")[2] in ("cpu", "memory") and name not in given:
                missing.setdefault(name, set()).add(container["name"])
    return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _containers(spec: Object) -> list[Object]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _pod_usage(spec: Object) -> Amounts:
    used: Amounts = {}
    for name, quantity in pod_total(spec, "requests").items():
        used[f"requests.{name}"] = quantity
        if name in _PLAIN or name.startswith("hugepages-"):
            used[name] = quantity
    return used | {f"limits.{name}": quantity for name, quantity in pod_total(spec, "limits").items()}


def pod_total(spec: Object, part: str) -> Amounts:
    """Of all that runs at a time: the containers with the sidecars, or one init container with the sidecars so far."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        total = add(total, quantities((container.get("resources") or {}).get(part)))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = quantities((container.get("resources") or {}).get(part))
        if container.get("restartPolicy") == "Always":
            sidecars = add(sidecars, own)
        peak = _larger(peak, sidecars if container.get("restartPolicy") == "Always" else add(sidecars, own))
    total = _larger(add(total, sidecars), peak)
    total |= quantities((spec.get("resources") or {}).get(part))
    return add(total, quantities(spec.get("overhead"))) if total else total


def _larger(left: Amounts, right: Amounts) -> Amounts:
    names = left.keys() | right.keys()
    return {name: max(left.get(name, _NONE), right.get(name, _NONE), key=lambda q: q.value) for name in names}


def _service_usage(spec: Object) -> Amounts:
    ports = Amount(Decimal(len(spec.get("ports") or ())), "decimal")
    balanced = spec.get("type") == "LoadBalancer"
    nodes = spec.get("type") == "NodePort" or (balanced and spec.get("allocateLoadBalancerNodePorts", True))
    return {"services.nodeports": ports if nodes else _NONE, "services.loadbalancers": _ONE if balanced else _NONE}


def _claim_usage(spec: Object) -> Amounts:
    size = quantities((spec.get("resources") or {}).get("requests")).get("storage", _NONE)
    used = {"requests.storage": size}
    if name := spec.get("storageClassName"):
        used |= {f"{name}{_CLASS}requests.storage": size, f"{name}{_CLASS}persistentvolumeclaims": _ONE}
    return used
