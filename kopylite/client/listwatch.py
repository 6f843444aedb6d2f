"""Lists and watches of one collection, as bytes: what the cache is fed with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from kopylite.client import verbs
from kopylite.client.retries import retry_after
from kopylite.client.transport import ApiStream, Transport
from kopylite.client.verbs import EVERYTHING, PAGE_SIZE, SHARD_SELECTOR, ApiRequest, ResourceInfo, Selection
from kopylite.errors import ApiError, KindNotFound, NotFound, api_error


class ListWatch(msgspec.Struct, frozen=True):
    """One collection of one server.

    Attributes:
        transport: brings the answers.
        resource: the kind.
        namespace: "" for all.
        selection: which objects.
        metadata_only: everything comes as PartialObjectMetadata.
    """

    transport: Transport
    resource: ResourceInfo
    namespace: str = ""
    selection: Selection = EVERYTHING
    metadata_only: bool = False

    async def list_page(self, *, limit: int = PAGE_SIZE, continue_token: str = "", resource_version: str = "") -> bytes:
        """One page, undecoded: for `decode_list`.

        Args:
            limit: the most objects; 0 for all.
            continue_token: of the page before.
            resource_version: a state at least this new; "" for the newest.

        Raises:
            KindNotFound: the server does not serve the kind.
            ApiError, TransportError: no list came.
        """
        request = verbs.list_page(
            self.resource,
            self.namespace,
            self.selection,
            limit=limit,
            continue_token=continue_token,
            resource_version=resource_version,
            metadata_only=self.metadata_only,
        )
        response = await self.transport.request(request)
        if response.status >= 400 and will_not_divide(request, response.body):
            request = undivided(request)
            response = await self.transport.request(request)
        if response.status >= 400:
            wait = retry_after(response.headers)
            raise refusal(api_error(response.status, response.body, retry_after=wait, request=str(request)), request)
        return response.body

    @asynccontextmanager
    async def watch(
        self, *, resource_version: str = "", timeout_seconds: int = 0, send_initial_events: bool = False
    ) -> AsyncIterator[ApiStream]:
        """An open watch with bookmarks: its lines are for `LineSplitter` and `decode_event`.

        Args:
            resource_version: begin after this state.
            timeout_seconds: the server ends the stream after this time.
            send_initial_events: begin with the present objects (WatchList).

        Raises:
            KindNotFound: the server does not serve the kind.
            ApiError, TransportError: the stream did not begin. Later errors come out of the stream.
        """
        request = verbs.watch(
            self.resource,
            self.namespace,
            self.selection,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            send_initial_events=send_initial_events,
            metadata_only=self.metadata_only,
        )
        async with AsyncExitStack() as stack:
            stream = await stack.enter_async_context(self.transport.stream(request))
            body = await stream.read() if stream.status >= 400 else b""
            if body and will_not_divide(request, body):
                request = undivided(request)
                stream = await stack.enter_async_context(self.transport.stream(request))
                body = await stream.read() if stream.status >= 400 else b""
            if stream.status >= 400:
                wait = retry_after(stream.headers)
                raise refusal(api_error(stream.status, body, retry_after=wait, request=str(request)), request)
            yield stream


def will_not_divide(request: ApiRequest, answer: bytes) -> bool:
    """Whether a server says no for the `shardSelector` alone: what it takes may change while that is in alpha."""
    return SHARD_SELECTOR in request.params and b"shard selector" in answer


def undivided(request: ApiRequest) -> ApiRequest:
    """The same, for all shards."""
    params = {name: text for name, text in request.params.items() if name != SHARD_SELECTOR}
    return msgspec.structs.replace(request, params=params)


def refusal(error: ApiError, request: ApiRequest) -> ApiError | KindNotFound:
    """The exception for an error answer, told apart: a 404 that names no object means that the *kind* is not
    served. Taken for a missing object it would make an operator believe that everything is gone."""
    if isinstance(error, NotFound) and not error.details.get("name"):
        return KindNotFound(f"the server does not serve {request.path}: is the CRD installed? ({error.message})")
    return error
