"""Validation of containers: names, ports, environment, mounts, probes, resources. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.quantities import parse_quantity
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, not_found, required, unsupported
from kopylite.apiserver.schema.names import label_key_errors, subdomain_errors

PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_ENV_FIELDS = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
     "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)  # fmt: skip
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")


def containers(spec: Object, path: str, volumes: Collection[str]) -> Errors:
    """The plain containers of a pod."""
    listed = spec.get("containers")
    if not listed:
        return [required(path)]
    found: Errors = []
    names: set[str] = set()
    for index, container in enumerate(listed):
        where = f"{path}[{index}]"
        found += _common(container, where, volumes)
        if container["name"] in names:
            found.append(duplicate(f"{where}.name", container["name"]))
        names.add(container["name"])
        found += _lifecycle(container, where)
        found += _probes(container, where)
        found += _restart_policy(container, where)
    return found + _host_port_conflicts(listed, path)


def init_containers(spec: Object, path: str, volumes: Collection[str]) -> Errors:
    found: Errors = []
    names = {c["name"] for c in spec.get("containers") or ()}
    for index, container in enumerate(spec.get("initContainers") or ()):
        where = f"{path}[{index}]"
        found += _common(container, where, volumes)
        if container["name"] in names and container["name"]:
            found.append(duplicate(f"{where}.name", container["name"]))
        names.add(container["name"])
        if container.get("restartPolicy") == "Always":
            found += _lifecycle(container, where)
            found += _probes(container, where)
        else:
            text = "may not be set for init containers without restartPolicy=Always"
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if field in container:
                    found.append(forbidden(f"{where}.{field}", text))
        found += _restart_policy(container, where)
    return found


def _restart_policy(container: Object, path: str) -> Errors:
    policy = container.get("restartPolicy")
    return [] if policy is None else checks.one_of(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure"))


def _common(container: Object, path: str, volumes: Collection[str]) -> Errors:
    found = checks.label_name(f"{path}.name", container["name"])
    if not container.get("image"):
        found.append(required(f"{path}.image"))
    policies = ("File", "FallbackToLogsOnError")
    found += checks.one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), policies)
    found += _ports(container.get("ports") or (), f"{path}.ports")
    found += _environment(container.get("env") or (), f"{path}.env")
    found += _environment_sources(container.get("envFrom") or (), f"{path}.envFrom")
    found += _mounts(container.get("volumeMounts") or (), f"{path}.volumeMounts", volumes)
    pull_policies = ("Always", "IfNotPresent", "Never")
    found += checks.one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), pull_policies)
    found += resources(container["resources"], f"{path}.resources")
    found += _security(container.get("securityContext"), f"{path}.securityContext")
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


def _environment(variables: Collection[Object], path: str) -> Errors:
    found: Errors = []
    for index, variable in enumerate(variables):
        where = f"{path}[{index}]"
        name = variable["name"]
        if not name:
            found.append(required(f"{where}.name"))
        elif "=" in name or not all(" " <= c <= "~" for c in name):
            text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            found.append(invalid(f"{where}.name", name, text))
        found += _value_from(variable, f"{where}.valueFrom")
    return found


def _value_from(variable: Object, path: str) -> Errors:
    source = variable.get("valueFrom")
    if source is None:
        return []
    found: Errors = []
    given = [name for name in _ENV_SOURCES if name in source]
    if "fieldRef" in source:
        field = source["fieldRef"].get("fieldPath", "")
        if not field:
            found.append(required(f"{path}.fieldRef.fieldPath"))
        elif field not in _ENV_FIELDS and not field.startswith(("metadata.labels['", "metadata.annotations['")):
            text = f"error converting fieldPath: field label not supported: {field}"
            found.append(invalid(f"{path}.fieldRef.fieldPath", field, text))
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            reference = source[name]
            found += checks.texts(
                f"{path}.{name}.name", reference.get("name", ""), subdomain_errors(reference.get("name", ""))
            )
            if reference.get("key"):
                found += checks.config_key(f"{path}.{name}.key", reference["key"])
            else:
                found.append(required(f"{path}.{name}.key"))
    if not given:
        text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        found.append(invalid(path, "", text))
    if variable.get("value"):
        if given:
            found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(given) > 1:
        found.append(invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _environment_sources(sources: Collection[Object], path: str) -> Errors:
    found: Errors = []
    for index, source in enumerate(sources):
        given = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in given:
            reference = source[name].get("name", "")
            where = f"{path}[{index}].{name}.name"
            found += checks.subdomain(where, reference) if reference else [required(where)]
        if not given:
            found.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            found.append(invalid(path, "", "may not have more than one field specified at a time"))
    return found


def _mounts(mounts: Collection[Object], path: str, volumes: Collection[str]) -> Errors:
    found: Errors = []
    points: set[str] = set()
    for index, mount in enumerate(mounts):
        where = f"{path}[{index}]"
        if not mount["name"]:
            found.append(required(f"{where}.name"))
        if mount["name"] not in volumes:
            found.append(not_found(f"{where}.name", mount["name"]))
        point = mount["mountPath"]
        if not point:
            found.append(required(f"{where}.mountPath"))
        if point in points:
            found.append(invalid(f"{where}.mountPath", point, "must be unique"))
        points.add(point)
        sub_path = mount.get("subPath", "")
        if sub_path.startswith("/"):
            found.append(invalid(f"{path}.subPath", sub_path, "must be a relative path"))
        if ".." in sub_path.split("/"):
            found.append(invalid(f"{path}.subPath", sub_path, "must not contain '..'"))
    return found


def resources(needs: Object, path: str) -> Errors:
    """Limits and requests of a container."""
    found: Errors = []
    limits, requests = needs.get("limits") or {}, needs.get("requests") or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, text in sorted(amounts.items()):
            where = f"{path}.{field}[{name}]"
            found += resource_name(name, where, containers_only=True)
            found += resource_amount(name, text, where)
            if field == "requests":
                found += _against_limit(name, text, limits.get(name), path)
    return found


def _against_limit(name: str, text: str, limit: str | None, path: str) -> Errors:
    extended = "/" in name or name.startswith("hugepages-")
    if limit is None:
        missing = "Limit must be set for non overcommitable resources"
        return [required(f"{path}.limits", missing)] if extended else []
    amount, most = parse_quantity(text).value, parse_quantity(limit).value
    if extended and amount != most:
        return [invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")]
    if amount > most:
        return [invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")]
    return []


def resource_name(name: str, path: str, *, containers_only: bool = False) -> Errors:
    found = checks.texts(path, name, label_key_errors(name))
    if found or "/" in name:
        return found
    if name not in _STANDARD and not name.startswith("hugepages-"):
        found.append(invalid(path, name, "must be a standard resource type or fully qualified"))
        if containers_only:
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif containers_only and name == "storage":
        found.append(invalid(path, name, "must be a standard resource for containers"))
    return found


def resource_amount(name: str, text: str, path: str) -> Errors:
    found = checks.quantity_not_negative(path, text)
    value = parse_quantity(text).value
    if "/" in name and value != value.to_integral_value():
        found.append(invalid(path, text, "must be an integer"))
    return found


def _lifecycle(container: Object, path: str) -> Errors:
    found: Errors = []
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            handlers = ("exec", "httpGet", "tcpSocket", "sleep")
            found += _handler(handler, f"{path}.lifecycle.{hook}", handlers)
    return found


def _probes(container: Object, path: str) -> Errors:
    found: Errors = []
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is None:
            continue
        where = f"{path}.{field}"
        found += _handler(probe, where, _HANDLERS)
        numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
        found += checks.nonnegative(probe, where, *numbers)
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None:
            if field == "readinessProbe":
                text = "must not be set for readinessProbes"
                found.append(invalid(f"{where}.terminationGracePeriodSeconds", grace, text))
            elif grace <= 0:
                found.append(invalid(f"{where}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
        if field != "readinessProbe" and probe.get("successThreshold") != 1:
            found.append(invalid(f"{where}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return found


def _handler(handler: Object, path: str, kinds: Collection[str]) -> Errors:
    found: Errors = []
    seen = 0
    for kind in kinds:
        if kind not in handler:
            continue
        if seen:
            found.append(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type"))
        else:
            found += _HANDLER_CHECKS[kind](handler[kind], f"{path}.{kind}")
        seen += 1
    return found if seen else [*found, required(path, "must specify a handler type")]


def _exec(action: Object, path: str) -> Errors:
    return [] if action.get("command") else [required(f"{path}.command")]


def _http_get(action: Object, path: str) -> Errors:
    found: Errors = [] if action.get("path") else [required(f"{path}.path")]
    found += checks.port_number_or_name(f"{path}.port", action["port"])
    return found + checks.one_of(f"{path}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))


def _tcp_socket(action: Object, path: str) -> Errors:
    return checks.port_number_or_name(f"{path}.port", action["port"])


def _sleep(action: Object, path: str) -> Errors:
    return []


_HANDLER_CHECKS: dict[str, Callable[[Any, str], Errors]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _tcp_socket,
    "grpc": _tcp_socket,
    "sleep": _sleep,
}


def user_ids(context: Object, path: str, *fields: str) -> Errors:
    return [
        error
        for field in fields
        if field in context
        for error in checks.in_range(f"{path}.{field}", context[field], 0, checks.MAX_INT32)
    ]


_GO_SECURITY_CONTEXT = (
    "Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot",
    "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile", "AppArmorProfile",
)  # fmt: skip


def _security(context: Object | None, path: str) -> Errors:
    if context is None:
        return []
    found = user_ids(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    if mount is not None and mount not in ("Default", "Unmasked"):
        found.append(unsupported(f"{path}.procMount", mount, ("Default", "Unmasked")))
    if context.get("allowPrivilegeEscalation") is False:
        shown = {name: context.get(name[:1].lower() + name[1:]) for name in _GO_SECURITY_CONTEXT}
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(invalid(path, checks.go_struct(shown), text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            found.append(invalid(path, checks.go_struct(shown), text))
    return found
