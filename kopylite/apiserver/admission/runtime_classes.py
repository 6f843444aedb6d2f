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
    """A mutating plug-in."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, admission: Admission) -> None:
        """Raises Forbidden: there is no such class, or the pod says otherwise than it."""
        call, pod = admission.call, admission.obj
        if call.resource.storage != "pods" or call.target.subresource or admission.operation != "CREATE" or pod is None:
            return
        spec = pod["spec"]
        name = spec.get("runtimeClassName")
        found: dict[str, Any] = {}
        if name is not None:
            stored = self._world.lookup("node.k8s.io", "runtimeclasses", "", name)
            if stored is None:
                raise forbidden(admission, f"pod rejected: RuntimeClass {go_quote(name)} not found")
            found = stored
        overhead = found.get("overhead")
        if overhead is None:
            if spec.get("overhead"):
                text = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                raise forbidden(admission, text)
        else:
            fixed = overhead.get("podFixed") or {}
            if spec.get("overhead") and quantities(spec["overhead"]) != quantities(fixed):
                raise forbidden(admission, _OVERHEAD)
            if fixed:
                spec["overhead"] = dict(fixed)
        # Upstream's plug-in for them runs before this one, and the order shows.
        add_tolerations(spec)
        scheduling = found.get("scheduling")
        if scheduling is not None:
            _place(admission, spec, scheduling)


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
