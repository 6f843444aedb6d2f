"""Validation of the kinds of storage.k8s.io. Pure."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import (
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kopylite.apiserver.schema.names import subdomain_errors

_ANY_CASE_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_ANY_CASE = rf"{_ANY_CASE_LABEL}(\.{_ANY_CASE_LABEL})*"
_ANY_CASE_TEXT = (
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an "
    f"alphanumeric character (e.g. 'Example.com', regex used for validation is '{_ANY_CASE}')"
)
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
_MOST_PARAMETERS, _LARGEST_PARAMETERS = 512, 256 * 1024
_LONGEST_TOKEN = 2**32


def csi_driver_name(field: str, name: str) -> Errors:
    """As in `checks`, in the one text of IsDNS1123SubdomainCaseless (apimachinery, content/dns.go)."""
    if not name:
        return [required(field)]
    found = [too_long(field, 63)] if len(name.encode()) > 63 else []
    lowered = subdomain_errors(name.lower())
    return found + ([invalid(field, name, _ANY_CASE_TEXT)] if lowered else [])


def parameters(values: Any, path: str, *, needed: bool) -> Errors:
    if len(values or ()) > _MOST_PARAMETERS:
        return [too_long(path, _MOST_PARAMETERS)]
    found: Errors = [invalid(path, key, "field can not be empty.") for key in values or () if not key]
    if sum(len(k.encode()) + len(v.encode()) for k, v in (values or {}).items()) > _LARGEST_PARAMETERS:
        found.append(too_long(path, _LARGEST_PARAMETERS))
    if needed and not values:
        found.append(required(path, "must contain at least one key/value pair"))
    return found


def topologies(obj: Object) -> Errors:
    """allowedTopologies of a StorageClass."""
    found: Errors = []
    seen: list[dict[str, frozenset[str]]] = []
    for index, term in enumerate(obj.get("allowedTopologies") or ()):
        path = f"allowedTopologies[{index}]"
        values: dict[str, frozenset[str]] = {}
        for position, requirement in enumerate(term.get("matchLabelExpressions") or ()):
            where = f"{path}.matchLabelExpressions[{position}]"
            key, wanted = requirement.get("key", ""), requirement.get("values") or ()
            if not wanted:
                found.append(required(f"{where}.values"))
            doubled = [i for i, value in enumerate(wanted) if value in wanted[:i]]
            found += [duplicate(f"{where}.values[{i}]", wanted[i]) for i in doubled]
            found += checks.qualified_name(f"{where}.key", key)
            if key in values:
                found.append(duplicate(f"{where}.key", key))
            values[key] = frozenset(wanted)
        # Upstream compares with as many empty terms as there are, too, so that an empty one is always a duplicate.
        if not values or values in seen:
            found.append(duplicate(f"{path}.matchLabelExpressions", ""))
        seen.append(values)
    return found


def csi_driver(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    found += checks.one_of("spec.fsGroupPolicy", spec.get("fsGroupPolicy"), policies)
    audiences: set[str] = set()
    for index, request in enumerate(spec.get("tokenRequests") or ()):
        path = f"spec.tokenRequests[{index}]"
        if request.get("audience", "") in audiences:
            found.append(duplicate(f"{path}.audience", request.get("audience", "")))
            continue
        audiences.add(request.get("audience", ""))
        seconds = request.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            text = "may not specify a duration less than 10 minutes"
            found.append(invalid(f"{path}.expirationSeconds", seconds, text))
        if seconds is not None and seconds > _LONGEST_TOKEN:
            text = "may not specify a duration larger than 2^32 seconds"
            found.append(invalid(f"{path}.expirationSeconds", seconds, text))
    modes = ("Persistent", "Ephemeral")
    for mode in spec.get("volumeLifecycleModes") or ():
        if mode not in modes:
            found.append(unsupported("spec.volumeLifecycleModes", mode, modes))
    period = spec.get("nodeAllocatableUpdatePeriodSeconds")
    if period is not None and period < 10:
        text = "must be greater than or equal to 10 seconds"
        found.append(invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, text))
    if spec.get("serviceAccountTokenInSecrets") is not None and not spec.get("tokenRequests"):
        text = "serviceAccountTokenInSecrets is not allowed when tokenRequests are not configured"
        found.append(invalid("spec.serviceAccountTokenInSecrets", spec["serviceAccountTokenInSecrets"], text))
    return found


def update_csi_driver(new: Object, old: Object) -> Errors:
    ours, theirs = new["spec"], old["spec"]
    # The misspelt path is upstream's.
    found = checks.immutable("spec.attachedRequired", ours.get("attachRequired"), theirs.get("attachRequired"))
    field = "volumeLifecycleModes"
    return found + checks.immutable(f"spec.{field}", ours.get(field), theirs.get(field))


def csi_node(obj: Object) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, driver in enumerate(obj["spec"].get("drivers") or ()):
        path = f"spec.drivers[{index}]"
        found += csi_driver_name(f"{path}.name", driver["name"])
        node = driver["nodeID"]
        if not node:
            found.append(required(f"{path}.nodeID"))
        if len(node.encode()) > 256:
            found.append(invalid(f"{path}.nodeID", node, "must be 256 characters or less"))
        found += checks.nonnegative(driver.get("allocatable") or {}, f"{path}.allocatable", "count")
        if driver["name"] in names:
            found.append(duplicate(f"{path}.name", driver["name"]))
        names.add(driver["name"])
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            found += [] if key else [required(path)]
            found += [duplicate(path, key)] if key in keys else []
            keys.add(key)
            found += checks.qualified_name(path, key)
    return found


def update_csi_node(new: Object, old: Object) -> Errors:
    """A driver that stays may only change what can be allocated."""
    before = {driver["name"]: driver for driver in old["spec"].get("drivers") or ()}
    found: Errors = []
    for driver in new["spec"].get("drivers") or ():
        theirs = before.get(driver["name"])
        if theirs is None:
            continue
        fixed = ("name", "nodeID", "topologyKeys")
        if any((driver.get(field) or None) != (theirs.get(field) or None) for field in fixed):
            shown = {"Name": driver["name"], "NodeID": driver["nodeID"], "TopologyKeys": driver.get("topologyKeys")}
            text = "field is immutable"
            found.append(invalid("spec.drivers", checks.go_struct({**shown, "Allocatable": None}), text))
    return found


def csi_storage_capacity(obj: Object) -> Errors:
    found: Errors = []
    name = obj["storageClassName"]
    found += checks.texts("storageClassName", name, subdomain_errors(name))
    found += checks.label_selector(obj.get("nodeTopology"), "nodeTopology")
    if obj.get("capacity") is not None:
        found += checks.quantity_not_negative("capacity", obj["capacity"])
    return found


def update_csi_storage_capacity(new: Object, old: Object) -> Errors:
    fields = ("nodeTopology", "storageClassName")
    return [e for field in fields for e in checks.immutable(field, new.get(field), old.get(field))]


def volume_attachment(obj: Object) -> Errors:
    spec = obj["spec"]
    source = spec["source"]
    found = csi_driver_name("spec.attacher", spec["attacher"])
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        found.append(required("spec.source", _ONE_SOURCE))
    elif volume is not None and inline is not None:
        found.append(forbidden("spec.source", _ONE_SOURCE))
    elif volume == "":
        text = "must specify non empty persistentVolumeName"
        found.append(required("spec.source.persistentVolumeName", text))
    found += checks.texts("spec.nodeName", spec["nodeName"], subdomain_errors(spec["nodeName"]))
    if volume is not None:
        found += checks.texts("spec.source.persistentVolumeName", volume, subdomain_errors(volume))
    return found


def volume_attachment_status(new: Object, old: Object) -> Errors:
    found: Errors = []
    for field in ("attachError", "detachError"):
        code = ((new.get("status") or {}).get(field) or {}).get("errorCode")
        if code is not None:
            found += checks.in_range(f"status.{field}.errorCode", code, 0, checks.MAX_INT32) if code < 0 else []
    return found


def update_volume_attachment(new: Object, old: Object) -> Errors:
    return checks.frozen("spec", new["spec"], old["spec"])


def volume_attributes_class(obj: Object) -> Errors:
    driver = obj["driverName"]
    found: Errors = checks.qualified_name("driverName", driver.lower()) if driver else [required("driverName")]
    return found + parameters(obj.get("parameters"), "parameters", needed=True)


def update_volume_attributes_class(new: Object, old: Object) -> Errors:
    found: Errors = []
    for field in ("driverName", "parameters"):
        if (new.get(field) or None) != (old.get(field) or None):
            found.append(forbidden(field, f"updates to {field} are forbidden."))
    return found
