"""Sub-resources that lead to a kubelet, a pod or a service: answered as by a server that cannot reach any of them.

Everything up to the connection is checked as on a real server: the pod, its container, its node, the node's address.
Nothing is ever dialled.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

from kopylite.apiserver.request.request import HttpRequest, Response, is_true
from kopylite.apiserver.schema.field_errors import FieldError, forbidden, go_quote, invalid, invalid_error
from kopylite.apiserver.world import Admission, Call, World
from kopylite.errors import ApiError, BadRequest, NotFound, ServiceUnavailable

Object = dict[str, Any]

# --kubelet-preferred-address-types, and the port of a node that names none.
_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_KUBELET_PORT = 10250
_HTTP_PORTS = {"": 80, "http": 80, "https": 443}
_SERVICE = "kubernetes.io/service-name"
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_INTEGERS = {"tailLines": 0, "limitBytes": 1, "sinceSeconds": 1}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_FLAGS = ("follow", "previous", "timestamps")


class PodConnections:
    """Handlers of pods/log, exec, attach, portforward and proxy, and of the proxies of nodes and services."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def log(self, call: Call) -> Response:
        """Raises Invalid, BadRequest, NotFound, and ApiError: the kubelet cannot be reached."""
        options = _log_options(call.request, call.target.name)
        pod = self._pod(call, call.target.name)
        container = _container(pod, call.request.param("container"))
        if not pod["spec"].get("nodeName"):
            return Response(204, content_type="")
        host, port = self._kubelet(pod["spec"]["nodeName"])
        path = f"containerLogs/{call.target.namespace}/{call.target.name}/{container}"
        query = f"?{urlencode(options)}" if options else ""
        raise ApiError(f'Get "https://{host}:{port}/{path}{query}": {_unreachable(host, port)}')

    async def stream(self, call: Call) -> Response:
        """exec, attach and portforward. Raises BadRequest, NotFound, and ApiError: the kubelet cannot be reached."""
        pod = self._pod(call, call.target.name)
        if call.target.subresource != "portforward":
            _container(pod, call.request.param("container"))
        node = pod["spec"].get("nodeName")
        if not node:
            raise BadRequest(f"pod {call.target.name} does not have a host assigned")
        host, port = self._kubelet(node)
        if "upgrade" not in call.request.headers.get("connection", "").lower():
            raise BadRequest("Upgrade request required")
        raise ApiError(f"error dialing backend: {_unreachable(host, port)}")

    async def pod_proxy(self, call: Call) -> Response:
        """Raises BadRequest, NotFound, ServiceUnavailable."""
        scheme, name, port = _split(call.target.name, "pod")
        pod = self._pod(call, name)
        if not port:
            ports = (container.get("ports") for container in pod["spec"]["containers"])
            port = str(next((found[0]["containerPort"] for found in ports if found), ""))
        raise _no_answer((pod.get("status") or {}).get("podIP", ""), port or _HTTP_PORTS[scheme])

    async def node_proxy(self, call: Call) -> Response:
        """Raises BadRequest, NotFound, ServiceUnavailable, and ApiError: the node has no address."""
        _, name, port = _split(call.target.name, "node")
        if self._world.lookup("", "nodes", "", name) is None:
            raise NotFound(f"nodes {go_quote(name)} not found", details={"name": name, "kind": "nodes"})
        host, kubelet_port = self._kubelet(name)
        raise _no_answer(host, port or kubelet_port)

    async def service_proxy(self, call: Call) -> Response:
        """Raises BadRequest, NotFound, ServiceUnavailable."""
        _, name, port = _split(call.target.name, "service")
        if port and self._world.lookup("", "services", call.target.namespace, name) is None:
            raise NotFound(f"services {go_quote(name)} not found", details={"name": name, "kind": "services"})
        for record in list(self._world.store.collection("endpointslices.discovery.k8s.io").records.values()):
            if record.key.startswith(f"{call.target.namespace}/") and dict(record.labels or {}).get(_SERVICE) == name:
                found = _endpoint(record.decode())
                if found:
                    raise _no_answer(*found)
        raise ServiceUnavailable(f"no endpoints available for service {go_quote(name)}")

    def _pod(self, call: Call, name: str) -> Object:
        pod = self._world.lookup("", "pods", call.target.namespace, name)
        if pod is None:
            raise NotFound(f"pods {go_quote(name)} not found", details={"name": name, "kind": "pods"})
        return pod

    def _kubelet(self, name: str) -> tuple[str, int]:
        """Where a node's kubelet would be. Raises NotFound, and ApiError: the node has no address."""
        node = self._world.lookup("", "nodes", "", name)
        if node is None:  # the resource is the pod's, as upstream has it
            raise NotFound(f"pods {go_quote(name)} not found", details={"name": name, "kind": "pods"})
        status = node.get("status") or {}
        addresses = status.get("addresses") or []
        port = ((status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}).get("Port") or _KUBELET_PORT
        for wanted in _ADDRESS_TYPES:
            for address in addresses:
                if address.get("type") == wanted and address.get("address"):
                    return address["address"], port
        known = " ".join(f"{{{a.get('type', '')} {a.get('address', '')}}}" for a in addresses)
        raise ApiError(f"no preferred addresses found; known addresses: [{known}]")


