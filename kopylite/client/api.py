"""Api: objects as bytes and wire dicts, one request a call. What the typed clients stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from kopylite.client import verbs
from kopylite.client.codec import decode_identity, decode_list, decode_object, encode, encode_body
from kopylite.client.listwatch import PAGE_SIZE, refusal
from kopylite.client.resources import Resources
from kopylite.client.retries import retry_after
from kopylite.client.transport import ApiResponse, Transport
from kopylite.client.verbs import PLAIN, ApiRequest, PatchType, Preconditions, ResourceInfo, Selection, WriteOptions
from kopylite.errors import Conflict, Expired, Invalid, KindNotFound, UsageError, api_error
from kopylite.objects import Kind, ObjectKey, key_of, meta_of


class WriteListener(Protocol):
    """Told of every write that the server has carried out."""

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        """An object was created or changed, and is now at `version`."""

    def deleted(self, kind: Kind, key: ObjectKey, uid: str) -> None:
        """The object with this uid is gone."""


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

    async def is_namespaced(self, kind: Kind) -> bool:
        """The scope of a kind; the server is asked at most once."""
        return (await self._resource(kind)).namespaced

    async def get(self, kind: Kind, key: ObjectKey, subresource: str | None = None) -> bytes:
        resource = await self._resource(kind)
        return await self._send(verbs.get(resource, key, subresource), resource)

    async def list_all(self, kind: Kind, namespace: str, selection: Selection) -> list[bytes]:
        """All selected objects, as one consistent state.

        Read page by page. When the server drops that state in the middle, because it takes longer than the server
        keeps it, the list is read again in one piece, which takes what it takes: silence is limited, length is not.
        """
        resource = await self._resource(kind)
        try:
            return await self._pages(resource, namespace, selection)
        except Expired:
            return await self._pages(resource, namespace, selection, limit=0)

    async def create(self, kind: Kind, namespace: str, wire: Mapping[str, Any], options: WriteOptions = PLAIN) -> bytes:
        resource = await self._resource(kind)
        body = await self._send(verbs.create(resource, namespace, _body(kind, key_of(wire), wire), options), resource)
        self._note_write(resource.kind, body, options)
        return body

    async def create_subresource(
        self, kind: Kind, key: ObjectKey, subresource: str, wire: Mapping[str, Any], options: WriteOptions = PLAIN
    ) -> bytes:
        """Post to a sub-resource of an object: eviction, binding, token."""
        resource = await self._resource(kind)
        return await self._send(
            verbs.create_subresource(resource, key, subresource, _body(kind, key, wire), options), resource
        )

    async def update(
        self, kind: Kind, wire: Mapping[str, Any], subresource: str | None = None, options: WriteOptions = PLAIN
    ) -> bytes:
        """Replace an object, or its `subresource`, by a wire form that says its name and resourceVersion."""
        key = key_of(wire)
        if not meta_of(wire).get("resourceVersion"):
            raise UsageError(f"update of {kind} {key}: it has no resourceVersion; read it first, or use patch or apply")
        resource = await self._resource(kind)
        body = await self._send(verbs.update(resource, key, _body(kind, key, wire), subresource, options), resource)
        if subresource in (None, "status"):
            self._note_write(resource.kind, body, options)
        return body

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
        resource = await self._resource(kind)
        request = verbs.patch(resource, key, _body(kind, key, patch), patch_type, subresource, options)
        try:
            body = await self._send(request, resource)
        except Invalid as error:
            refused = patch_type == "json" and not error.causes and any(step.get("op") == "test" for step in patch)
            if refused or any(cause.field == "metadata.uid" for cause in error.causes):
                raise Conflict(error.message, details=error.details, request=error.request) from error
            raise
        if subresource in (None, "status"):
            self._note_write(resource.kind, body, options)
        return body

    async def delete(self, kind: Kind, key: ObjectKey, conditions: Preconditions, *, dry_run: bool = False) -> bytes:
        """Ask for the deletion of an object; a Status comes back, or the object when it stays for a while."""
        resource = await self._resource(kind)
        request = verbs.delete(resource, key, encode(conditions.to_dict(dry_run)))
        body = await self._send(request, resource)
        if self._listener is not None and not dry_run:
            answered, identity = decode_identity(body)
            if answered != "Status":
                self._listener.written(resource.kind, key, identity.uid, identity.resource_version)
            elif uid := _uid_in_status(body):
                self._listener.deleted(resource.kind, key, uid)
        return body

    async def delete_all(
        self, kind: Kind, namespace: str, selection: Selection, conditions: Preconditions, *, dry_run: bool = False
    ) -> None:
        """Ask for the deletion of all selected objects of a namespace, or ("") of all namespaces."""
        resource = await self._resource(kind)
        body = encode(conditions.to_dict(dry_run))
        await self._send(verbs.delete_collection(resource, namespace, selection, body), resource)

    async def _pages(
        self, resource: ResourceInfo, namespace: str, selection: Selection, *, limit: int = PAGE_SIZE
    ) -> list[bytes]:
        objects: list[bytes] = []
        token = ""
        while True:
            request = verbs.list_page(resource, namespace, selection, limit=limit, continue_token=token)
            page = decode_list(await self._send(request, resource))
            objects += map(bytes, page.items)
            token = page.continue_token
            if not token:
                return objects

    async def _resource(self, kind: Kind) -> ResourceInfo:
        return self.resources.known(kind) or await self.resources.find(kind)

    async def _send(self, request: ApiRequest, resource: ResourceInfo) -> bytes:
        response = await self.transport.request(request)
        if response.status < 300:
            return response.body
        self._refuse(request, resource, response)

    def _refuse(self, request: ApiRequest, resource: ResourceInfo, response: ApiResponse) -> NoReturn:
        error = refusal(
            api_error(response.status, response.body, retry_after=retry_after(response.headers), request=str(request)),
            request,
        )
        if isinstance(error, KindNotFound):
            self.resources.forget(resource.kind)
            _, _, subresource = request.path.rpartition(f"/{resource.plural}/")[2].partition("/")
            if subresource:
                raise KindNotFound(
                    f"the server does not serve {request.path}: {resource.kind} has no sub-resource {subresource!r} "
                    "(a CRD declares it under `subresources`), or is not served at all"
                )
        raise error

    def _note_write(self, kind: Kind, body: bytes, options: WriteOptions) -> None:
        if self._listener is not None and not options.dry_run:
            found = decode_identity(body)[1]
            self._listener.written(kind, ObjectKey(found.namespace, found.name), found.uid, found.resource_version)


def _body(kind: Kind, key: ObjectKey, value: Any) -> bytes:
    return encode_body(value, f"{kind.kind} {key}".rstrip())


def _uid_in_status(body: bytes) -> str:
    return str((decode_object(body).get("details") or {}).get("uid") or "")
