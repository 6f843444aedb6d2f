"""Certificates, flow control, admission policies, devices, addresses, storage drivers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kopylite.apiserver.printers.cells import AGE, Object, at, columns, joined, read, since, text_at
from kopylite.apiserver.printers.tables import short_duration

_INTEGER, _BOOLEAN = "integer", "boolean"


def _request_condition(request: Object) -> str:
    kinds = {c.get("type") for c in read(request, "status.conditions", [])}
    found = [kind for kind in ("Approved", "Denied", "Failed") if kind in kinds] or ["Pending"]
    if read(request, "status.certificate"):
        found.append("Issued")
    return ",".join(found)


def _requested_duration(request: Object) -> str:
    seconds = read(request, "spec.expirationSeconds")
    return "<none>" if seconds is None else short_duration(seconds)


def _pod_certificate_state(request: Object) -> str:
    kinds = {c.get("type") for c in read(request, "status.conditions", [])}
    return next((kind for kind in ("Denied", "Failed", "Issued") if kind in kinds), "Pending")


def _annotations(request: Object) -> str:
    return joined(
        f"{key}={value}" for key, value in sorted(read(request, "spec.unverifiedUserAnnotations", {}).items())
    )


def _parent(address: Object) -> str:
    parent: Object = read(address, "spec.parentRef", {})
    resource = ".".join(filter(None, (parent.get("resource", ""), parent.get("group", ""))))
    return "/".join(filter(None, (resource, parent.get("namespace", ""), parent.get("name", ""))))


def _missing_level(schema: Object) -> str:
    found = [c.get("status") for c in read(schema, "status.conditions", []) if c.get("type") == "Dangling"]
    return str(found[0]) if found else "?"


def _queuing(field: str) -> Any:
    return at(f"spec.limited.limitResponse.queuing.{field}", "<none>")


def _shares(level: Object) -> Any:
    return read(
        level, "spec.limited.nominalConcurrencyShares", read(level, "spec.exempt.nominalConcurrencyShares", "<none>")
    )


def _param_kind(policy: Object) -> str:
    kind = read(policy, "spec.paramKind")
    return "<unset>" if not kind else f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def _param_ref(binding: Object) -> str:
    reference = read(binding, "spec.paramRef")
    if not reference:
        return "<unset>"
    return f"{reference.get('namespace') or '*'}/{reference.get('name') or '*'}"


def _count(path: str) -> Any:
    return lambda obj: len(read(obj, path, []))


def _claim_state(claim: Object) -> str:
    states = ["deleted"] if read(claim, "metadata.deletionTimestamp") else []
    if not read(claim, "status.allocation"):
        states.append("pending")
    else:
        states += ["allocated", *(["reserved"] if read(claim, "status.reservedFor") else [])]
    return ",".join(states)


def _migration_state(migration: Object) -> str:
    kinds = {c.get("type") for c in read(migration, "status.conditions", []) if c.get("status") == "True"}
    return next((kind for kind in ("Succeeded", "Failed", "Running") if kind in kinds), "Unknown")


def _migrated(migration: Object) -> str:
    resource: Object = read(migration, "spec.resource", {})
    return ".".join(filter(None, (resource.get("resource", ""), resource.get("group", ""))))


_BINDING = columns(("PolicyName", at("spec.policyName")), ("ParamRef", _param_ref), AGE)
_ONLY_AGE = columns(AGE)
_ATTACHMENT = columns(
    ("Attacher", at("spec.attacher")),
    ("PV", at("spec.source.persistentVolumeName")),
    ("Node", at("spec.nodeName")),
    ("Attached", at("status.attached", False), _BOOLEAN),
    AGE,
)

RARE = {
    "certificatesigningrequests.certificates.k8s.io": columns(
        AGE,
        ("SignerName", at("spec.signerName")),
        ("Requestor", at("spec.username")),
        ("RequestedDuration", _requested_duration),
        ("Condition", _request_condition),
    ),
    "clustertrustbundles.certificates.k8s.io": columns(("SignerName", text_at("spec.signerName"))),
    "podcertificaterequests.certificates.k8s.io": columns(
        ("PodName", at("spec.podName")),
        ("ServiceAccountName", at("spec.serviceAccountName")),
        ("NodeName", at("spec.nodeName")),
        ("SignerName", at("spec.signerName")),
        ("State", _pod_certificate_state),
        ("UnverifiedUserAnnotations", _annotations),
    ),
    # Upstream gives one cell more than there are columns.
    "ipaddresses.networking.k8s.io": columns(("ParentRef", _parent)),
    "servicecidrs.networking.k8s.io": columns(("CIDRs", lambda obj: ",".join(read(obj, "spec.cidrs", []))), AGE),
    "csidrivers.storage.k8s.io": columns(
        ("AttachRequired", at("spec.attachRequired", True), _BOOLEAN),
        ("PodInfoOnMount", at("spec.podInfoOnMount", False), _BOOLEAN),
        ("StorageCapacity", at("spec.storageCapacity", False), _BOOLEAN),
        (
            "TokenRequests",
            lambda d: ",".join(t.get("audience", "") for t in read(d, "spec.tokenRequests", [])) or "<unset>",
        ),
        ("RequiresRepublish", at("spec.requiresRepublish", False), _BOOLEAN),
        ("Modes", lambda d: ",".join(read(d, "spec.volumeLifecycleModes", [])) or "<none>"),
        AGE,
    ),
    "volumeattachments.storage.k8s.io": (_ATTACHMENT[0], replace(_ATTACHMENT[1], format="name"), *_ATTACHMENT[2:]),
    "volumeattributesclasses.storage.k8s.io": columns(("DriverName", at("driverName")), AGE),
    "mutatingadmissionpolicies.admissionregistration.k8s.io": columns(
        ("Mutations", _count("spec.mutations"), _INTEGER), ("ParamKind", _param_kind), AGE
    ),
    "validatingadmissionpolicies.admissionregistration.k8s.io": columns(
        ("Validations", _count("spec.validations"), _INTEGER), ("ParamKind", _param_kind), AGE
    ),
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": _BINDING,
    "deviceclasses.resource.k8s.io": _ONLY_AGE,
    "resourceclaimtemplates.resource.k8s.io": _ONLY_AGE,
    "resourceclaims.resource.k8s.io": columns(("State", _claim_state), AGE),
    "resourceslices.resource.k8s.io": columns(
        ("Node", text_at("spec.nodeName", "<unset>")),
        ("Driver", at("spec.driver")),
        ("Pool", at("spec.pool.name")),
        AGE,
    ),
    "devicetaintrules.resource.k8s.io": columns(
        ("Key", at("spec.taint.key")),
        ("Value", at("spec.taint.value")),
        ("Effect", at("spec.taint.effect")),
        ("TimeAdded", since("spec.taint.timeAdded")),
        AGE,
    ),
    "flowschemas.flowcontrol.apiserver.k8s.io": columns(
        ("PriorityLevel", at("spec.priorityLevelConfiguration.name")),
        ("MatchingPrecedence", at("spec.matchingPrecedence", 0)),
        ("DistinguisherMethod", text_at("spec.distinguisherMethod.type")),
        AGE,
        ("MissingPL", _missing_level),
    ),
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": columns(
        ("Type", at("spec.type")),
        ("NominalConcurrencyShares", _shares),
        ("Queues", _queuing("queues")),
        ("HandSize", _queuing("handSize")),
        ("QueueLengthLimit", _queuing("queueLengthLimit")),
        AGE,
    ),
}
_MIGRATION = columns(("Resource", _migrated), ("Status", _migration_state))
RARE["storageversionmigrations.storagemigration.k8s.io"] = (replace(_MIGRATION[0], format=""), *_MIGRATION[1:])
