"""Validation of the smaller kinds of the core group, and of events. Pure."""

from __future__ import annotations

import base64

import msgspec

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_scheduling import EFFECTS
from kopylite.apiserver.schema.field_errors import FieldError, duplicate, forbidden, invalid, required, too_long
from kopylite.apiserver.schema.names import label_errors, label_value_errors, subdomain_errors

MAX_CONTENT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_ACCOUNT = "kubernetes.io/service-account.name"
# The keys that a secret of a type must have.
_NEEDED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}


def config_map(obj: Object) -> Errors:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    found: Errors = []
    for key in sorted(data):
        found += checks.config_key(f"data[{key}]", key)
        if key in binary:
            found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in sorted(binary):
        found += checks.config_key(f"binaryData[{key}]", key)
    size = sum(len(v.encode()) for v in data.values()) + sum(len(base64.b64decode(v)) for v in binary.values())
    return [*found, too_long("[]", MAX_CONTENT)] if size > MAX_CONTENT else found


def update_config_map(new: Object, old: Object) -> Errors:
    return _frozen(new, old, "data", "binaryData")


def _frozen(new: Object, old: Object, *fields: str) -> Errors:
    if not old.get("immutable"):
        return []
    found = [] if new.get("immutable") else [forbidden("immutable", _FROZEN)]
    return found + [forbidden(f, _FROZEN) for f in fields if (new.get(f) or {}) != (old.get(f) or {})]


def secret(obj: Object) -> Errors:
    data, kind = obj.get("data") or {}, obj.get("type")
    found = [e for key in sorted(data) for e in checks.config_key(f"data[{key}]", key)]
    if sum(len(base64.b64decode(v)) for v in data.values()) > MAX_CONTENT:
        found.append(too_long("data", MAX_CONTENT))
    if kind == "kubernetes.io/service-account-token":
        if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
            found.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        found += [required("data[username]"), required("data[password]")]
    for key in _NEEDED_KEYS.get(kind or "", ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            found.append(required(f"data[{key}]"))
        elif key.startswith(".docker"):
            found += _docker_configuration(data[key], f"data[{key}]")
    return found


def _docker_configuration(text: str, path: str) -> Errors:
    try:
        msgspec.json.decode(base64.b64decode(text))
    except msgspec.DecodeError as error:
        problem = "unexpected end of JSON input" if "truncated" in str(error) else str(error)
        return [invalid(path, "<secret contents redacted>", problem)]
    return []


def update_secret(new: Object, old: Object) -> Errors:
    found = checks.immutable("type", new.get("type"), old.get("type"))
    return found + _frozen(new, old, "data")


def namespace(obj: Object) -> Errors:
    found: Errors = []
    for name in obj["spec"].get("finalizers") or ():
        found += checks.qualified_name("spec.finalizers", name)
        if "/" not in name and name != "kubernetes":
            text = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid("spec.finalizers", name, text))
    return found


def namespace_status(new: Object, old: Object) -> Errors:
    deleting, phase = "deletionTimestamp" in old["metadata"], new["status"].get("phase")
    if deleting and phase != "Terminating":
        return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
    if not deleting and phase != "Active":
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return []


def node(obj: Object) -> Errors:
    found: Errors = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(obj["spec"].get("taints") or ()):
        where = f"metadata.taints[{index}]"
        found += checks.qualified_name(f"{where}.key", taint["key"])
        found += checks.texts(f"{where}.value", taint.get("value", ""), label_value_errors(taint.get("value", "")))
        found += checks.one_of(f"{where}.effect", taint["effect"], EFFECTS, needed=True)
        if (taint["key"], taint["effect"]) in seen:
            text = "taints must be unique by key and effect pair"
            found.append(FieldError(duplicate("", "").reason, where, text, taint))
        seen.add((taint["key"], taint["effect"]))
    ranges = obj["spec"].get("podCIDRs") or ([obj["spec"]["podCIDR"]] if obj["spec"].get("podCIDR") else [])
    for index, block in enumerate(ranges):
        found += checks.cidr(f"spec.podCIDRs[{index}]", block)
    return found


def update_node(new: Object, old: Object) -> Errors:
    """What identifies a node to its cloud and network is set once."""
    ours, theirs = new["spec"], old["spec"]
    found: Errors = []
    if theirs.get("podCIDRs") and ours.get("podCIDRs") != theirs["podCIDRs"]:
        text = 'node updates may not change podCIDR except from "" to valid'
        found.append(forbidden("spec.podCIDRs", text))
    if theirs.get("providerID"):
        text = "field cannot be modified once set"
        found += checks.frozen("spec.providerID", ours.get("providerID"), theirs["providerID"], text)
    return found


def endpoints(obj: Object) -> Errors:
    found: Errors = []
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            found.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
        for field in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(subset.get(field) or ()):
                found += _endpoint_address(address, f"{path}.{field}[{position}]")
        ports = subset.get("ports") or ()
        for position, port in enumerate(ports):
            where, name = f"{path}.ports[{position}]", port.get("name", "")
            if not name and len(ports) > 1:
                found.append(required(f"{where}.name"))
            found += checks.texts(f"{where}.name", name, label_errors(name)) if name else []
            found += checks.port_number(f"{where}.port", port["port"])
            found += checks.one_of(f"{where}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"), needed=True)
            if port.get("appProtocol") is not None:
                found += checks.qualified_name(f"{where}.appProtocol", port["appProtocol"])
    return found


def _endpoint_address(address: Object, path: str) -> Errors:
    ip, host, node_name = address["ip"], address.get("hostname", ""), address.get("nodeName")
    found = checks.ip_address(f"{path}.ip", ip)
    found += checks.texts(f"{path}.hostname", host, label_errors(host)) if host else []
    if node_name is not None:
        found += checks.texts(f"{path}.nodeName", node_name, subdomain_errors(node_name))
    # Upstream looks at it twice, the second time for addresses that endpoints may not have.
    return found + ([invalid(f"{path}.ip", ip, "must be a valid IP address")] if checks.ip_address("", ip) else [])


def controller_revision(obj: Object) -> Errors:
    found: Errors = [] if obj.get("data") is not None else [required("data", "data is mandatory")]
    return checks.nonnegative(obj, "", "revision") + found


def update_controller_revision(new: Object, old: Object) -> Errors:
    return checks.immutable("data", new.get("data"), old.get("data"))
