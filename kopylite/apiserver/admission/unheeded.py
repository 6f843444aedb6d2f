"""What this server keeps and does not act upon, where the control plane of every cluster does: it says so.

A real server has no such Warnings: they are about this one, and can be turned off (`ApiServerOptions.own_warnings`).
Kinds that need something which a cluster may lack as well, as an Ingress does, are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kopylite.apiserver.world import Admission

Object = dict[str, Any]

_FLOW = (
    "nobody is made to wait: all requests are served as they come. To try how a client bears a busy server, let the "
    "server answer 429 by a hook"
)


def _api_service(obj: Object) -> str:
    spec = obj["spec"]
    if not spec.get("service"):
        return ""
    served = f"{spec.get('group')}/{spec.get('version')}"
    return (
        f"requests for {served} are not passed on to its Service: install the CRDs of the group, or use a real cluster"
    )


# By storage: what is not done, and what to do instead; "" for objects that nothing would be done for.
_NOTES: Mapping[str, str | Callable[[Object], str]] = {
    "apiservices.apiregistration.k8s.io": _api_service,
    "flowschemas.flowcontrol.apiserver.k8s.io": _FLOW,
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": _FLOW,
    "horizontalpodautoscalers.autoscaling": (
        "nothing measures and nothing scales: scale the target by its /scale (kubectl scale) where a test needs it"
    ),
    "poddisruptionbudgets.policy": (
        "nothing counts its pods and evictions do not weigh it: let a 429 be answered to evictions by a hook"
    ),
    "certificatesigningrequests.certificates.k8s.io": (
        "nothing signs it, approved or not: set status.certificate by its /status where a test needs one"
    ),
    "resourceclaims.resource.k8s.io": (
        "nothing allocates devices: set status.allocation by its /status where a test needs one"
    ),
    "storageversionmigrations.storagemigration.k8s.io": (
        "nothing migrates: an object takes the form of the storage version with its next write"
    ),
}


async def note(admission: Admission) -> None:
    """A validating plug-in that refuses nothing: it warns of new objects."""
    call = admission.call
    if admission.obj is None or admission.old is not None or call.target.subresource:
        return
    found = _NOTES.get(call.resource.storage, "")
    text = found if isinstance(found, str) else found(admission.obj)
    if text:
        call.warnings.append(f"kopylite keeps this {call.resource.kind} and does not act upon it: {text}")
