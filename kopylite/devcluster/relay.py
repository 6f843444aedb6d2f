"""Relay: passes requests on to an API server elsewhere, with hooks around each: where faults come in.

What the embedded server does at its hooks, a Relay does in front of a real server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

import anyio

from kopylite.apiserver.request.request import HttpRequest, Response, Target, is_true, parse_target
from kopylite.apiserver.world import Disconnect, Hooks
from kopylite.client import ApiRequest, ApiStream
from kopylite.client.transport import Transport
from kopylite.devcluster.faults import WRITES, refusal
from kopylite.errors import NotFound, StreamBroken, TransportError

if TYPE_CHECKING:
    from kopylite.apiserver.world import Call

JSON = "application/json"
# Longer than an API server works on any request.
ANSWER_SECONDS = 70.0
_PASSED_ON = ("Retry-After", "Warning", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid")
_NAMES_WRITER = frozenset({"create", "update", "patch"})


@dataclass(frozen=True, slots=True)
class RelayedResource:
    """What hooks are told of a resource."""

    plural: str


@dataclass(frozen=True, slots=True)
class RelayedCall:
    """What hooks of watches get for a Call."""

    request: HttpRequest
    target: Target
    resource: RelayedResource


class Relay:
    """Answers as the other server does, with the rights of the transport.

    Answers are JSON: clients that would rather have protobuf get it, too.

    Args:
        transport: to the other server.
        hooks: `before`, `after` and `watch` are called.

    Attributes:
        newest: the newest resourceVersion that an answer has shown.
    """

    def __init__(self, transport: Transport, hooks: Hooks) -> None:
        self.hooks = hooks
        self.newest = 0
        self._transport = transport
        self._forgotten = 0

    async def handle(self, request: HttpRequest) -> Response:
        """Answer a request. Raises Disconnect: a hook wants it, or the other server was not reached."""
        for before in self.hooks.before:
            if (response := await before(request)) is not None:
                break
        else:
            response = await self.pass_on(request)
        for after in self.hooks.after:
            response = await after(request, response)
        return response

    def compact(self) -> int:
        """Watches from before what was shown last get 410 Expired, as after a compaction. Returns the newest."""
        self._forgotten = self.newest
        return self.newest

    async def pass_on(self, request: HttpRequest) -> Response:
        """The other server's answer, past all hooks but those of watches. Raises Disconnect."""
        target = parse_target(request)
        if target.verb == "watch" and self._is_forgotten(request):
            return refusal(410)
        wire = _wire(request, target)
        try:
            if target.verb == "watch":
                return await self._watch(request, target, wire)
            answer = await self._transport.request(wire, timeout=ANSWER_SECONDS)
        except TransportError:
            raise Disconnect from None
        if target.resource:
            self._note(answer.body)
        return _response(answer.status, answer.headers, answer.body)

    def _is_forgotten(self, request: HttpRequest) -> bool:
        version = request.param("resourceVersion")
        return version.isdecimal() and 0 < int(version) < self._forgotten

    def _note(self, body: bytes) -> None:
        """Remember the version of an object, a list or an event."""
        try:
            found = json.loads(body)
            found = found.get("object", found)
            self.newest = max(self.newest, int(found["metadata"].get("resourceVersion") or 0))
        except (ValueError, KeyError, TypeError, AttributeError):
            pass  # a Status, or no document at all

    async def _watch(self, request: HttpRequest, target: Target, wire: ApiRequest) -> Response:
        async with AsyncExitStack() as stack:
            stream = await stack.enter_async_context(self._transport.stream(wire))
            if stream.status != 200:
                return _response(stream.status, stream.headers, await stream.read())
            call = RelayedCall(request, target, RelayedResource(target.resource))
            response = _response(200, stream.headers, b"")
            response.stream = self._events(call, stream, stack.pop_all())
        return response

    async def _events(self, call: RelayedCall, stream: ApiStream, stack: AsyncExitStack) -> AsyncGenerator[bytes, None]:
        kept: list[bytes] = []
        async with stack:
            try:
                async for chunk in stream.chunks():
                    *lines, rest = chunk.split(b"\n")
                    for line in lines:
                        event = await self._shown(call, b"".join((*kept, line, b"\n")))
                        kept.clear()
                        if event is None:
                            return
                        if event:
                            yield event
                    kept.append(rest)
            except StreamBroken:
                raise Disconnect from None

    async def _shown(self, call: RelayedCall, event: bytes) -> bytes | None:
        """What hooks make of an event; None: the end of the stream."""
        self._note(event)
        for hook in self.hooks.watch:
            shown = await hook(cast("Call", call), event)
            if shown is None:
                return None
            event = shown
        return event


class RelayPast:
    """What a server held when a Relay last heard of it; as long as the server remembers that, which is 5 minutes."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._version = str(relay.newest)

    async def handle(self, request: HttpRequest) -> Response:
        target = parse_target(request)
        if target.verb == "watch":
            if is_true(request.query.get("sendInitialEvents")):  # that would be the present state
                return refusal(422)
            return Response(stream=_silence())
        if target.subresource or not target.resource or self._version == "0":
            return await self._relay.pass_on(request)
        query = {key: value for key, value in request.query.items() if key in ("labelSelector", "fieldSelector")}
        query |= {"resourceVersion": [self._version], "resourceVersionMatch": ["Exact"]}
        path = request.path
        if target.verb == "get":
            path = path.removesuffix(f"/{target.name}")
            query["fieldSelector"] = [f"metadata.name={target.name}"]
        answer = await self._relay.pass_on(HttpRequest("GET", path, query, {"accept": JSON}, user=request.user))
        return _one_of(answer, target) if target.verb == "get" and answer.status == 200 else answer

    def close(self) -> None:
        """Nothing is kept."""


async def _silence() -> AsyncGenerator[bytes, None]:
    await anyio.sleep_forever()
    yield b""


def _one_of(answer: Response, target: Target) -> Response:
    """The answer to a GET, from that to the list of the one object."""
    found = json.loads(answer.body)
    if not found.get("items"):
        details = {"name": target.name, "group": target.group, "kind": target.resource}
        missing = NotFound(f'{target.resource} "{target.name}" not found', details=details)
        return Response(404, json.dumps(missing.to_status()).encode())
    kind = {"apiVersion": found["apiVersion"], "kind": found["kind"].removesuffix("List")}
    return Response(200, json.dumps({**kind, **found["items"][0]}).encode())


def _wire(request: HttpRequest, target: Target) -> ApiRequest:
    query: dict[str, Any] = dict(request.query)
    if target.verb in _NAMES_WRITER and "fieldManager" not in query:
        # The server would take the name from the user agent, which is the relay's.
        query["fieldManager"] = [request.agent.partition("/")[0] or "unknown"]
    encoded = urlencode(query, doseq=True)
    path = quote(request.path, safe="/:@~!$&'()*+,;=")
    accept = request.headers.get("accept", JSON)
    return ApiRequest(
        request.method,
        f"{path}?{encoded}" if encoded else path,
        body=request.body or None if target.verb in WRITES or request.method != "GET" else None,
        content_type=request.headers.get("content-type"),
        accept=JSON if "protobuf" in accept or "cbor" in accept else accept,
    )


def _response(status: int, headers: Mapping[str, str], body: bytes) -> Response:
    passed = {name: headers[name] for name in _PASSED_ON if name in headers}
    return Response(status, body, headers.get("Content-Type", JSON), passed)
