"""Validation of pods and pod templates, and what may change in a running pod. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_containers import (
    Around,
    containers,
    ephemeral_containers,
    image_padding,
    init_containers,
    pod_resources,
    resources,
)
from kopylite.apiserver.builtin.validation_environment import file_ref_volumes
from kopylite.apiserver.builtin.validation_scheduling import affinity, spread_constraints, tolerations
from kopylite.apiserver.builtin.validation_security import (
    every_container,
    host_process,
    operating_system,
    pod_context,
)
from kopylite.apiserver.builtin.validation_volumes import volumes
from kopylite.apiserver.schema.field_errors import (
    GoStruct,
    RawText,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
)
from kopylite.apiserver.schema.names import label_errors, subdomain_errors

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCHES = 3, 32, 2048
_SEARCH_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
_NO_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec(spec: Object, path: str, pod_name: str = "", *, is_pod: bool = False) -> Errors:
    """Everything in a PodSpec. Args: is_pod: that of a pod and not of a template."""
    valid, found = volumes(spec.get("volumes") or (), f"{path}.volumes", pod_name)
    claims = spec.get("resourceClaims") or ()
    found += _resource_claims(claims, f"{path}.resourceClaims")
    around = Around(spec, valid, frozenset(claim["name"] for claim in claims if claim.get("name")))
    found += containers(around, f"{path}.containers")
    found += init_containers(around, f"{path}.initContainers")
    found += ephemeral_containers(around, f"{path}.ephemeralContainers")
    found += pod_resources(spec, f"{path}.resources", around.claims)
    found += _host_ports(spec, path, is_pod=is_pod)
    policies = ("Always", "OnFailure", "Never")
    found += checks.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), policies, needed=True)
    found += checks.one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES, needed=True)
    found += checks.labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    found += pod_context(spec, f"{path}.securityContext")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{path}.shareProcessNamespace", True, text))
    found += affinity(spec.get("affinity"), f"{path}.affinity")
    found += _dns(spec, f"{path}.dnsConfig")
    found += _gates(spec, path)
    found += spread_constraints(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    found += host_process(spec, path) + _host_users(spec, path) + _names(spec, path)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None:
        found += checks.in_range(f"{path}.activeDeadlineSeconds", deadline, 1, checks.MAX_INT32)
    found += tolerations(spec.get("tolerations"), f"{path}.tolerations")
    found += _host_aliases(spec, f"{path}.hostAliases")
    preemption = ("PreemptLowerPriority", "Never")
    found += checks.one_of(f"{path}.preemptionPolicy", spec.get("preemptionPolicy"), preemption)
    found += resources({"limits": spec.get("overhead") or {}}, f"{path}.overhead")
    found += operating_system(spec, path)
    for container, where in every_container(spec, path):
        found += file_ref_volumes(container, where, spec.get("volumes") or ())
    return found


def _resource_claims(claims: Collection[Object], path: str) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, claim in enumerate(claims):
        where, name = f"{path}[{index}]", claim.get("name", "")
        existing, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        found += [duplicate(f"{where}.name", name)] if name in names else checks.label_name(f"{where}.name", name)
        names.add(name)
        shown = GoStruct({"Name": name, "ResourceClaimName": existing, "ResourceClaimTemplateName": template})
        if existing is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            found.append(invalid(where, shown, text))
        if existing is None and template is None:
            text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            found.append(invalid(where, shown, text))
        for field, value in (("resourceClaimName", existing), ("resourceClaimTemplateName", template)):
            if value is not None:
                found += checks.texts(f"{where}.{field}", value, subdomain_errors(value))
    return found


def _host_ports(spec: Object, path: str, *, is_pod: bool) -> Errors:
    """On the host's network a container listens where the host does; templates may leave that out."""
    found: Errors = []
    for index, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for position, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort") or 0
            if host != port["containerPort"] and (is_pod or host):
                text = "must match `containerPort` when `hostNetwork` is true"
                found.append(invalid(f"{path}.containers[{index}].ports[{position}].hostPort", host, text))
    return found


