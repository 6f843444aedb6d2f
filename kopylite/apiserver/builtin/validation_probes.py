"""Validation of what a kubelet runs in a container: probes, and hooks at its start and stop. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required

_HOOKS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("exec", "httpGet", "tcpSocket", "grpc")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_HEADER_TEXT = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
    "validation is '[-A-Za-z0-9]+')"
)


def lifecycle(container: Object, path: str, spec: Object) -> Errors:
    found: Errors = []
    for hook in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(hook)
        if handler is not None:
            found += _handler(handler, f"{path}.lifecycle.{hook}", _HOOKS, spec)
    return found


def probes(container: Object, path: str, spec: Object) -> Errors:
    found: Errors = []
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(field)
        if probe is not None:
            found += _probe(probe, f"{path}.{field}", spec, ready=field == "readinessProbe")
    return found


def _probe(probe: Object, path: str, spec: Object, *, ready: bool) -> Errors:
    found = _handler(probe, path, _PROBES, spec) + checks.nonnegative(probe, path, *_NUMBERS)
    grace, field = probe.get("terminationGracePeriodSeconds"), f"{path}.terminationGracePeriodSeconds"
    if grace is not None and grace <= 0:
        found.append(invalid(field, grace, "must be greater than 0"))
    if grace is not None and ready:
        found.append(invalid(field, grace, "must not be set for readinessProbes"))
    if not ready and probe.get("successThreshold") != 1:
        found.append(invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return found


def _handler(handler: Object, path: str, kinds: Collection[str], spec: Object) -> Errors:
    given = [kind for kind in kinds if kind in handler]
    if not given:
        return [required(path, "must specify a handler type")]
    found = _CHECKS[given[0]](handler[given[0]], f"{path}.{given[0]}", spec)
    return found + [forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in given[1:]]


def _exec(action: Object, path: str, spec: Object) -> Errors:
    return [] if action.get("command") else [required(f"{path}.command")]


def _http_get(action: Object, path: str, spec: Object) -> Errors:
    found: Errors = [] if action.get("path") else [required(f"{path}.path")]
    found += checks.port_number_or_name(f"{path}.port", action["port"])
    found += checks.one_of(f"{path}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not re.fullmatch(r"[-A-Za-z0-9]+", name):
            found.append(invalid(f"{path}.httpHeaders", name, _HEADER_TEXT))
    return found


def _port(action: Object, path: str, spec: Object) -> Errors:
    return checks.port_number_or_name(f"{path}.port", action["port"])


def _sleep(action: Object, path: str, spec: Object) -> Errors:
    seconds, grace = action.get("seconds", 0), spec.get("terminationGracePeriodSeconds")
    if grace is None or 0 <= seconds <= grace:
        return []
    return [invalid(path, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")]


_CHECKS: dict[str, Callable[[Any, str, Object], Errors]] = {
    "exec": _exec,
    "httpGet": _http_get,
    "tcpSocket": _port,
    "grpc": _port,
    "sleep": _sleep,
}
