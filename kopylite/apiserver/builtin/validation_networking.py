"""Validation of ingresses, network policies, endpoint slices. Pure."""

from __future__ import annotations

import ipaddress
import re

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_containers import PROTOCOLS
from kopylite.apiserver.schema.field_errors import RawText, duplicate, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, label_value_errors, path_segment_errors, subdomain_errors

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = re.compile(rf"\*\.{_LABEL}(\.{_LABEL})*")
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    rf"regex used for validation is '\*\.{_LABEL}(\.{_LABEL})*')"
)
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_BAD_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_BAD_ENDINGS = ("/..", "/.")


def ingress(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    rules, backend = spec.get("rules") or (), spec.get("defaultBackend")
    if not rules and backend is None:
        found.append(invalid("spec", RawText("null"), "either `defaultBackend` or `rules` must be specified"))
    if backend is not None:
        found += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        host, where = rule.get("host", ""), f"spec.rules[{index}]"
        found += _host(host, f"{where}.host")
        if rule.get("http") is not None:
            found += _paths(rule["http"], f"{where}.http")
    for index, tls in enumerate(spec.get("tls") or ()):
        for position, host in enumerate(tls.get("hosts") or ()):
            path = f"spec.tls[{index}].hosts[{position}]"
            found += checks.texts(path, host, _wildcard_errors(host) if "*" in host else subdomain_errors(host))
        found += checks.subdomain(f"spec.tls[{index}].secretName", tls.get("secretName"))
    return found + checks.subdomain("spec.ingressClassName", spec.get("ingressClassName"))


def _wildcard_errors(host: str) -> list[str]:
    found = ["must be no more than 253 characters"] if len(host.encode()) > 253 else []
    return found if _WILDCARD.fullmatch(host) else [*found, _WILDCARD_TEXT]


def _host(host: str, path: str) -> Errors:
    if not host:
        return []
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return checks.texts(path, host, _wildcard_errors(host) if "*" in host else subdomain_errors(host))
    return [invalid(path, host, "must be a DNS name, not an IP address")]


def _paths(http: Object, path: str) -> Errors:
    paths = http.get("paths") or ()
    found: Errors = [] if paths else [required(f"{path}.paths")]
    for index, entry in enumerate(paths):
        where = f"{path}.paths[{index}]"
        kind, text = entry.get("pathType"), entry.get("path", "")
        if kind is None:
            found.append(required(f"{where}.pathType", "pathType must be specified"))
            continue
        if kind in ("Exact", "Prefix"):
            if not text.startswith("/"):
                found.append(invalid(f"{where}.path", text, "must be an absolute path"))
            found += _path_sequences(text, f"{where}.path") if text else []
        elif kind == "ImplementationSpecific":
            if text and not text.startswith("/"):
                found.append(invalid(f"{where}.path", text, "must be an absolute path"))
        else:
            found += checks.one_of(f"{where}.pathType", kind, _PATH_TYPES)
        found += _backend(entry["backend"], f"{where}.backend")
    return found


def _path_sequences(text: str, path: str) -> Errors:
    found = [invalid(path, text, f"must not contain '{bad}'") for bad in _BAD_SEQUENCES if bad in text]
    return found + [invalid(path, text, f"cannot end with '{bad}'") for bad in _BAD_ENDINGS if text.endswith(bad)]


def _backend(backend: Object, path: str) -> Errors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    if service is None and resource is None:
        return [invalid(path, "", "resource or service backend is required")]
    if service is None:
        return []
    name, port = service["name"], service.get("port") or {}
    found: Errors = []
    if not name:
        found.append(required(f"{path}.service.name"))
    else:
        found += checks.texts(f"{path}.service.name", name, label_errors(name))
    if port.get("name") and port.get("number"):
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("name"):
        found += checks.texts(f"{path}.service.port.name", port["name"], checks.port_name_errors(port["name"]))
    elif port.get("number"):
        found += checks.port_number(f"{path}.service.port.number", port["number"])
    else:
        found.append(required(path, "port name or number is required"))
    return found


def ingress_class(obj: Object) -> Errors:
    controller, parameters = obj["spec"].get("controller", ""), obj["spec"].get("parameters")
    found = [] if not controller else checks.domain_path("spec.controller", controller)
    if parameters is not None:
        found += _class_parameters(parameters, "spec.parameters")
    return found


def controller_named(obj: Object) -> Errors:
    return [] if obj["spec"].get("controller") else [required("spec.controller")]


def _class_parameters(parameters: Object, path: str) -> Errors:
    found = checks.subdomain(f"{path}.apiGroup", parameters.get("apiGroup"))
    for field in ("kind", "name"):
        value = parameters[field]
        where = f"{path}.{field}"
        found += checks.texts(where, value, path_segment_errors(value)) if value else [required(where)]
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    where = f"{path}.namespace"
    if namespace:
        found += checks.texts(where, namespace, label_errors(namespace))
    if scope is None:
        found.append(required(f"{path}.scope"))
    elif scope not in ("Cluster", "Namespace"):
        found.append(unsupported(f"{path}.scope", scope, ("Cluster", "Namespace")))
    elif scope == "Namespace" and not namespace:
        found.append(required(where, "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Cluster" and namespace is not None:
        found.append(forbidden(where, "`parameters.scope` is set to 'Cluster'"))
    return found


def update_ingress_class(new: Object, old: Object) -> Errors:
    return checks.immutable("spec.controller", new["spec"].get("controller"), old["spec"].get("controller"))


def network_policy(obj: Object) -> Errors:
    spec = obj["spec"]
    found = checks.label_selector(spec.get("podSelector"), "spec.podSelector")
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            where = f"spec.{direction}[{index}]"
            for position, port in enumerate(rule.get("ports") or ()):
                found += _policy_port(port, f"{where}.ports[{position}]")
            for position, peer in enumerate(rule.get(peers) or ()):
                found += _peer(peer, f"{where}.{peers}[{position}]")
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        found += checks.one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))
    return found


def _policy_port(port: Object, path: str) -> Errors:
    found = checks.one_of(f"{path}.protocol", port.get("protocol"), ("TCP", "UDP", "SCTP"))
    number = port.get("port")
    if number is not None:
        found += checks.port_number_or_name(f"{path}.port", number)
    end = port.get("endPort")
    if end is not None:
        if not isinstance(number, int):
            text = "may not be specified when `port` is " + ("not specified" if number is None else "non-numeric")
            found.append(invalid(f"{path}.endPort", end, text))
        elif end < number:
            found.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))
    return found