def _dns(spec: Object, path: str) -> Errors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            return [required(f"{path}.nameservers", text)]
    servers, searches = (((config or {}).get(field) or []) for field in ("nameservers", "searches"))
    found: Errors = []
    if len(servers) > _MOST_SERVERS:
        text = f"must not have more than {_MOST_SERVERS} nameservers"
        found.append(invalid(f"{path}.nameservers", servers, text))
    for index, server in enumerate(servers):
        found += checks.ip_address(f"{path}.nameservers[{index}]", server)
    if len(searches) > _MOST_SEARCHES:
        text = f"must not have more than {_MOST_SEARCHES} search paths"
        found.append(invalid(f"{path}.searches", searches, text))
    if len(" ".join(searches).encode()) > _LONGEST_SEARCHES:
        text = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        found.append(invalid(f"{path}.searches", searches, text))
    for index, search in enumerate(searches):
        # Underscores are taken in search paths: where they are, a letter would do.
        if search != "." and subdomain_errors(search.removesuffix(".").replace("_", "a")):
            found.append(invalid(f"{path}.searches[{index}]", search.removesuffix("."), _SEARCH_TEXT))
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            found.append(required(f"{path}.options[{index}]", "must not be empty"))
    return found


def _gates(spec: Object, path: str) -> Errors:
    found: Errors = []
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        found += checks.qualified_name(f"{path}.readinessGates[{index}].conditionType", gate.get("conditionType", ""))
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name, where = gate.get("name", ""), f"{path}.schedulingGates[{index}]"
        found += checks.qualified_name(where, name)
        found += [duplicate(where, name)] if name in seen else []
        seen.add(name)
    return found


def _host_users(spec: Object, path: str) -> Errors:
    if spec.get("hostUsers") is not False:
        return []
    text = "when `hostUsers` is false"
    fields = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    found = [forbidden(f"{path}.{shown}", text) for field, shown in fields.items() if spec.get(field)]
    devices = [where for container, where in every_container(spec, path) if container.get("volumeDevices")]
    return found + [forbidden(f"{where}.volumeDevices", text) for where in devices]


def _names(spec: Object, path: str) -> Errors:
    found: Errors = []
    override, where = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if override is not None:
        for field in ("setHostnameAsFQDN", "hostNetwork"):
            if spec.get(field):
                found.append(forbidden(where, f"may not be specified when {field} is true"))
        found += [too_long(where, 64)] if len(override.encode()) > 64 else []
        found += checks.texts(where, override, subdomain_errors(override))
    for field in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        found += checks.subdomain(f"{path}.{field}", spec.get(field))
    for field in ("hostname", "subdomain"):
        found += checks.optional(label_errors, f"{path}.{field}", spec.get(field))
    return found


def _host_aliases(spec: Object, path: str) -> Errors:
    found: Errors = []
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += checks.ip_address(f"{path}[{index}].ip", alias["ip"])
        for position, name in enumerate(alias.get("hostnames") or ()):
            found += checks.subdomain(f"{path}[{index}].hostnames[{position}]", name)
    return found


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
    spec = obj["spec"]
    found = pod_spec(spec, "spec", obj["metadata"].get("name", ""), is_pod=True)
    for index, volume in enumerate(spec.get("volumes") or ()):
        for position, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if not spec.get("serviceAccountName") and source.get("serviceAccountToken") is not None:
                where = f"spec.volumes[{index}].projected.sources[{position}].serviceAccountToken"
                found.append(forbidden(where, "must not be specified when serviceAccountName is not set"))
    found += checks.nonnegative(spec, "spec", "terminationGracePeriodSeconds")
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            found += image_padding(container, f"spec.{field}[{index}]")
    return found


def new_pod(obj: Object) -> Errors:
    found: Errors = []
    if obj["spec"].get("ephemeralContainers"):
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if obj["spec"].get("nodeName") and obj["spec"].get("schedulingGates"):
        found.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def update_pod(new: Object, old: Object) -> Errors:
    """A pod is as it was made, but for images, deadline, and tolerations to add."""
    spec, before = copy.deepcopy(new["spec"]), old["spec"]
    found: Errors = []
    for field in ("containers", "initContainers"):
        ours, theirs = spec.get(field) or [], before.get(field) or []
        if len(ours) != len(theirs):
            return [forbidden(f"spec.{field}", "pod updates may not add or remove containers")]
        for container, known in zip(ours, theirs, strict=True):
            container["image"] = known.get("image")
    found += _deadline(spec, before)
    ours, theirs = spec.get("tolerations") or [], before.get("tolerations") or []
    timeless = [_timeless(toleration) for toleration in ours]
    _keep(spec, before, "tolerations")
    if not all(_timeless(toleration) in timeless for toleration in theirs):
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


def _timeless(toleration: Object) -> Object:
    return {field: value for field, value in toleration.items() if field != "tolerationSeconds"}


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
