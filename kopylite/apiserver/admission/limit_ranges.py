"""The LimitRanger admission plug-in: what the LimitRanges of a namespace add to pods and claims, and allow them.

As plugin/pkg/admission/limitranger/admission.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from kopylite.apiserver.admission.quota_usage import Amounts, pod_total, quantities
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.schema.field_errors import aggregate
from kopylite.apiserver.world import Admission, World
from kopylite.objects.amounts import Amount

Object = dict[str, Any]
_NOTE = "kubernetes.io/limit-ranger"
_PODS, _CLAIMS = "pods", "persistentvolumeclaims"


class LimitRanger:
    """Two plug-ins: `mutate` fills in, `validate` refuses."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def mutate(self, admission: Admission) -> None:
        if admission.call.resource.storage == _PODS and _is_concerned(admission) and admission.obj is not None:
            for limit_range in self._limit_ranges(admission):
                _fill(admission.obj, limit_range)

    async def validate(self, admission: Admission) -> None:
        """Raises Forbidden."""
        if not _is_concerned(admission) or admission.obj is None:
            return
        for limit_range in self._limit_ranges(admission):
            problems = list(_problems(limit_range, admission.call.resource.storage, admission.obj["spec"]))
            if problems:
                raise forbidden(admission, aggregate(problems))

    def _limit_ranges(self, admission: Admission) -> list[Object]:
        store = self._world.store
        prefix = f"{admission.call.target.namespace}/"
        return [record.decode() for record in store.collection("limitranges").scan(prefix, prefix, store.version)]


def _is_concerned(admission: Admission) -> bool:
    storage, subresource = admission.call.resource.storage, admission.call.target.subresource
    if storage == _PODS:
        return (subresource == "resize") == (admission.old is not None) and subresource in ("", "resize")
    return storage == _CLAIMS and not subresource


def _limits(limit_range: Object, kind: str) -> list[Object]:
    return [limit for limit in limit_range["spec"].get("limits") or () if limit["type"] == kind]


def _fill(pod: Object, limit_range: Object) -> None:
    """Give containers the defaults, and note what was set."""
    defaults: dict[str, Object] = {"requests": {}, "limits": {}}
    for limit in _limits(limit_range, "Container"):
        defaults["requests"] |= limit.get("defaultRequest") or {}
        defaults["limits"] |= limit.get("default") or {}
    notes = []
    for field, kind in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            for part, word in (("requests", "request"), ("limits", "limit")):
                given = (container.get("resources") or {}).get(part) or {}
                missing = {name: text for name, text in defaults[part].items() if name not in given}
                if missing:
                    resources = container.setdefault("resources", {})
                    resources[part] = {**given, **missing}
                    notes.append(f"{', '.join(sorted(missing))} {word} for {kind} {container.get('name', '')}")
    if notes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, _NOTE: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _problems(limit_range: Object, storage: str, spec: Object) -> Iterator[str]:
    if storage == _CLAIMS:
        requests = quantities((spec.get("resources") or {}).get("requests"))
        for limit in _limits(limit_range, "PersistentVolumeClaim"):
            kind = limit["type"]
            yield from _too_small(kind, quantities(limit.get("min")), requests, {})
            for name, most in sorted(quantities(limit.get("max")).items()):
                about = f"maximum {name} usage per {kind} is {most.text()}"
                if name not in requests:
                    yield f"{about}.  No request is specified"
                elif requests[name].value > most.value:
                    yield f"{about}, but request is {requests[name].text()}"
        return
    for limit in _limits(limit_range, "Container"):
        for field in ("containers", "initContainers"):
            for container in spec.get(field) or ():
                resources = container.get("resources") or {}
                given = (quantities(resources.get("requests")), quantities(resources.get("limits")))
                yield from _broken(limit, *given)
    for limit in _limits(limit_range, "Pod"):
        yield from _broken(limit, pod_total(spec, "requests"), pod_total(spec, "limits"))


def _broken(limit: Object, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = limit["type"]
    yield from _too_small(kind, quantities(limit.get("min")), requests, limits)
    yield from _too_large(kind, quantities(limit.get("max")), requests, limits)
    yield from _too_far_apart(kind, quantities(limit.get("maxLimitRequestRatio")), requests, limits)


def _too_small(kind: str, least: Amounts, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, quantity in sorted(least.items()):
        about = f"minimum {name} usage per {kind} is {quantity.text()}"
        if name not in requests:
            yield f"{about}.  No request is specified"
        elif requests[name].value < quantity.value:
            yield f"{about}, but request is {requests[name].text()}"
        elif name in limits and limits[name].value < quantity.value:
            yield f"{about}, but limit is {limits[name].text()}"


def _too_large(kind: str, most: Amounts, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, quantity in sorted(most.items()):
        about = f"maximum {name} usage per {kind} is {quantity.text()}"
        if name not in limits:
            yield f"{about}.  No limit is specified"
        elif limits[name].value > quantity.value:
            yield f"{about}, but limit is {limits[name].text()}"
        elif name in requests and requests[name].value > quantity.value:
            yield f"{about}, but request is {requests[name].text()}"


def _too_far_apart(kind: str, ratios: Amounts, requests: Amounts, limits: Amounts) -> Iterator[str]:
    nothing = Amount(Decimal(0), "decimal")
    for name, most in sorted(ratios.items()):
        about = f"{name} max limit to request ratio per {kind} is {most.text()}"
        request, limit = requests.get(name, nothing).value, limits.get(name, nothing).value
        if not request:
            yield f"{about}, but no request is specified or request is 0"
        elif not limit:
            yield f"{about}, but no limit is specified or limit is 0"
        elif limit / request > most.value:
            yield f"{about}, but provided ratio is {limit / request:.6f}"
