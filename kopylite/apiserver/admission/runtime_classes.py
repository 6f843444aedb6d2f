"""The RuntimeClass admission plug-in: what the class of a new pod adds to it."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.admission.quota_usage import quantities
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.builtin.preparation_core import add_tolerations
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import Admission, World

_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


class RuntimeClasses:
    """Two plug-ins: `mutate` adds what the class says, `validate` refuses an overhead that no class knows."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def mutate(self, admission: Admission) -> None:
        """Raises Forbidden: there is no such class, or the pod says otherwise than it."""
        pod = admission.obj
        if not _is_new_pod(admission) or pod is None:
            return
        spec, found = pod["spec"], self._class(admission, pod)
        if found.get("overhead") is not None:
            fixed = found["overhead"].get("podFixed") or {}
            if spec.get("overhead") and quantities(spec["overhead"]) != quantities(fixed):
                raise forbidden(admission, _OVERHEAD)
            if fixed:
                spec["overhead"] = dict(fixed)
        # Upstream's plug-in for them runs before this one, and the order shows.
        add_tolerations(spec)
        scheduling = found.get("scheduling")
        if scheduling is not None:
            _place(admission, spec, scheduling)

    async def validate(self, admission: Admission) -> None:
        """Raises Forbidden: the pod has an overhead, and its class has none."""
        pod = admission.obj
        if not _is_new_pod(admission) or pod is None or not pod["spec"].get("overhead"):
            return
        if self._class(admission, pod).get("overhead") is None:
            text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            raise forbidden(admission, text)

    def _class(self, admission: Admission, pod: dict[str, Any]) -> dict[str, Any]:
        name = pod["spec"].get("runtimeClassName")
        if name is None:
            return {}
        found = self._world.lookup("node.k8s.io", "runtimeclasses", "", name)
        if found is None:
            raise forbidden(admission, f"pod rejected: RuntimeClass {go_quote(name)} not found")
        return found


def _is_new_pod(admission: Admission) -> bool:
    call = admission.call
    return call.resource.storage == "pods" and not call.target.subresource and admission.operation == "CREATE"


def _place(admission: Admission, spec: dict[str, Any], scheduling: dict[str, Any]) -> None:
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in sorted((scheduling.get("nodeSelector") or {}).items()):
        if selector.get(key, value) != value:
            text = (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
            raise forbidden(admission, text)
        selector[key] = value
    if selector:
        spec["nodeSelector"] = selector
    tolerations = list(spec.get("tolerations") or ())
    tolerations += [t for t in scheduling.get("tolerations") or () if t not in tolerations]
    if tolerations:
        spec["tolerations"] = tolerations
