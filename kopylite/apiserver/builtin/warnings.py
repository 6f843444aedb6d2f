"""What the server warns of in objects that it accepts: Warning headers of built-in kinds. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.schema.names import label_errors
from kopylite.objects.amounts import parse_quantity

Object = dict[str, Any]
Warn = Callable[[Object, Object | None], list[str]]

# Kinds on their way out, with the text that every request for them gets.
DEPRECATED = {
    ("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ("", "ComponentStatus"): "v1 ComponentStatus is deprecated in v1.19+",
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SURPRISING = "which can result in surprising behavior; a DNS label is recommended"


def pod(obj: Object, old: Object | None) -> list[str]:
    if old is not None:
        return []
    return [*_name(obj, "the Pod's hostname"), *_pod_spec(obj["spec"], "spec")]


def workload(*path: str, named: bool = True) -> Warn:
    """Warnings of a kind whose pod template is at `path`.

    Args:
        named: the object's name becomes part of pods' names.
    """
    field = ".".join(path)

    def warn(obj: Object, old: Object | None) -> list[str]:
        if old is not None and obj.get("spec") == old.get("spec"):
            return []
        template: Any = obj
        for name in path:
            template = template.get(name) or {}
        found = _name(obj, "Pod names and hostnames") if named and old is None else []
        if obj.get("kind") == "StatefulSet" and (obj["spec"].get("revisionHistoryLimit") or 0) < 0:
            found.append(f"spec.revisionHistoryLimit: {_NEGATIVE_HISTORY}")
        return [*found, *_pod_spec(template.get("spec") or {}, f"{field}.spec")]

    return warn


def _name(obj: Object, used: str) -> list[str]:
    wrong = label_errors(obj["metadata"].get("name", ""))
    return [f"metadata.name: this is used in {used}, {_SURPRISING}: [{' '.join(wrong)}]"] if wrong else []


def _pod_spec(spec: Object, path: str) -> list[str]:
    return [
        *_spread(spec, path),
        *_volumes(spec, path),
        *_host_aliases(spec, f"{path}.hostAliases"),
        *_pull_secrets(spec, f"{path}.imagePullSecrets"),
        *_containers(spec, path),
        *_ports(spec, path),
        *_grace(spec, path),
    ]


def _host_aliases(spec: Object, path: str) -> Iterator[str]:
    seen = set()
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        address = alias.get("ip", "")
        if address in seen:
            yield f"{path}[{index}].ip: duplicate ip {go_quote(address)}"
        seen.add(address)


def _spread(spec: Object, path: str) -> Iterator[str]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            yield f"{where}: a null labelSelector results in matching no pod"


def _volumes(spec: Object, path: str) -> Iterator[str]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind, text in _VOLUMES.items():
            if kind in volume:
                yield f"{path}.volumes[{index}].{'storageOS' if kind == 'storageos' else kind}: {text}"


def _pull_secrets(spec: Object, path: str) -> Iterator[str]:
    names: set[str] = set()
    secrets = [s.get("name", "") for s in spec.get("imagePullSecrets") or ()]
    for index, name in enumerate(secrets):
        if name in names:
            yield f"{path}[{index}].name: duplicate name {go_quote(name)}"
        names.add(name)
    for index, name in enumerate(secrets):
        if not name:
            yield f'{path}[{index}].name: invalid empty name ""'


def _all_containers(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def _containers(spec: Object, path: str) -> Iterator[str]:
    for container, where in _all_containers(spec, path):
        for resource in ("memory", "ephemeral-storage"):
            for field in ("limits", "requests"):
                text = (container["resources"].get(field) or {}).get(resource)
                if text is not None and parse_quantity(text).value % 1 != 0:
                    what = f"{where}.resources.{field}[{resource}]"
                    yield f"{what}: fractional byte value {go_quote(text)} is invalid, must be an integer"
        names: set[str] = set()
        for index, variable in enumerate(container.get("env") or ()):
            name, value = variable["name"], variable.get("value", "")
            reference = f"$({name})"
            extends = "valueFrom" not in variable and value != reference and reference in value
            if name in names and not extends:
                text = f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
                yield f"{where}.env[{index}]: {text}"
            names.add(name)


_NEGATIVE_HISTORY = "a negative value retains all historical revisions; a value >= 0 is recommended"
_GO_PORT = (
    ("Name", "name", ""),
    ("HostPort", "hostPort", 0),
    ("ContainerPort", "containerPort", 0),
    ("Protocol", "protocol", ""),
    ("HostIP", "hostIP", ""),
)


def _ports(spec: Object, path: str) -> Iterator[str]:
    seen: dict[tuple[Any, Any], list[tuple[str, Object]]] = {}
    names: dict[str, str] = {}
    listed = [
        (f"{where}.ports[{index}]", port)
        for container, where in _all_containers(spec, path)
        for index, port in enumerate(container.get("ports") or ())
    ]
    for where, port in listed:
        if port.get("hostIP") and not port.get("hostPort"):
            shown = " ".join(f"{go}:{port.get(field, zero)}" for go, field, zero in _GO_PORT)
            yield f"{where}: hostIP set without hostPort: {{{shown}}}"
        others = seen.setdefault((port["containerPort"], port.get("protocol")), [])
        for other_place, other in others:
            how = _overlap(port, other)
            if how:
                yield f"{where}: {how} port definition with {other_place}"
        others.append((where, port))
    for where, port in listed:
        name = port.get("name")
        if name and name in names:
            first = names[name]
            text = f"services and probes that select ports by name will use {first}"
            yield f"{where}: duplicate port name {go_quote(name)} with {first}, {text}"
        elif name:
            names[name] = where


def _overlap(port: Object, other: Object) -> str:
    ours, theirs = ((p.get("hostIP", ""), p.get("hostPort", 0)) for p in (port, other))
    if ours == theirs:
        return "duplicate"
    if not ours[1] or not theirs[1]:
        return "overlapping"
    return "dangerously ambiguous" if ours[1] == theirs[1] and bool(ours[0]) != bool(theirs[0]) else ""


def _grace(spec: Object, path: str) -> Iterator[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {text}"


def service(obj: Object, old: Object | None) -> list[str]:
    spec = obj["spec"]
    found = []
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == "None"
    external = spec.get("type") == "ExternalName"
    if headless and spec.get("externalIPs"):
        found.append("spec.externalIPs is ignored for headless services")
    if headless and spec.get("sessionAffinity") != "None":
        found.append("spec.SessionAffinity is ignored for headless services")
    if spec.get("externalIPs") and not headless and not external:
        found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if external and spec.get("externalIPs"):
        found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not external and spec.get("externalName"):
        found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return found


_TOKENS_IN_ATTRIBUTES = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def node(obj: Object, old: Object | None) -> list[str]:
    found = []
    if obj["spec"].get("configSource") is not None:
        found.append("spec.configSource: the feature is no longer supported")
    if obj["spec"].get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    return found


def csi_driver(obj: Object, old: Object | None) -> list[str]:
    requests = obj["spec"].get("tokenRequests")
    unchanged = old is not None and old["spec"].get("tokenRequests") == requests
    if not requests or unchanged or obj["spec"].get("serviceAccountTokenInSecrets") is not None:
        return []
    return [_TOKENS_IN_ATTRIBUTES]