def _peer(peer: Object, path: str) -> Errors:
    found: Errors = []
    given = [field for field in ("podSelector", "namespaceSelector", "ipBlock") if field in peer]
    found += checks.label_selector(peer.get("podSelector"), f"{path}.podSelector")
    found += checks.label_selector(peer.get("namespaceSelector"), f"{path}.namespaceSelector")
    block = peer.get("ipBlock")
    if block is not None:
        wrong = (
            checks.cidr(f"{path}.ipBlock.cidr", block["cidr"]) if block["cidr"] else [required(f"{path}.ipBlock.cidr")]
        )
        found += wrong
        for index, inner in enumerate(block.get("except") or () if not wrong else ()):
            where = f"{path}.ipBlock.except[{index}]"
            bad = checks.cidr(where, inner)
            if not bad and not _inside(inner, block["cidr"]):
                bad = [invalid(where, inner, "must be a strict subset of `cidr`")]
            found += bad
    if not given:
        found.append(required(path, "must specify a peer"))
    elif block is not None and len(given) > 1:
        found.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return found


def _inside(inner: str, outer: str) -> bool:
    one, other = ipaddress.ip_network(inner), ipaddress.ip_network(outer)
    if isinstance(one, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return one != other and one.subnet_of(other)
    if isinstance(one, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
        return one != other and one.subnet_of(other)
    return False


def endpoint_slice(obj: Object) -> Errors:
    kind = obj.get("addressType")
    found: Errors = []
    names: set[str] = set()
    for index, port in enumerate(obj.get("ports") or ()):
        name = port.get("name") or ""
        found += checks.optional(label_errors, f"ports[{index}].name", name)
        if name in names:
            found.append(duplicate(f"ports[{index}].name", name))
        names.add(name)
        found += checks.one_of(f"ports[{index}].protocol", port.get("protocol"), PROTOCOLS, needed=True)
        if port.get("appProtocol"):
            found += checks.qualified_name(f"ports[{index}].appProtocol", port["appProtocol"])
    for index, endpoint in enumerate(obj.get("endpoints") or ()):
        addresses = endpoint.get("addresses") or ()
        if not addresses:
            found.append(required(f"endpoints[{index}].addresses"))
        for position, address in enumerate(addresses):
            where = f"endpoints[{index}].addresses[{position}]"
            if kind in ("IPv4", "IPv6"):
                found += checks.ip_address(where, address) or _family(where, address, kind)
            elif kind == "FQDN":
                found += checks.texts(where, address, subdomain_errors(address))
        found += _endpoint(endpoint, f"endpoints[{index}]")
    return [*checks.one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"), needed=True), *found]


def _endpoint(endpoint: Object, path: str) -> Errors:
    found = checks.optional(label_errors, f"{path}.hostname", endpoint.get("hostname"))
    found += checks.subdomain(f"{path}.nodeName", endpoint.get("nodeName"))
    hints = endpoint.get("hints") or {}
    for field, check in (("forZones", label_value_errors), ("forNodes", subdomain_errors)):
        for index, hint in enumerate(hints.get(field) or ()):
            where, name = f"{path}.hints.{field}[{index}].name", hint.get("name", "")
            found += checks.texts(where, name, check(name))
    return found


def _family(path: str, address: str, kind: str) -> Errors:
    if ipaddress.ip_address(address).version == int(kind[-1]):
        return []
    return [invalid(path, address, f"must be an {kind} address")]


def update_endpoint_slice(new: Object, old: Object) -> Errors:
    return checks.frozen("addressType", new.get("addressType"), old.get("addressType"))


def ip_address_name(name: str, prefix: bool) -> list[str]:
    """IPAddresses are named by themselves, in their canonical form."""
    try:
        canonical = str(ipaddress.ip_address(name))
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if canonical == name else [f"must be in canonical form ({canonical!r})".replace("'", '"')]


def ip_address(obj: Object) -> Errors:
    parent, path = obj["spec"].get("parentRef"), "spec.parentRef"
    if parent is None:
        return [required(path)]
    found = checks.subdomain(f"{path}.group", parent.get("group"))
    for field, needed in (("resource", True), ("name", True), ("namespace", False)):
        value = parent.get(field, "")
        if value:
            found += checks.texts(f"{path}.{field}", value, path_segment_errors(value))
        elif needed:
            found.append(required(f"{path}.{field}"))
    return found


def update_ip_address(new: Object, old: Object) -> Errors:
    return checks.frozen("spec.parentRef", new["spec"].get("parentRef"), old["spec"].get("parentRef"))


def service_cidr(obj: Object) -> Errors:
    ranges = obj["spec"].get("cidrs") or []
    if not ranges:
        return [required("spec.cidrs", "at least one CIDR required")]
    found: Errors = []
    if len(ranges) > 2:
        text = "may only hold up to 2 values"
        found.append(invalid("spec.cidrs", ranges, text))
    for index, text in enumerate(ranges):
        found += checks.cidr(f"spec.cidrs[{index}]", text)
    if len(ranges) == 2 and not found and len({ipaddress.ip_network(text).version for text in ranges}) == 1:
        text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96"
        found.append(invalid("spec.cidrs", ranges, text))
    return found


def update_service_cidr(new: Object, old: Object) -> Errors:
    """A second family may be added; nothing else changes."""
    ours, theirs = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    if len(ours) < len(theirs):
        return [invalid("spec.cidrs", ours or RawText("null"), "field is immutable")]
    pairs = enumerate(zip(ours, theirs, strict=False))
    return [invalid(f"spec.cidrs[{i}]", one, "field is immutable") for i, (one, other) in pairs if one != other]
