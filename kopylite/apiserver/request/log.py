"""AccessLog: what clients have asked, for tests of the server. The newest requests, in order.

It has what only the server knows: the target as it was understood, answers, audit annotations. What tests of operators
see is `devcluster/requestlog.py`, in their words.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kopylite.apiserver.request.request import HttpRequest, Response, Target

MAX_ENTRIES = 10_000
# Of the bodies and answers that are kept; the oldest requests go first.
MAX_BODY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class AccessLogEntry:
    """One finished request; a watch is logged when it begins.

    Attributes:
        moment: the clock's monotonic time when the answer was ready, in seconds.
        user: the name of who asked.
        target: verb, resource, namespace, name.
        query: the parameters, with all values of each.
        status: the HTTP status of the answer.
        audit: what webhooks and policies noted for the audit log.
        body, answer: only with `AccessLog.bodies`; the answer of a watch is empty.
    """

    moment: float
    user: str
    agent: str
    method: str
    target: Target
    query: dict[str, list[str]]
    status: int
    body: bytes = b""
    answer: bytes = b""
    audit: Mapping[str, str] = field(default_factory=dict)


class AccessLog:
    """Iterate to read, oldest first; `clear()` before the part of a test that counts.

    Attributes:
        bodies: also keep the bodies of requests and answers; off by default, they may be large.
    """

    def __init__(self) -> None:
        self._entries: deque[AccessLogEntry] = deque()
        self._bytes = 0
        self.bodies = False

    def add(self, moment: float, request: HttpRequest, target: Target, response: Response) -> None:
        kept = (request.body, response.body) if self.bodies else (b"", b"")
        self._bytes += sum(map(len, kept))
        entry = AccessLogEntry(
            moment,
            request.user.name,
            request.agent,
            request.method,
            target,
            request.query,
            response.status,
            *kept,
            audit=request.audit,
        )
        if len(self._entries) == MAX_ENTRIES:
            self._drop()
        self._entries.append(entry)
        while self._bytes > MAX_BODY_BYTES:
            self._drop()

    def _drop(self) -> None:
        oldest = self._entries.popleft()
        self._bytes -= len(oldest.body) + len(oldest.answer)

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def __iter__(self) -> Iterator[AccessLogEntry]:
        return iter(list(self._entries))

    def __len__(self) -> int:
        return len(self._entries)