def _endpoint(piece: Object) -> tuple[str, int | str] | None:
    """An address of an EndpointSlice that is ready, with its first port."""
    ports = piece.get("ports") or []
    for endpoint in piece.get("endpoints") or []:
        if (endpoint.get("conditions") or {}).get("ready") is not False and ports and endpoint.get("addresses"):
            return endpoint["addresses"][0], ports[0].get("port") or ""
    return None


def _log_options(request: HttpRequest, name: str) -> dict[str, str]:
    """The parameters for the kubelet, in order. Raises BadRequest, Invalid."""
    numbers = {key: _integer(request.param(key)) for key in _INTEGERS if request.param(key)}
    errors: list[FieldError] = []
    both = "sinceSeconds" in numbers and request.param("sinceTime")
    for key, least in _INTEGERS.items():
        if key in numbers and numbers[key] < least and not (both and key == "sinceSeconds"):
            text = "must be greater than or equal to 0" if not least else "must be greater than 0"
            errors.append(invalid(key, numbers[key], text))
    if both:
        errors.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if request.param("stream"):
        errors.append(forbidden("stream", "may not be specified"))
    if errors:
        raise invalid_error("PodLogOptions", "", name, errors)
    since = request.param("sinceTime")
    if since and not _TIME.fullmatch(since):
        shown = go_quote(since)
        raise BadRequest(f'parsing time {shown} as "2006-01-02T15:04:05Z07:00": cannot parse {shown} as "2006"')
    flags = {key: "true" for key in _FLAGS if is_true(request.query.get(key))}
    times = {"sinceTime": since} if since else {}
    return dict(sorted({**flags, **times, **{key: str(number) for key, number in numbers.items()}}.items()))


def _integer(text: str) -> int:
    digits = text.removeprefix("-").removeprefix("+") if text[:2] not in ("-+", "+-") else ""
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(f"strconv.ParseInt: parsing {go_quote(text)}: invalid syntax")
    if len(digits) > len(str(2**63)) or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f"strconv.ParseInt: parsing {go_quote(text)}: value out of range")
    return int(text)


def _container(pod: Object, wanted: str) -> str:
    """The container that is meant. Raises BadRequest."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    names = [container["name"] for part in _CONTAINER_LISTS for container in spec.get(part) or []]
    if wanted:
        if wanted not in names:
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(names) > 1:
        listed = " ".join(names)
        raise BadRequest(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
    return str(names[0])


def _split(text: str, kind: str) -> tuple[str, str, str]:
    """Scheme, name and port of `name`, `name:port` or `scheme:name:port`. Raises BadRequest."""
    parts = text.split(":")
    if len(parts) == 1:
        return "", text, ""
    scheme, name, port = ("", *parts) if len(parts) == 2 else parts if len(parts) == 3 else ("-", "", "")
    if scheme not in _HTTP_PORTS or not name:
        raise BadRequest(f"invalid {kind} request {go_quote(text)}")
    return scheme, name, port


def _no_answer(host: str, port: int | str) -> ApiError:
    """What a proxy says of an address: that it may not go there, or that nobody answers."""
    try:
        address: Any = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if not host or (address and (address.is_loopback or address.is_unspecified or address.is_link_local)):
        return BadRequest("address not allowed")
    return ServiceUnavailable(f"error trying to reach service: {_unreachable(host, port)}")


def _unreachable(host: str, port: int | str) -> str:
    """Go's words for an address where nobody listens, or a name that stands for none."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"dial tcp: lookup {host}: no such host"
    shown = f"[{host}]" if address.version == 6 else host
    return f"dial tcp {shown}:{port}: connect: connection refused"


def handlers(world: World) -> dict[tuple[str, str, str], Callable[[Call], Awaitable[Response]]]:
    """By group, plural and sub-resource."""
    connections = PodConnections(world)
    dialled = {("", "pods", name): connections.stream for name in ("exec", "attach", "portforward")} | {
        ("", "pods", "proxy"): connections.pod_proxy,
        ("", "nodes", "proxy"): connections.node_proxy,
        ("", "services", "proxy"): connections.service_proxy,
    }
    admitted = {key: _admitted(world, handler) for key, handler in dialled.items()}
    return {("", "pods", "log"): connections.log, **admitted}


def _admitted(world: World, handler: Callable[[Call], Awaitable[Response]]) -> Callable[[Call], Awaitable[Response]]:
    """Asks who may say no to a connection, before it is known whether there is anything to connect to."""

    async def checked(call: Call) -> Response:
        if call.request.method not in ("GET", "HEAD") and "dryRun" in call.request.query:
            raise BadRequest("dryRun is not supported")
        admission = Admission(call, "CONNECT", _connect_options(call), None, dry_run=False)
        for plugin in (*world.mutating, *world.validating):
            await plugin(admission)
        return await handler(call)

    return checked


def _connect_options(call: Call) -> Object:
    """The parameters of a connection as an object: what its admission is about."""
    part, request = call.target.subresource, call.request
    options: Object = {"kind": call.resource.subresources[part].kind, "apiVersion": "v1"}
    if part == "proxy":
        rest = request.path.partition(f"/{call.target.name}/proxy")[2]
        return options | ({"path": rest} if rest else {})
    if part == "portforward":
        ports = [int(text) for text in ",".join(request.query.get("ports", ())).split(",") if text.isdecimal()]
        return options | ({"ports": ports} if ports else {})
    options |= {name: True for name in ("stdin", "stdout", "stderr", "tty") if is_true(request.query.get(name))}
    options |= {"container": name} if (name := request.param("container")) else {}
    return options | ({"command": list(words)} if (words := request.query.get("command")) else {})
