"""Validation of the kinds by which pods ask for devices: claims, their templates, classes, taint rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, too_long, too_many
from kopylite.apiserver.schema.names import label_errors, label_value_errors, subdomain_errors

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
_MODES = ("All", "ExactCount")
_MOST_CLAIMED, _MOST_ALTERNATIVES = 32, 8
_LONGEST_PARAMETERS, _LONGEST_EXPRESSION, _LONGEST_ID = 10 * 1024, 10 * 1024, 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
    "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
    "'[A-Za-z_][A-Za-z0-9_]*')"
)
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_NO_REQUEST = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_NO_ADMIN = (
    "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
)
Each = Callable[[Any, str], Errors]


def listed(values: Collection[Any] | None, path: str, most: int, check: Each) -> Errors:
    """The elements of a list, unless there are too many."""
    if len(values or ()) > most:
        return [too_many(path, len(values or ()), most)]
    return [error for index, value in enumerate(values or ()) for error in check(value, f"{path}[{index}]")]


def distinct(keys: Collection[str], path: str) -> Errors:
    found: Errors = []
    seen: set[str] = set()
    for index, key in enumerate(keys):
        found += [duplicate(f"{path}[{index}]", key)] if key in seen else []
        seen.add(key)
    return found


def device_name(field: str, name: str) -> Errors:
    return checks.texts(field, name, label_errors(name))


def pool_name(field: str, name: str) -> Errors:
    """Subdomains with slashes between them."""
    if not name:
        return [required(field)]
    found: Errors = [too_long(field, 253)] if len(name.encode()) > 253 else []
    return found + [e for part in name.split("/") for e in checks.texts(field, part, subdomain_errors(part))]


def attribute_name(field: str, name: str) -> Errors:
    """An identifier, or `domain/identifier`."""
    domain, slash, own = name.rpartition("/")
    if not slash:
        return _identifier(field, name)
    if "/" in domain:
        return []
    found = checks.csi_driver_name(field, domain) if domain else [invalid(field, "", "the domain must not be empty")]
    return found + (_identifier(field, own) if own else [invalid(field, "", "the name must not be empty")])


def _identifier(field: str, name: str) -> Errors:
    found: Errors = [too_long(field, _LONGEST_ID)] if len(name.encode()) > _LONGEST_ID else []
    return found if _IDENTIFIER.fullmatch(name) else [*found, invalid(field, name, _IDENTIFIER_TEXT)]


def _full_attribute(field: str, name: str) -> Errors:
    if "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        return [invalid(field, name, text)]
    return attribute_name(field, name)


def device_class(obj: Object) -> Errors:
    spec = obj["spec"]
    found = listed(spec.get("selectors"), "spec.selectors", _MOST_CLAIMED, _selector)
    found += listed(spec.get("config"), "spec.config", _MOST_CLAIMED, _configuration)
    name = spec.get("extendedResourceName")
    return found if name is None else found + _extended_resource("spec.extendedResourceName", name)


def _extended_resource(field: str, name: str) -> Errors:
    if "/" not in name:
        text = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        return [invalid(field, name, text)]
    found = checks.qualified_name(field, name)
    if not found and ("kubernetes.io/" in name or name.startswith("requests.")):
        found.append(invalid(field, name, "must be a valid extended resource name"))
    return found


def _selector(selector: Object, path: str) -> Errors:
    if selector.get("cel") is None:
        return [required(f"{path}.cel")]
    return _expression(selector["cel"].get("expression", ""), f"{path}.cel.expression")


def _expression(source: str, path: str) -> Errors:
    if len(source.encode()) > _LONGEST_EXPRESSION:
        return [too_long(path, _LONGEST_EXPRESSION)]
    # CEL is loaded by those who use it, and nobody else waits for it.
    from kopylite.apiserver.schema.cel.program import CompileProblem, Program
    from kopylite.apiserver.schema.cel.shapes import DYN

    try:
        program = Program(source, {"device": DYN})
    except CompileProblem as problem:
        return [invalid(path, source, f"compilation failed: {problem}")]
    if program.shape.kind not in ("bool", DYN.kind):
        return [invalid(path, source, "must evaluate to bool or the unknown type, not " + program.shape.kind)]
    return []


def _configuration(config: Object, path: str) -> Errors:
    opaque, where = config.get("opaque"), f"{path}.opaque"
    if opaque is None:
        return [required(where)]
    found = checks.csi_driver_name(f"{where}.driver", opaque.get("driver", ""))
    parameters = opaque.get("parameters")
    if parameters is None:
        return [*found, required(f"{where}.parameters")]
    if not isinstance(parameters, dict):
        return [*found, invalid(f"{where}.parameters", "<value omitted>", "must be a valid JSON object")]
    return found


def claim(obj: Object) -> Errors:
    return _devices(obj["spec"].get("devices") or {}, "spec.devices")


def claim_template(obj: Object) -> Errors:
    spec = obj["spec"]
    found = checks.template_metadata(spec.get("metadata") or {}, "spec.metadata")
    return found + _devices((spec.get("spec") or {}).get("devices") or {}, "spec.spec.devices")


def _devices(devices: Object, path: str) -> Errors:
    requests = devices.get("requests") or ()
    names = _names(requests)
    found = listed(requests, f"{path}.requests", _MOST_CLAIMED, _request)
    found += distinct([request.get("name", "") for request in requests], f"{path}.requests")
    found += listed(
        devices.get("constraints"), f"{path}.constraints", _MOST_CLAIMED, lambda c, where: _constraint(c, where, names)
    )
    return found + listed(
        devices.get("config"),
        f"{path}.config",
        _MOST_CLAIMED,
        lambda c, where: _references(c, where, names) + _configuration(c, where),
    )


def _names(requests: Collection[Object]) -> Mapping[str, frozenset[str]]:
    """The sub-requests of each request."""
    return {
        request.get("name", ""): frozenset(one.get("name", "") for one in request.get("firstAvailable") or ())
        for request in requests
    }


def _references(holder: Object, path: str, names: Mapping[str, frozenset[str]]) -> Errors:
    requests, where = holder.get("requests") or (), f"{path}.requests"
    found = listed(requests, where, _MOST_CLAIMED, lambda name, field: request_reference(name, field, names))
    return found + distinct(requests, where)


def request_reference(name: str, field: str, names: Mapping[str, frozenset[str]]) -> Errors:
    parts = name.split("/")
    if len(parts) > 2:
        return [invalid(field, name, _NO_REQUEST)]
    found = [error for part in parts for error in device_name(field, part)]
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        found.append(invalid(field, name, _NO_REQUEST))
    return found


def _constraint(constraint: Object, path: str, names: Mapping[str, frozenset[str]]) -> Errors:
    found = _references(constraint, path, names)
    given = [field for field in ("matchAttribute", "distinctAttribute") if constraint.get(field) is not None]
    if not given:
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        return [*found, required(path, text)]
    return found + [error for field in given for error in _full_attribute(f"{path}.{field}", constraint[field])]


def _request(request: Object, path: str) -> Errors:
    found = device_name(f"{path}.name", request.get("name", ""))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is None and not alternatives:
        found.append(required(path, _ONE_KIND))
    if exactly is not None and alternatives:
        found.append(invalid(path, None, f"{_ONE_KIND}, but multiple fields are set"))
        found += _plainly(exactly, f"{path}.exactly")
        return found + listed(alternatives, f"{path}.firstAvailable", _MOST_ALTERNATIVES, _plainly)
    if exactly is not None:
        found += _exactly(exactly, f"{path}.exactly")
    where = f"{path}.firstAvailable"
    found += listed(alternatives, where, _MOST_ALTERNATIVES, _alternative)
    return found + distinct([one.get("name", "") for one in alternatives], where)


def _alternative(request: Object, path: str) -> Errors:
    return device_name(f"{path}.name", request.get("name", "")) + _exactly(request, path)


def _exactly(request: Object, path: str) -> Errors:
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    found = listed(request.get("selectors"), f"{path}.selectors", _MOST_CLAIMED, _selector)
    if mode == "All" and count:
        text = "must not be specified when allocationMode is 'All'"
        found.append(invalid(f"{path}.count", count, text))
    elif mode == "ExactCount" and count <= 0:
        found.append(invalid(f"{path}.count", count, "must be greater than zero"))
    return found + _plainly(request, path)


def _plainly(request: Object, path: str) -> Errors:
    """What the server's types alone say of a request."""
    name = request.get("deviceClassName", "")
    found: Errors = [] if name else [required(f"{path}.deviceClassName")]
    found += checks.subdomain(f"{path}.deviceClassName", name)
    found += checks.one_of(f"{path}.allocationMode", request.get("allocationMode", ""), _MODES)
    return found + listed(request.get("tolerations"), f"{path}.tolerations", 16, _toleration)


