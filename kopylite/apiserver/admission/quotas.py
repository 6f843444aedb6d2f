"""ResourceQuotas: what a namespace has used of them, and the admission plug-in that refuses more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kopylite.apiserver.admission.quota_usage import (
    Amounts,
    add,
    counted_by,
    is_best_effort,
    quantities,
    unspecified,
    usage_of,
)
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.world import Admission, World

STORAGE = "resourcequotas"
# What an update can make grow.
_GROWING = ("pods", "services", "persistentvolumeclaims")

Object = dict[str, Any]


class Quotas:
    """The quotas of all namespaces.

    Where the quota controller runs, usage is counted when it is asked for, from what is stored: nobody can slip in
    between. Where it does not, the status of a quota counts as upstream: what it has as `hard` and `used`, to which
    each request that is let in adds, and which only others make less.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def of(self, namespace: str) -> list[Object]:
        return [record.decode() for record in self._records(STORAGE, namespace)] if namespace else []

    def used(self, quota: Mapping[str, Any], hard: Amounts) -> Amounts:
        """What is used of each resource in `hard`, in the namespace and the scopes of the quota."""
        total = quantities(dict.fromkeys(hard, "0"))
        for storage in {counted_by(name) for name in hard}:
            for record in self._records(storage, quota["metadata"]["namespace"]):
                obj = record.decode()
                if in_scope(quota, storage, obj):
                    total = add(total, {k: v for k, v in usage_of(storage, obj).items() if k in hard})
        return total

    async def admit(self, admission: Admission) -> None:
        """Raises Forbidden: the object would take more than a quota leaves."""
        call, obj, old = admission.call, admission.obj, admission.old
        storage = call.resource.storage
        if obj is None or call.target.subresource not in ("", "resize") or (old and storage not in _GROWING):
            return
        kept: list[tuple[Object, Amounts]] = []
        for quota in self.of(call.target.namespace):
            if in_scope(quota, storage, obj):
                used = self._check(admission, quota, storage, obj, old)
                kept += [(quota, used)] if used else []
        if not admission.dry_run and not self._world.counts_quotas:
            for quota, used in kept:
                self._keep(quota, used)

    def _check(self, admission: Admission, quota: Object, storage: str, obj: Object, old: Object | None) -> Amounts:
        """What is used with the request, of each resource that it takes. Raises Forbidden."""
        status, counted = quota.get("status") or {}, self._world.counts_quotas
        hard = quantities(status.get("hard") or (quota["spec"].get("hard") if counted else None))
        name = quota["metadata"]["name"]
        if storage == "pods" and old is None and (missing := unspecified(obj["spec"], hard)):
            raise forbidden(admission, f"failed quota: {name}: must specify {missing}")
        unknown = [] if counted else [key for key in hard if counted_by(key) == storage]
        if unknown and not set(unknown) <= set(status.get("used") or ()):
            raise forbidden(admission, f"status unknown for quota: {name}, resources: {','.join(sorted(unknown))}")
        wanted = usage_of(storage, obj)
        if old is not None:
            wanted = add(wanted, usage_of(storage, old), sign=-1)
        wanted = {key: quantity for key, quantity in wanted.items() if key in hard and quantity.value > 0}
        if not wanted:
            return {}
        used = self.used(quota, {key: hard[key] for key in wanted}) if counted else quantities(status["used"])
        after = add(used, wanted)
        exceeded = sorted(key for key in wanted if after[key].value > hard[key].value)
        if exceeded:
            parts = (_shown(amounts, exceeded) for amounts in (wanted, used, hard))
            text = "exceeded quota: {}, requested: {}, used: {}, limited: {}"
            raise forbidden(admission, text.format(name, *parts))
        return after

    def _keep(self, quota: Object, used: Amounts) -> None:
        metadata, store = quota["metadata"], self._world.store
        key = f"{metadata['namespace']}/{metadata['name']}"
        record = store.get(STORAGE, key)
        assert record is not None, "nothing was awaited since it was read"
        status = {**quota["status"], "used": {name: amount.text() for name, amount in used.items()}}
        store.update(STORAGE, key, {**quota, "status": status}, record, encoding_version=record.encoding_version)

    def _records(self, storage: str, namespace: str) -> Iterator[Any]:
        store = self._world.store
        prefix = f"{namespace}/"
        return store.collection(storage).scan(prefix, prefix, store.version)


def _shown(amounts: Amounts, names: list[str]) -> str:
    return ",".join(f"{name}={amounts[name].text()}" for name in names)


def in_scope(quota: Mapping[str, Any], storage: str, obj: Object) -> bool:
    """Whether the quota counts the object: all of its scopes match. Scopes are about pods."""
    spec = quota["spec"]
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return not terms or (storage == "pods" and all(_matches(term, obj["spec"]) for term in terms))


def _matches(term: Mapping[str, Any], spec: Object) -> bool:
    scope = term["scopeName"]
    if scope == "PriorityClass":
        name, values = spec.get("priorityClassName", ""), term.get("values") or ()
        operator = term["operator"]
        return {"In": name in values, "NotIn": name not in values, "Exists": bool(name)}.get(operator, not name)
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec.get("affinity"))
    terminating = spec.get("activeDeadlineSeconds") is not None
    best_effort = is_best_effort(spec)
    found = {"Terminating": terminating, "NotTerminating": not terminating, "BestEffort": best_effort}
    return found.get(scope, not best_effort)


def _crosses_namespaces(value: Any) -> bool:
    """Whether a term of an affinity names namespaces, of its own or by a selector."""
    if isinstance(value, dict):
        return any(value.get(key) for key in ("namespaces", "namespaceSelector")) or any(
            map(_crosses_namespaces, value.values())
        )
    return isinstance(value, list) and any(map(_crosses_namespaces, value))
