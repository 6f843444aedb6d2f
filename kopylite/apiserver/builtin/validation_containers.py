"""Validation of containers of all three sorts: names, ports, resources, restarts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_environment import environment, environment_sources
from kopylite.apiserver.builtin.validation_mounts import mounts
from kopylite.apiserver.builtin.validation_probes import lifecycle, probes
from kopylite.apiserver.builtin.validation_resources import container_resource, resource_name
from kopylite.apiserver.builtin.validation_security import container_context
from kopylite.apiserver.schema.field_errors import (
    NOT_FOUND,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    too_many,
    unsupported,
)
from kopylite.apiserver.schema.names import label_errors
from kopylite.objects.amounts import parse_quantity

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RULES, _MOST_CODES = 20, 255
_NOT_EPHEMERAL = ("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
                  "readinessProbe", "startupProbe", "lifecycle")  # fmt: skip
_EPHEMERAL_TEXT = "cannot be set for an Ephemeral Container"


@dataclass(frozen=True, slots=True)
class Around:
    """What the containers of a pod are checked against: its spec, its valid volumes, its resource claims."""

    spec: Object
    volumes: Mapping[str, Object]
    claims: frozenset[str] = field(default_factory=frozenset)


def containers(around: Around, path: str) -> Errors:
    """The plain containers of a pod."""
    listed = around.spec.get("containers")
    if not listed:
        return [required(path)]
    found: Errors = []
    names: set[str] = set()
    for index, container in enumerate(listed):
        where = f"{path}[{index}]"
        found += _common(container, where, around)
        if container["name"] in names:
            found.append(duplicate(f"{where}.name", container["name"]))
        names.add(container["name"])
        found += lifecycle(container, where, around.spec) + probes(container, where, around.spec)
        found += _restarts(container, where)
    return found + _host_port_conflicts(listed, path)


def init_containers(around: Around, path: str) -> Errors:
    found: Errors = []
    names = {c["name"] for c in around.spec.get("containers") or ()}
    for index, container in enumerate(around.spec.get("initContainers") or ()):
        where = f"{path}[{index}]"
        found += _common(container, where, around)
        if container["name"] in names:
            found.append(duplicate(f"{where}.name", container["name"]))
        names |= {container["name"]} if container["name"] else set()
        found += _host_port_conflicts([container], path)
        found += _restarts(container, where)
        if container.get("restartPolicy") == "Always":
            found += lifecycle(container, where, around.spec) + probes(container, where, around.spec)
            continue
        text = "may not be set for init containers without restartPolicy=Always"
        kinds = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
        found += [forbidden(f"{where}.{kind}", text) for kind in kinds if kind in container]
        for position, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                text = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                here = f"{where}.resizePolicy[{position}].restartPolicy"
                found.append(invalid(here, policy["restartPolicy"], text))
    return found


def ephemeral_containers(around: Around, path: str) -> Errors:
    found: Errors = []
    spec = around.spec
    others = {c["name"] for kind in ("containers", "initContainers") for c in spec.get(kind) or ()}
    names = set(others)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        where = f"{path}[{index}]"
        found += _common(container, where, around) + image_padding(container, where)
        if container["name"] in names:
            found.append(duplicate(f"{where}.name", container["name"]))
        names.add(container["name"])
        target = container.get("targetContainerName", "")
        if target and target not in others:
            found.append(not_found(f"{where}.targetContainerName", target))
        found += [forbidden(f"{where}.{kind}", _EPHEMERAL_TEXT) for kind in _NOT_EPHEMERAL if container.get(kind)]
        for position, mount in enumerate(container.get("volumeMounts") or ()):
            for kind in ("subPath", "subPathExpr"):
                if mount.get(kind):
                    found.append(forbidden(f"{where}.volumeMounts[{position}].{kind}", _EPHEMERAL_TEXT))
    return found


def image_padding(container: Object, path: str) -> Errors:
    """Pods, unlike templates, may not name an image with spaces around it."""
    image = container.get("image", "")
    text = "must not have leading or trailing whitespace"
    return [] if image == image.strip() else [invalid(f"{path}.image", image, text)]


def _common(container: Object, path: str, around: Around) -> Errors:
    found = checks.label_name(f"{path}.name", container["name"])
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    policies = ("File", "FallbackToLogsOnError")
    policy = container.get("terminationMessagePolicy")
    found += checks.one_of(f"{path}.terminationMessagePolicy", policy, policies, needed=True)
    found += _ports(container.get("ports") or (), f"{path}.ports")
    found += environment(container.get("env") or (), f"{path}.env")
    found += environment_sources(container.get("envFrom") or (), f"{path}.envFrom")
    found += mounts(container, path, around.volumes)
    found += checks.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), PULL_POLICIES, needed=True)
    found += resources(container.get("resources") or {}, f"{path}.resources", around.claims)
    found += _resizing(
        container.get("resizePolicy") or (), f"{path}.resizePolicy", around.spec.get("restartPolicy", "")
    )
    host_users = around.spec.get("hostUsers") is not False
    return found + container_context(container.get("securityContext"), f"{path}.securityContext", host_users=host_users)


def _restarts(container: Object, path: str) -> Errors:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or ()
    found: Errors = []
    if policy is None and rules:
        text = "must specify restartPolicy when restart rules are used"
        found.append(required(f"{path}.restartPolicy", text))
    elif policy is not None and policy not in _RESTARTS:
        found.append(unsupported(f"{path}.restartPolicy", policy, _RESTARTS))
    if len(rules) > _MOST_RULES:
        found.append(too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        where, codes = f"{path}.restartPolicyRules[{index}]", rule.get("exitCodes")
        if rule.get("action", "") not in _ACTIONS:
            found.append(unsupported(f"{where}.action", rule.get("action", ""), _ACTIONS))
        if codes is None:
            found.append(required(f"{where}.exitCodes", "must be specified"))
            continue
        if codes.get("operator", "") not in ("In", "NotIn"):
            found.append(unsupported(f"{where}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
        if len(codes.get("values") or ()) > _MOST_CODES:
            found.append(too_many(f"{where}.exitCodes.values", len(codes["values"]), _MOST_CODES))
    return found


def _resizing(policies: Collection[Object], path: str, restart: str) -> Errors:
    found: Errors = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        name, kind = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            found.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
        found += checks.one_of(path, name, ("cpu", "memory"))
        found += checks.one_of(path, kind, ("NotRequired", "RestartContainer"))
        found += [] if name and kind else [required(path)]
        if restart == "Never" and kind != "NotRequired":
            text = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            found.append(invalid(path, kind, text))
    return found


def _ports(ports: Collection[Object], path: str) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        where = f"{path}[{index}]"
        name = port.get("name")
        if name:
            wrong = checks.port_name_errors(name)
            found += checks.texts(f"{where}.name", name, wrong)
            if not wrong and name in names:
                found.append(duplicate(f"{where}.name", name))
            names.add(name)
        if port["containerPort"] == 0:
            found.append(required(f"{where}.containerPort"))
        else:
            found += checks.port_number(f"{where}.containerPort", port["containerPort"])
        if port.get("hostPort"):
            found += checks.port_number(f"{where}.hostPort", port["hostPort"])
        found += checks.one_of(f"{where}.protocol", port.get("protocol"), PROTOCOLS, needed=True)
    return found


def _host_port_conflicts(listed: Collection[Object], path: str) -> Errors:
    found: Errors = []
    taken: set[str] = set()
    for index, container in enumerate(listed):
        for position, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if text in taken:
                    found.append(duplicate(f"{path}[{index}].ports[{position}].hostPort", text))
                taken.add(text)
    return found


def resources(
    needs: Object, path: str, claims: frozenset[str] = frozenset(), name_errors: Any = container_resource
) -> Errors:
    """Limits, requests and claims of a container. Args: claims: those of the pod."""
    found: Errors = []
    limits, requests = needs.get("limits") or {}, needs.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in sorted(amounts.items()):
            where = f"{path}.{kind}[{name}]"
            found += name_errors(where, name) + resource_amount(name, text, where)
            if kind == "requests":
                found += _against_limit(name, text, limits.get(name), path)
    names = limits.keys() | requests.keys()
    if any(name.startswith("hugepages-") for name in names) and not names & {"cpu", "memory"}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found + _claims(needs.get("claims") or (), f"{path}.claims", claims)


def pod_resources(spec: Object, path: str, claims: frozenset[str]) -> Errors:
    """Resources of a pod as a whole: at least what its containers ask for together."""
    needs = spec.get("resources")
    if needs is None:
        return []
    if (spec.get("os") or {}).get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    found: Errors = []
    if needs.get("claims") is not None:
        found.append(forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level"))
    found += resources(needs, path, claims, _pod_resource)
    limits, requests = needs.get("limits") or {}, needs.get("requests") or {}
    listed = [container.get("resources") or {} for container in spec.get("containers") or ()]
    for name, text in requests.items():
        asked = sum(parse_quantity((one.get("requests") or {}).get(name, "0")).value for one in listed)
        if asked > parse_quantity(text).value:
            shown = f"must be greater than or equal to aggregate container requests of {asked}"
            found.append(invalid(f"{path}.requests[{name}]", text, shown))
    for index, one in enumerate(listed):
        for name, text in (one.get("limits") or {}).items():
            if name in limits and parse_quantity(text).value > parse_quantity(limits[name]).value:
                shown = f"must be less than or equal to pod limits of {limits[name]}"
                found.append(invalid(f"{path}.containers[{index}][{name}].limits", text, shown))
    return found


def _pod_resource(field: str, name: str) -> Errors:
    found = resource_name(field, name)
    if found or name in ("cpu", "memory") or name.startswith("hugepages-"):
        return found
    return [unsupported(field, name, ("cpu", "hugepages-", "memory"))]


def _claims(needs: Collection[Object], path: str, claims: frozenset[str]) -> Errors:
    found: Errors = []
    seen: set[str] = set()
    for index, claim in enumerate(needs):
        where, name, request = f"{path}[{index}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            found.append(required(where))
            continue
        key = f"{name}/{request}" if request else name
        found += checks.optional(label_errors, f"{where}.request", request if name not in seen else "")
        if name in seen or key in seen:
            found.append(duplicate(where, name if name in seen else key))
        elif not request:
            found += [duplicate(where, name) for other in sorted(seen) if other.startswith(f"{name}/")]
        seen.add(name if name in seen else key)
        if name not in claims:
            names = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            text = f"must be one of the names in pod.spec.resourceClaims{names}"
            found.append(FieldError(NOT_FOUND, where, text, name))
    return found


def _against_limit(name: str, text: str, limit: str | None, path: str) -> Errors:
    extended = ("/" in name and "kubernetes.io/" not in name) or name.startswith("hugepages-")
    if limit is None:
        missing = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", missing)] if extended else []
    amount, most = parse_quantity(text).value, parse_quantity(limit).value
    if extended and amount != most:
        return [invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")]
    if amount > most:
        return [invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")]
    return []


def resource_amount(name: str, text: str, path: str) -> Errors:
    found = checks.quantity_not_negative(path, text)
    value = parse_quantity(text).value
    if "/" in name and value != value.to_integral_value():
        found.append(invalid(path, text, "must be an integer"))
    return found