def _toleration(toleration: Object, path: str) -> Errors:
    found: Errors = []
    if toleration.get("key"):
        found += checks.qualified_name(f"{path}.key", toleration["key"])
    operator, value = toleration.get("operator", ""), toleration.get("value", "")
    found += checks.one_of(f"{path}.operator", operator, ("Equal", "Exists"), needed=True)
    if operator == "Exists" and value:
        found.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    if operator == "Equal":
        found += checks.texts(f"{path}.value", value, label_value_errors(value))
    return found + checks.one_of(f"{path}.effect", toleration.get("effect"), TAINT_EFFECTS)


def _admin_requests(devices: Object, path: str) -> Errors:
    found: Errors = []
    for index, request in enumerate(devices.get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            found.append(forbidden(f"{path}.requests[{index}].adminAccess", _NO_ADMIN))
        for position, one in enumerate(request.get("firstAvailable") or ()):
            if one.get("adminAccess"):
                where = f"{path}.requests[{index}].firstAvailable[{position}].adminAccess"
                found.append(forbidden(where, _NO_ADMIN))
    return found


def admin_access(*path: str) -> Callable[[Object, StrategyContext], Errors]:
    """What only claims in namespaces of administrators may ask for. Args: path: where the claim's spec is."""

    def check(obj: Object, context: StrategyContext) -> Errors:
        spec = obj
        for name in path:
            spec = spec.get(name) or {}
        found = _admin_requests(spec.get("devices") or {}, "spec.devices")
        if not found:
            return []
        name = obj["metadata"].get("namespace", "")
        mine = [n["metadata"] for n in context.objects("namespaces") if n["metadata"]["name"] == name]
        allowed = any((one.get("labels") or {}).get("resource.kubernetes.io/admin-access") == "true" for one in mine)
        return [] if allowed else found

    return check


def update_claim(new: Object, old: Object) -> Errors:
    return checks.frozen("spec", new["spec"], old["spec"])


def update_claim_template(new: Object, old: Object) -> Errors:
    return checks.immutable("spec", new["spec"], old["spec"])


def taint(one: Object, path: str) -> Errors:
    found = checks.qualified_name(f"{path}.key", one.get("key", ""))
    if one.get("value"):
        found += checks.texts(f"{path}.value", one["value"], label_value_errors(one["value"]))
    return found + checks.one_of(f"{path}.effect", one.get("effect"), TAINT_EFFECTS, needed=True)


def taint_rule(obj: Object) -> Errors:
    selector, path = obj["spec"].get("deviceSelector") or {}, "spec.deviceSelector"
    found: Errors = []
    for field, check in (("driver", checks.csi_driver_name), ("pool", pool_name), ("device", device_name)):
        if selector.get(field) is not None:
            found += check(f"{path}.{field}", selector[field])
    return found + taint(obj["spec"].get("taint") or {}, "spec.taint")
