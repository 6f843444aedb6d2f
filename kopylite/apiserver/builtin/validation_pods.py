"""Validation of pods and pod templates, and what may change in a running pod. Pure."""

from __future__ import annotations

import copy
import json

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_containers import containers, init_containers, resource_amount, user_ids
from kopylite.apiserver.builtin.validation_scheduling import affinity, spread_constraints, tolerations
from kopylite.apiserver.builtin.validation_volumes import volumes
from kopylite.apiserver.schema.field_errors import RawText, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_NO_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec(spec: Object, path: str) -> Errors:
    """Everything in a PodSpec."""
    names = {volume["name"] for volume in spec.get("volumes") or ()}
    found = volumes(spec.get("volumes"), f"{path}.volumes")
    found += containers(spec, f"{path}.containers", names)
    found += init_containers(spec, f"{path}.initContainers", names)
    policies = ("Always", "OnFailure", "Never")
    found += checks.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), policies, needed=True)
    found += checks.one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES, needed=True)
    found += checks.labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    context = spec.get("securityContext") or {}
    found += user_ids(context, f"{path}.securityContext", "fsGroup", "runAsUser", "runAsGroup")
    found += affinity(spec.get("affinity"), f"{path}.affinity")
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        found += _without_name_servers(spec, path)
    found += spread_constraints(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    found += checks.subdomain(f"{path}.serviceAccountName", spec.get("serviceAccountName"))
    found += checks.subdomain(f"{path}.nodeName", spec.get("nodeName"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        found += checks.in_range(f"{path}.activeDeadlineSeconds", deadline, 1, checks.MAX_INT32)
    for field in ("hostname", "subdomain"):
        found += checks.optional(label_errors, f"{path}.{field}", spec.get(field))
    found += tolerations(spec.get("tolerations"), f"{path}.tolerations")
    found += _host_aliases(spec, f"{path}.hostAliases")
    found += checks.subdomain(f"{path}.priorityClassName", spec.get("priorityClassName"))
    found += checks.subdomain(f"{path}.runtimeClassName", spec.get("runtimeClassName"))
    preemption = ("PreemptLowerPriority", "Never")
    found += checks.one_of(f"{path}.preemptionPolicy", spec.get("preemptionPolicy"), preemption)
    for name, text in sorted((spec.get("overhead") or {}).items()):
        found += resource_amount(name, text, f"{path}.overhead.limits[{name}]")
    return found + _operating_system(spec, f"{path}.os")


def _without_name_servers(spec: Object, path: str) -> Errors:
    if spec.get("dnsConfig") is None:
        return [required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")]
    text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    return [required(f"{path}.dnsConfig.nameservers", text)]


def _host_aliases(spec: Object, path: str) -> Errors:
    found: Errors = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += checks.ip_address(f"{path}[{index}].ip", alias["ip"])
        for position, name in enumerate(alias.get("hostnames") or ()):
            found += checks.subdomain(f"{path}[{index}].hostnames[{position}]", name)
    return found


def _operating_system(spec: Object, path: str) -> Errors:
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name", "")
    if not name:
        return [required(f"{path}.name", "cannot be empty")]
    return [] if name in ("linux", "windows") else [unsupported(path, name, ("linux", "windows"))]


def pod_template(template: Object, path: str) -> Errors:
    """The template of a workload. Its metadata is named without the word, as the real server does."""
    metadata = template["metadata"]
    found = checks.labels(metadata.get("labels"), f"{path}.labels")
    found += checks.annotation_keys(metadata.get("annotations"), f"{path}.annotations")
    found += pod_spec(template["spec"], f"{path}.spec")
    if template["spec"].get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        found.append(forbidden(f"{path}.spec.ephemeralContainers", text))
    return found


def pod(obj: Object) -> Errors:
    found = pod_spec(obj["spec"], "spec")
    if obj["spec"].get("ephemeralContainers") and "resourceVersion" not in obj["metadata"]:
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    return found


def update_pod(new: Object, old: Object) -> Errors:
    """A pod is as it was made, but for images, deadline, and tolerations to add."""
    spec, before = copy.deepcopy(new["spec"]), old["spec"]
    found: Errors = []
    for field in ("containers", "initContainers"):
        ours, theirs = spec.get(field) or [], before.get(field) or []
        if len(ours) != len(theirs):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        for index, (container, known) in enumerate(zip(ours, theirs, strict=True)):
            if not container.get("image"):
                found.append(required(f"spec.{field}[{index}].image"))
            container["image"] = known.get("image")
    found += _deadline(spec, before)
    ours, theirs = spec.get("tolerations") or [], before.get("tolerations") or []
    if all(toleration in ours for toleration in theirs):
        _keep(spec, before, "tolerations")
    else:
        found.append(
            forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        )
    if before.get("schedulingGates"):
        _keep(spec, before, "schedulingGates")
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    if spec != before:
        found.append(forbidden("spec", f"{_NO_CHANGE}\n{_difference(spec, before)}"))
    return found


def _keep(spec: Object, before: Object, field: str) -> None:
    if field in before:
        spec[field] = before[field]
    else:
        spec.pop(field, None)


def _deadline(spec: Object, before: Object) -> Errors:
    path, ours, theirs = (
        "spec.activeDeadlineSeconds",
        spec.get("activeDeadlineSeconds"),
        before.get("activeDeadlineSeconds"),
    )
    found: Errors = []
    if ours is not None:
        found += checks.in_range(path, ours, 1, checks.MAX_INT32)
        if theirs is not None and theirs < ours:
            found.append(invalid(path, ours, "must be less than or equal to previous value"))
    elif theirs is not None:
        found.append(invalid(path, RawText("null"), "must not update from a positive integer to nil value"))
    _keep(spec, before, "activeDeadlineSeconds")
    return found


def _difference(spec: Object, before: Object) -> str:
    """The fields that differ. The real server prints a diff of Go structs here, which no client reads."""
    changed = {k: spec.get(k) for k in sorted(spec.keys() | before.keys()) if spec.get(k) != before.get(k)}
    return json.dumps(changed)
