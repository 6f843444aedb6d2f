"""Api: objects as bytes and wire dicts, one request a call. What the typed clients stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from kopylite.client import verbs
from kopylite.client.codec import check_kind, decode_change, decode_identity, decode_list, encode, encode_body
from kopylite.client.listwatch import refusal
from kopylite.client.resources import Resources
from kopylite.client.retries import retry_after
from kopylite.client.transport import ApiResponse, Transport
from kopylite.client.verbs import (
    PAGE_SIZE,
    PLAIN,
    ApiRequest,
    PatchType,
    Preconditions,
    ResourceInfo,
    Selection,
    WriteOptions,
)
from kopylite.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Expired,
    Invalid,
    KindNotFound,
    NamespaceNotFound,
    NotFound,
    StreamBroken,
    SubresourceNotFound,
    UsageError,
    api_error,
)
from kopylite.objects import Kind, ObjectKey, key_of, meta_of

# Refusals that come of what is stored: not found, conflict.
_STALE: Final = (404, 409)


class WriteListener(Protocol):
    """Told of every write, as far as its answer says what became of it. A name may be "": see `doubted`."""

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        """An object was created or changed, and is now at `version`."""

    def deleted(self, kind: Kind, key: ObjectKey, uid: str, version: str = "") -> None:
        """The object with this uid is gone. Its last known version was `version`."""

    def doubted(self, kind: Kind, key: ObjectKey, *, late: bool) -> None:
        """The server may know a newer state of an object, or (no name) of a namespace, or (neither) of the kind.

        Args:
            late: the answer was lost, so the write may be carried out yet.
        """


class _Told:
    """Several listeners as one."""

    __slots__ = ("_listeners",)

    def __init__(self, listeners: tuple[WriteListener, ...]) -> None:
        self._listeners = listeners

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        for listener in self._listeners:
            listener.written(kind, key, uid, version)

    def deleted(self, kind: Kind, key: ObjectKey, uid: str, version: str = "") -> None:
        for listener in self._listeners:
            listener.deleted(kind, key, uid, version)

    def doubted(self, kind: Kind, key: ObjectKey, *, late: bool) -> None:
        for listener in self._listeners:
            listener.doubted(kind, key, late=late)


def told(first: WriteListener, other: WriteListener | None) -> WriteListener:
    """A listener that stands for one or two."""
    return first if other is None else _Told((first, other))


class Api:
    """The verbs of one server, for any kind.

    Every method raises an ApiError (one class per reason) when the server refuses, KindNotFound when it does
    not serve the kind, TransportError when no whole answer came, and UsageError for a name or namespace that
    cannot be.

    Args:
        transport: brings requests to the server.
        resources: finds plural and scope of kinds.
        listener: told of the writes.
    """

    __slots__ = ("_listener", "resources", "transport")

    def __init__(
        self, transport: Transport, resources: Resources | None = None, listener: WriteListener | None = None
    ) -> None:
        self.transport = transport
        self.resources = resources or Resources(transport)
        self._listener = listener

    async def is_namespaced(self, kind: Kind, namespace: str = "") -> bool:
        """The scope of a kind; the server is asked once, and again where the caller has a namespace for it."""
        return (await self._collection(kind, namespace)).namespaced

    async def get(self, kind: Kind, key: ObjectKey, subresource: str | None = None) -> bytes:
        resource = await self._resource(kind, key)
        request = verbs.get(resource, key, subresource)
        response = await self.transport.request(request)
        if response.status < 300:
            if subresource is None:
                check_kind(response.body, kind.kind)
            return response.body
        raise await self._refusal(request, resource, response, key, subresource)

    async def list_all(self, kind: Kind, namespace: str, selection: Selection) -> list[bytes]:
        """All selected objects, as one consistent state.

        Read page by page. When the server drops that state in the middle, because it takes longer than the server
        keeps it, the list is read again in one piece, which takes what it takes: silence is limited, length is not.
        """
        resource = await self._collection(kind, namespace)
        try:
            return await self._pages(resource, namespace, selection)
        except Expired:
            return await self._pages(resource, namespace, selection, limit=0)

    async def newest(self, kind: Kind, key: ObjectKey) -> str:
        """The present version of an object, "" if it is not there; of a key without a name, that of all objects of the
        kind in its namespace, or ("") in all. Every answered write is in it."""
        if key.name:
            try:
                return decode_identity(await self.get(kind, key))[1].resource_version
            except NotFound:
                return ""
        resource = await self._collection(kind, key.namespace)
        page = await self._send(verbs.list_page(resource, key.namespace, limit=1), resource)
        return decode_list(page, kind).resource_version

    async def create(
        self,
        kind: Kind,
        namespace: str,
        wire: Mapping[str, Any],
        options: WriteOptions = PLAIN,
        body: bytes | None = None,
    ) -> bytes:
        """Create an object; `body` is its wire form as JSON, where the caller has that already."""
        resource = await self._resource(kind, ObjectKey(namespace, ""))
        key = ObjectKey(namespace, meta_of(wire).get("name") or "")
        request = verbs.create(resource, namespace, body or _body(kind, key, wire), options)
        return await self._write(request, resource, key, dry_run=options.dry_run)

    async def create_subresource(
        self, kind: Kind, key: ObjectKey, subresource: str, wire: Mapping[str, Any], options: WriteOptions = PLAIN
    ) -> bytes:
        """Post to a sub-resource of an object: eviction, binding, token."""
        resource = await self._resource(kind, key)
        request = verbs.create_subresource(resource, key, subresource, _body(kind, key, wire), options)
        # A token is made, and nothing is changed.
        silent = options.dry_run or subresource == "token"
        return await self._write(request, resource, key, subresource, dry_run=silent)

    async def update(
        self,
        kind: Kind,
        wire: Mapping[str, Any],
        subresource: str | None = None,
        options: WriteOptions = PLAIN,
        body: bytes | None = None,
    ) -> bytes:
        """Replace an object, or its `subresource`, by a wire form that says its name and resourceVersion.

        `body`: see `create`.
        """
        key = key_of(wire)
        if not meta_of(wire).get("resourceVersion"):
            raise UsageError(f"update of {kind} {key}: it has no resourceVersion; read it first, or use patch or apply")
        resource = await self._resource(kind, key)
        request = verbs.update(resource, key, body or _body(kind, key, wire), subresource, options)
        return await self._write(request, resource, key, subresource, dry_run=options.dry_run)

    async def patch(
        self,
        kind: Kind,
        key: ObjectKey,
        patch: Any,
        patch_type: PatchType = "merge",
        subresource: str | None = None,
        options: WriteOptions = PLAIN,
    ) -> bytes:
        """Change an object, or its `subresource`.

        Raises:
            Conflict: also when a `test` of a JSON patch failed, or the patch has another uid than the object: it is
                not what the patch was made for.
        """
        resource = await self._resource(kind, key)
        request = verbs.patch(resource, key, _body(kind, key, patch), patch_type, subresource, options)
        try:
            return await self._write(request, resource, key, subresource, dry_run=options.dry_run)
        except Invalid as error:
            refused = patch_type == "json" and not error.causes and any(step.get("op") == "test" for step in patch)
            if refused or any(cause.field == "metadata.uid" for cause in error.causes):
                if self._listener is not None and not options.dry_run:
                    self._listener.doubted(resource.kind, key, late=False)
                raise Conflict(error.message, details=error.details, request=error.request) from error
            raise

    async def delete(self, kind: Kind, key: ObjectKey, conditions: Preconditions, *, dry_run: bool = False) -> bytes:
        """Ask for the deletion of an object; a Status comes back, or the object when it stays for a while."""
        resource = await self._resource(kind, key)
        request = verbs.delete(resource, key, encode(conditions.to_dict(dry_run)))
        return await self._write(request, resource, key, dry_run=dry_run)

    async def delete_all(
        self, kind: Kind, namespace: str, selection: Selection, conditions: Preconditions, *, dry_run: bool = False
    ) -> None:
        """Ask for the deletion of all selected objects of a namespace, or ("") of all namespaces."""
        resource = await self._collection(kind, namespace)
        request = verbs.delete_collection(resource, namespace, selection, encode(conditions.to_dict(dry_run)))
        await self._write(request, resource, ObjectKey(namespace, ""), dry_run=dry_run)

    async def _pages(
        self, resource: ResourceInfo, namespace: str, selection: Selection, *, limit: int = PAGE_SIZE
    ) -> list[bytes]:
        objects: list[bytes] = []
        token = ""
        while True:
            request = verbs.list_page(resource, namespace, selection, limit=limit, continue_token=token)
            page = decode_list(await self._send(request, resource), resource.kind)
            objects += map(bytes, page.items)
            token = page.continue_token
            if not token:
                return objects

    async def _resource(self, kind: Kind, key: ObjectKey) -> ResourceInfo:
        return await self.resources.find_for(kind, namespaced=bool(key.namespace))

    async def _collection(self, kind: Kind, namespace: str) -> ResourceInfo:
        """A kind in a namespace, or ("") wherever its objects are."""
        if namespace:
            return await self.resources.find_for(kind, namespaced=True)
        return self.resources.known(kind) or await self.resources.find(kind)

    async def _send(self, request: ApiRequest, resource: ResourceInfo) -> bytes:
        response = await self.transport.request(request)
        if response.status < 300:
            return response.body
        raise await self._refusal(request, resource, response)

    async def _write(
        self,
        request: ApiRequest,
        resource: ResourceInfo,
        key: ObjectKey,
        subresource: str | None = None,
        *,
        dry_run: bool,
    ) -> bytes:
        """Send a write, and tell the listener what became of it, or that nobody knows.

        Args:
            key: of what is written; the name is "" where the server makes it, or many objects are written.
        """
        listener = None if dry_run else self._listener
        try:
            response = await self.transport.request(request)
        except (ConnectionFailed, UsageError):
            raise  # nothing was sent
        except BaseException:
            if listener is not None:
                listener.doubted(resource.kind, key, late=True)
            raise
        if response.status < 300:
            of_delete, found = request.method == "DELETE", None
            if listener is not None:
                found = self._book(listener, resource.kind, key, response.body, of_delete=of_delete)
            if subresource is None and not of_delete:
                check_kind(response.body, resource.kind.kind, found)
            return response.body
        # A gateway's answer says nothing about the server's. A refusal that comes of what is stored shows that this is
        # newer than what was read, or that a first try was carried out (the HTTP library repeats a PUT and a DELETE
        # whose connection broke). Of many deletions, some may have been carried out.
        late = response.status >= 500
        stale = response.status in _STALE if key.name else request.method == "DELETE"
        if listener is not None and (late or stale):
            listener.doubted(resource.kind, key, late=late)
        raise await self._refusal(request, resource, response, key, subresource)

    def _book(self, listener: WriteListener, kind: Kind, key: ObjectKey, body: bytes, *, of_delete: bool) -> str:
        """Tell what the answer to a write says; returns the kind of what it holds."""
        try:
            found, gone, answered = decode_change(body, of_delete=of_delete)
        except StreamBroken:
            listener.doubted(kind, key, late=False)
            raise
        if gone and found.uid and key.name:
            listener.deleted(kind, key, found.uid, found.resource_version)
        elif found.uid and found.resource_version and found.name and key.name in ("", found.name):
            listener.written(kind, ObjectKey(found.namespace, found.name), found.uid, found.resource_version)
        else:
            listener.doubted(kind, key, late=False)
        return answered

    async def _refusal(
        self,
        request: ApiRequest,
        resource: ResourceInfo,
        response: ApiResponse,
        key: ObjectKey | None = None,
        subresource: str | None = None,
    ) -> ApiError | KindNotFound:
        """The exception for an error answer.

        A 404 of a sub-resource may mean the object, the sub-resource or the kind; custom resources answer alike for
        the first two, so discovery is asked.
        """
        wait = retry_after(response.headers)
        error = refusal(api_error(response.status, response.body, retry_after=wait, request=str(request)), request)
        if isinstance(error, KindNotFound):
            self.resources.forget(resource.kind)
        missing = isinstance(error, KindNotFound | NotFound) and not isinstance(error, NamespaceNotFound)
        unserved = isinstance(error, KindNotFound)
        if subresource and missing and await self.resources.lacks(resource.kind, subresource, again=unserved):
            return SubresourceNotFound(
                f"{resource.kind} {key} has no sub-resource {subresource!r}: the server serves the kind without it "
                f"(a CRD declares it under `subresources`) ({request})"
            )
        if unserved:
            return KindNotFound(f"the server does not serve {resource.kind}: is its CRD installed? ({request})")
        return error


def _body(kind: Kind, key: ObjectKey, value: Any) -> bytes:
    return encode_body(value, f"{kind.kind} {key}".rstrip())
