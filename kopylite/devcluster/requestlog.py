"""RequestLog: what an embedded server was asked and what it answered, as a test wants to see it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kopylite.clock import Clock

if TYPE_CHECKING:
    from kopylite.apiserver.request.request import HttpRequest, Response

WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# The newest are kept; a test that looks at its requests has few.
KEPT_REQUESTS = 10_000


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request and its answer. Of a watch, the answer is its beginning.

    Attributes:
        time: monotonic seconds of the server's clock.
        user: who asked; the server's own controllers are system:serviceaccount:kube-system:….
        agent: the User-Agent.
        verb: get, list, watch, create, update, patch, delete, deletecollection; else the HTTP method, lower case.
        resource: the plural; "" for what is no resource.
        query: the raw parameters, each with all its values.
        body: as it was sent; holds whatever secrets the client wrote.
        status: the HTTP status.
    """

    time: float
    user: str
    agent: str
    verb: str
    path: str
    group: str
    resource: str
    namespace: str
    name: str
    subresource: str
    query: dict[str, list[str]]
    body: bytes
    status: int

    @property
    def writes(self) -> bool:
        """Whether it was meant to change something."""
        return self.verb in WRITE_VERBS

    def __str__(self) -> str:
        where = "/".join(filter(None, (self.namespace, self.name, self.subresource)))
        return f"{self.verb} {self.resource or self.path} {where} -> {self.status}"


class RequestLog:
    """The newest requests, oldest first; a sequence of LoggedRequest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: deque[LoggedRequest] = deque(maxlen=KEPT_REQUESTS)
        self._recordings: list[list[LoggedRequest]] = []

    def __iter__(self) -> Iterator[LoggedRequest]:
        return iter(tuple(self._kept))

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()

    @contextmanager
    def recording(self) -> Iterator[list[LoggedRequest]]:
        """The requests answered while the block runs, as they come."""
        recorded: list[LoggedRequest] = []
        self._recordings.append(recorded)
        try:
            yield recorded
        finally:
            # By identity: two recordings that hold the same are equal.
            self._recordings = [other for other in self._recordings if other is not recorded]

    async def note(self, request: HttpRequest, response: Response) -> Response:
        """The server's hook: keep a request; its answer goes on as it is."""
        from kopylite.apiserver.request.request import parse_target

        target = parse_target(request)
        logged = LoggedRequest(
            self._clock.monotonic(), request.user.name, request.agent, target.verb, request.path, target.group,
            target.resource, target.namespace, target.name, target.subresource, request.query, request.body,
            response.status,
        )  # fmt: skip
        self._kept.append(logged)
        for recorded in self._recordings:
            recorded.append(logged)
        return response
