"""Faults: what can go wrong between an API server and its clients, for the requests that a test chooses.

    cluster.faults.lose_response(verb="create", resource="deployments")
    cluster.faults.answer(429, retry_after=1, times=3)
    cluster.faults.delay_events(5, resource="deployments")

Each method begins a fault and returns it; it ends when it has happened `times` times, or with `remove()`. None is on by
default. What a fault does depends on the requests alone, so the same requests meet the same faults.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypedDict, Unpack

import anyio

from kopylite.clock import Clock
from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.apiserver.request.request import HttpRequest, Response
    from kopylite.apiserver.world import Call, Hooks, World

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
READS = frozenset({"get", "list", "watch"})


class Where(TypedDict, total=False):
    """Which requests a fault concerns; what is left out does not matter.

    Attributes:
        verb: get, list, watch, create, update, patch, delete or deletecollection.
        resource: the plural, alone or with its group ("deployments", "deployments.apps").
        namespace, name: of the object.
        subresource: "status", say; "" for the object itself.
        agent: how the client's User-Agent begins; an App's is "NAME/kopylite".
        nth: the first of these requests (or events) that it happens to, from 1, which is the default.
        times: to how many of them; None: to all from there on. 1 is the default.
        only: says whether a request is one of them.
    """

    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    agent: str
    nth: int
    times: int | None
    only: Callable[[HttpRequest], bool]


_NAMES = frozenset(Where.__annotations__)


@dataclass(slots=True, eq=False)
class Fault:
    """One fault that was begun.

    Attributes:
        seen: requests, or events, that it concerned.
        hits: how often it has happened.
    """

    where: Where
    seen: int = 0
    hits: int = 0
    removed: bool = False

    def remove(self) -> None:
        """End it. Harmless when repeated."""
        self.removed = True

    def strikes(self, request: HttpRequest) -> bool:
        """Whether it happens to this request; counts it."""
        if self.removed or not concerns(self.where, request):
            return False
        self.seen += 1
        times, nth = self.where.get("times", 1), self.where.get("nth", 1)
        if self.seen < nth or (times is not None and self.hits >= times):
            return False
        self.hits += 1
        return True


def concerns(where: Where, request: HttpRequest) -> bool:
    """Whether a request is one of these."""
    from kopylite.apiserver.request.request import parse_target

    target = parse_target(request)
    full = f"{target.resource}.{target.group}" if target.group else target.resource
    named = where.get("resource", full)
    return (
        bool(target.resource)
        and where.get("verb", target.verb) == target.verb
        and named in (full, target.resource)
        and where.get("namespace", target.namespace) == target.namespace
        and where.get("name", target.name) == target.name
        and where.get("subresource", target.subresource) == target.subresource
        and request.agent.startswith(where.get("agent", ""))
        and ("only" not in where or where["only"](request))
    )


class Past(Protocol):
    """What a server held at one moment."""

    async def handle(self, request: HttpRequest) -> Response:
        """Answer a read. Watches bring nothing."""

    def close(self) -> None:
        """It is not asked any more."""


class _StoredPast:
    """That of an embedded server."""

    def __init__(self, world: World) -> None:
        from kopylite.apiserver.access.authorization import AllowAll
        from kopylite.apiserver.core import Core
        from kopylite.apiserver.world import Hooks

        self._store = world.store.fork()
        self._core = Core(replace(world, store=self._store, hooks=Hooks()), AllowAll())

    async def handle(self, request: HttpRequest) -> Response:
        return await self._core.handle(request)

    def close(self) -> None:
        self._store.close()


def past_of(world: World) -> Past:
    """What a world holds now."""
    return _StoredPast(world)


class Faults:
    """The faults of one server. Methods may be called from any thread.

    Args:
        hooks: of the server.
        clock: of the server.
        past: keeps what the server holds now, for reads.
        compact: forgets the history; returns the newest version.
    """

    def __init__(self, hooks: Hooks, clock: Clock, past: Callable[[], Past], compact: Callable[[], int]) -> None:
        self._hooks = hooks
        self._clock = clock
        self.past = past
        self.compact = compact

    def before_write(self, do: Callable[[HttpRequest], Awaitable[None]], **where: Unpack[Where]) -> Fault:
        """Do something when a write has arrived and nothing of it has happened: write to the same object, say."""
        fault = _fault(where)

        async def hook(request: HttpRequest) -> Response | None:
            if _verb(request) in WRITES and fault.strikes(request):
                await do(request)
            return None

        self._hooks.before.append(hook)
        return fault

    def after_write(self, do: Callable[[HttpRequest, Response], Awaitable[None]], **where: Unpack[Where]) -> Fault:
        """Do something when a write has happened, and nobody has heard of it yet. It may raise Disconnect."""
        fault = _fault(where)

        async def hook(request: HttpRequest, response: Response) -> Response:
            if _verb(request) in WRITES and response.status < 300 and fault.strikes(request):
                await do(request, response)
            return response

        self._hooks.after.append(hook)
        return fault

    def lose_response(self, **where: Unpack[Where]) -> Fault:
        """A write happens, and the connection is cut before the answer: the client cannot know."""
        from kopylite.apiserver.world import Disconnect

        async def cut(request: HttpRequest, response: Response) -> None:
            raise Disconnect

        return self.after_write(cut, **where)

    def answer(self, status: int, *, retry_after: int | None = None, **where: Unpack[Where]) -> Fault:
        """Requests, reads too, are refused with a status, and nothing happens.

        Args:
            status: an HTTP status from 400 on.
            retry_after: seconds, in the header of that name; None: there is none.

        Raises:
            UsageError: the status is no error's.
        """
        if not 400 <= status < 600:
            raise UsageError(f"faults.answer: {status} is no error; 429, 500 or 503, say")
        fault = _fault(where)

        async def hook(request: HttpRequest) -> Response | None:
            return refusal(status, retry_after) if fault.strikes(request) else None

        self._hooks.before.append(hook)
        return fault

    def delay_events(self, seconds: float, **where: Unpack[Where]) -> Fault:
        """Watches lag: from an event on, a stream stands still for so long, once; then all comes, in its order.

        `nth` and `times` count the streams' events; with `times=None` each event is late by so much.
        """
        fault = _fault(where)

        async def hook(call: Call, event: bytes) -> bytes | None:
            if fault.strikes(call.request):
                await self._clock.sleep(seconds)
            return event

        self._hooks.watch.append(hook)
        return fault

    def cut_watch(self, *, abrupt: bool = False, **where: Unpack[Where]) -> Fault:
        """Streams end instead of bringing an event: cleanly, or with the connection cut."""
        from kopylite.apiserver.world import Disconnect

        fault = _fault(where)

        async def hook(call: Call, event: bytes) -> bytes | None:
            if not fault.strikes(call.request):
                return event
            if abrupt:
                raise Disconnect
            return None

        self._hooks.watch.append(hook)
        return fault

    def repeat_events(self, **where: Unpack[Where]) -> Fault:
        """Streams bring an event twice."""
        fault = _fault(where)

        async def hook(call: Call, event: bytes) -> bytes | None:
            return event * 2 if fault.strikes(call.request) else event

        self._hooks.watch.append(hook)
        return fault

    def serve_stale(self, seconds: float, *, past: Past | None = None, **where: Unpack[Where]) -> Fault:
        """Reads, watches too, show the state of this moment for so long, as a server that lags behind does.

        `times` is None unless it is given: all reads are concerned.

        Args:
            past: another moment than this one; see `past`.
        """
        then = past or self.past()
        until = self._clock.monotonic() + seconds
        fault = _fault({"times": None, **where})

        async def hook(request: HttpRequest) -> Response | None:
            if self._clock.monotonic() >= until:
                fault.remove()
                then.close()
                return None
            if _verb(request) not in READS or not fault.strikes(request):
                return None
            response = await then.handle(request)
            if response.stream is not None:
                response.stream = self._until(response.stream, until)
            return response

        self._hooks.before.append(hook)
        return fault

    async def _until(self, stream: AsyncGenerator[bytes, None], until: float) -> AsyncGenerator[bytes, None]:
        """A stream that ends at a moment."""
        async with aclosing(stream):
            while (left := until - self._clock.monotonic()) > 0:
                chunk = b""
                with anyio.move_on_after(left):
                    try:
                        chunk = await anext(stream)
                    except StopAsyncIteration:
                        return
                if chunk:
                    yield chunk


def _fault(where: Where) -> Fault:
    if unknown := sorted(where.keys() - _NAMES):
        raise UsageError(f"faults: there is no {unknown[0]!r}; requests are chosen by {', '.join(sorted(_NAMES))}")
    return Fault(where)


def _verb(request: HttpRequest) -> str:
    from kopylite.apiserver.request.request import parse_target

    return parse_target(request).verb


def refusal(status: int, retry_after: int | None = None) -> Response:
    """An error answer as a server gives it."""
    from kopylite.apiserver.request.request import Response

    reasons = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "a fault of the test",
        "reason": reasons.get(status, HTTPStatus(status).phrase.replace(" ", "")),
        "code": status,
    }
    headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
    return Response(status, json.dumps(body).encode(), "application/json", headers)
