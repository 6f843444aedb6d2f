"""LeaseRequests: the requests about Leases, each with a limit."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

import anyio

from kopylite.client import (
    Api,
    LineSplitter,
    ListWatch,
    Preconditions,
    ResourceInfo,
    Selection,
    Transport,
    decode_event,
)
from kopylite.errors import NotFound, RequestTimeout
from kopylite.leaderelection.lease import LEASE, Lease
from kopylite.objects import ObjectKey

T = TypeVar("T")


class LeaseRequests:
    """Reads and writes the Leases of a namespace.

    Every method raises ApiError and TransportError, as Api does; RequestTimeout after the limit.

    Args:
        transport: brings the answers.
        namespace: of the Leases.
        limit: seconds for each request.
    """

    def __init__(self, transport: Transport, namespace: str, limit: float) -> None:
        self._api = Api(transport)
        self._transport = transport
        self._namespace = namespace
        self._limit = limit

    async def get(self, name: str) -> Lease | None:
        """None: there is no such Lease."""
        try:
            return Lease.of(await self._timed(self._api.get(LEASE, ObjectKey(self._namespace, name))))
        except NotFound:
            return None

    async def put(self, wish: Lease) -> Lease:
        """Create it, or, if it was read, replace that very state; what is stored then."""
        put = (
            self._api.update(LEASE, wish.wire) if wish.version else self._api.create(LEASE, self._namespace, wish.wire)
        )
        return Lease.of(await self._timed(put))

    async def list(self, labels: str) -> list[Lease]:
        """The newest state of all that match a label selector."""
        selection = Selection(labels=labels)
        return [*map(Lease.of, await self._timed(self._api.list_all(LEASE, self._namespace, selection)))]

    async def delete(self, lease: Lease) -> None:
        """Delete it, if it is as it was read."""
        key = ObjectKey(self._namespace, str(lease.wire["metadata"]["name"]))
        await self._timed(self._api.delete(LEASE, key, Preconditions(resource_version=lease.version)))

    async def watch(self, name: str, version: str) -> AsyncGenerator[Lease | None, None]:
        """Each new state of a Lease, and None when it is deleted; until the server ends it."""
        resource, lines = ResourceInfo(LEASE, str(LEASE.plural), True), LineSplitter()
        selection = Selection(fields=f"metadata.name={name}")
        watch = ListWatch(self._transport, resource, self._namespace, selection)
        async with watch.watch(resource_version=version) as stream:
            async for chunk in stream.chunks():
                for word, body in map(decode_event, lines.feed(chunk)):
                    if word == "ERROR":
                        return
                    if word != "BOOKMARK":
                        yield None if word == "DELETED" else Lease.of(body)

    async def _timed(self, call: Awaitable[T]) -> T:
        try:
            with anyio.fail_after(self._limit):
                return await call
        except TimeoutError:
            raise RequestTimeout(f"no answer within {self._limit:g} s") from None
