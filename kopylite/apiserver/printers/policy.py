"""RBAC, admission, quota, priority, disruption and the kinds that describe the API itself."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.printers.cells import AGE, Object, at, columns, read, text_at
from kopylite.apiserver.printers.tables import created_cell

_INTEGER, _BOOLEAN = "integer", "boolean"


def _role(binding: Object) -> str:
    ref = binding.get("roleRef") or {}
    return f"{ref.get('kind', '')}/{ref.get('name', '')}"


def _subjects(kind: str) -> Any:
    def cell(binding: Object) -> str:
        found = [s for s in binding.get("subjects") or () if s.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{s.get('namespace', '')}/{s.get('name', '')}" for s in found)
        return ", ".join(s.get("name", "") for s in found)

    return cell


_BINDING = columns(
    ("Role", _role),
    AGE,
    ("Users*", _subjects("User")),
    ("Groups*", _subjects("Group")),
    ("ServiceAccounts*", _subjects("ServiceAccount")),
)


def _webhooks(obj: Object) -> int:
    return len(obj.get("webhooks") or ())


def _quota(limits: bool) -> Any:
    """Used and hard amounts; those of limits go in a column of their own."""

    def cell(quota: Object) -> str:
        hard, used = read(quota, "status.hard", {}), read(quota, "status.used", {})
        names = [name for name in sorted(hard) if name.startswith("limits.") == limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _crd_versions(crd: Object) -> str:
    versions = read(crd, "spec.versions", [])
    return ",".join(f"{v.get('name', '')}{'(storage)' if v.get('storage') else ''}" for v in versions)


def _crd_established(crd: Object) -> bool:
    conditions = read(crd, "status.conditions", [])
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def _api_service(obj: Object) -> str:
    service = read(obj, "spec.service")
    return f"{service.get('namespace')}/{service.get('name')}" if service else "Local"


def _api_available(obj: Object) -> str:
    conditions = read(obj, "status.conditions", [])
    found: Object = next((c for c in conditions if c.get("type") == "Available"), {})
    status = found.get("status", "Unknown")
    return status if status == "True" else f"{status} ({found.get('reason', '')})"


POLICY = {
    "rolebindings.rbac.authorization.k8s.io": _BINDING,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDING,
    "resourcequotas": columns(("Request", _quota(False)), ("Limit", _quota(True)), AGE),
    "poddisruptionbudgets.policy": columns(
        ("Min Available", text_at("spec.minAvailable", "N/A")),
        ("Max Unavailable", text_at("spec.maxUnavailable", "N/A")),
        ("Allowed Disruptions", at("status.disruptionsAllowed", 0), _INTEGER),
        AGE,
    ),
    "priorityclasses.scheduling.k8s.io": columns(
        ("Value", at("value", 0), _INTEGER),
        ("Global-Default", at("globalDefault", False), _BOOLEAN),
        AGE,
        ("PreemptionPolicy", at("preemptionPolicy")),
    ),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": columns(("Webhooks", _webhooks, _INTEGER), AGE),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": columns(("Webhooks", _webhooks, _INTEGER), AGE),
    "customresourcedefinitions.apiextensions.k8s.io": columns(
        ("Scope", at("spec.scope")),
        ("Versions", _crd_versions),
        ("Created At", created_cell, "date"),
        ("Group*", at("spec.group")),
        ("Kind*", at("spec.names.kind")),
        ("ShortNames*", lambda crd: ",".join(read(crd, "status.acceptedNames.shortNames", []))),
        ("Established*", _crd_established, _BOOLEAN),
    ),
    "apiservices.apiregistration.k8s.io": columns(("Service", _api_service), ("Available", _api_available), AGE),
}
