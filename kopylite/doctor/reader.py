"""Reader: what the doctor may see of a cluster. It lists and gets, with limits on time and number, and never writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from kopylite.boundary import json_object
from kopylite.client import ApiRequest, ApiResponse, Permission, ResourceInfo, Resources, Selection, Transport
from kopylite.client import verbs as build
from kopylite.client.codec import decode_list
from kopylite.client.listwatch import refusal
from kopylite.client.verbs import JSON, METADATA_OBJECT, PAGE_SIZE
from kopylite.errors import Expired, Forbidden, NotFound, api_error
from kopylite.objects import Kind, ObjectKey

# Requests at the same time: a doctor is no load.
AT_A_TIME = 4

Object = dict[str, Any]


class NotAllowed(Exception):
    """RBAC keeps us from reading something."""

    def __init__(self, permissions: Sequence[Permission]) -> None:
        super().__init__(f"may not {permissions[0].verb} {permissions[0].resource}")
        self.permissions = tuple(permissions)


@dataclass(slots=True)
class KindListing:
    """Some objects of a kind. `more`: there are others, beyond the limit."""

    kind: Kind
    items: list[Object] = field(default_factory=list)
    more: bool = False


class Reader:
    """Reads objects, each list once.

    Every method raises NotAllowed where RBAC refuses, KindNotFound for a kind that is not served, and an ApiError or a
    TransportError for what else comes between.

    Args:
        transport: brings the answers.
        namespaces: only these are looked into; none: all.
        limit: of the objects of one kind (and namespace) that are looked at.
        timeout: seconds for each request.
    """

    def __init__(self, transport: Transport, namespaces: Sequence[str], limit: int, timeout: float) -> None:
        self.transport = transport
        self.resources = Resources(transport)
        self.namespaces = tuple(namespaces)
        self._limit = limit
        self._timeout = timeout
        self._slots = anyio.CapacityLimiter(AT_A_TIME)
        self._lists: dict[tuple[Kind, str, bool, str], KindListing] = {}

    async def all(self, kind: Kind, *, metadata_only: bool = False, fields: str = "") -> KindListing:
        """The objects of a kind, in the namespaces that are looked into; a cluster-scoped kind's anyhow."""
        resource = await self.resource(kind)
        if not self.namespaces or not resource.namespaced:
            return await self._listed(resource, "", metadata_only, fields)
        found = KindListing(kind)
        for namespace in self.namespaces:
            part = await self._listed(resource, namespace, metadata_only, fields)
            found.items += part.items
            found.more = found.more or part.more
        return found

    async def within(self, kind: Kind, namespace: str, labels: str = "") -> KindListing:
        """The objects of a kind in one namespace, whether it is looked into or not."""
        return await self._listed(await self.resource(kind), namespace, False, "", labels)

    async def find(self, kind: Kind, name: str, namespace: str = "", *, metadata_only: bool = False) -> Object | None:
        """One object; None: it is not there."""
        resource = await self.resource(kind)
        request = build.get(resource, ObjectKey(namespace, name))
        if metadata_only:
            request = ApiRequest(request.method, request.path, accept=METADATA_OBJECT)
        try:
            return json_object((await self.send(request)).body)
        except NotFound:
            return None
        except Forbidden as error:
            raise NotAllowed([_permission(error, resource, "get", namespace)]) from None

    async def resource(self, kind: Kind) -> ResourceInfo:
        """Plural and scope of a kind. Raises KindNotFound."""
        return self.resources.known(kind) or await self.resources.find(kind)

    async def review(self, kind: str, spec: Mapping[str, Any]) -> Object:
        """Ask the authorizer; nothing is stored. `kind` is SelfSubjectAccessReview or SubjectAccessReview."""
        group = "authorization.k8s.io"
        body = json.dumps({"apiVersion": f"{group}/v1", "kind": kind, "spec": spec}).encode()
        path = f"/apis/{group}/v1/{kind.lower()}s"
        try:
            return json_object((await self.send(ApiRequest("POST", path, body=body, content_type=JSON))).body)
        except Forbidden:
            raise NotAllowed([Permission("create", f"{kind.lower()}s", group)]) from None

    async def send(self, request: ApiRequest) -> ApiResponse:
        """The answer to a request, if it is no error."""
        async with self._slots:
            response = await self.transport.request(request, timeout=self._timeout)
        if response.status >= 400:
            error = refusal(api_error(response.status, response.body, request=str(request)), request)
            raise error
        return response

    async def _listed(
        self, resource: ResourceInfo, namespace: str, metadata_only: bool, fields: str, labels: str = ""
    ) -> KindListing:
        key = resource.kind, namespace, metadata_only, f"{fields};{labels}"
        if key not in self._lists:
            try:
                self._lists[key] = await self._pages(resource, namespace, metadata_only, Selection(labels, fields))
            except Forbidden as error:
                raise NotAllowed([_permission(error, resource, "list", namespace)]) from None
        return self._lists[key]

    async def _pages(
        self, resource: ResourceInfo, namespace: str, metadata_only: bool, selection: Selection
    ) -> KindListing:
        found, token = KindListing(resource.kind), ""
        while True:
            size = min(PAGE_SIZE, self._limit - len(found.items))
            request = build.list_page(
                resource, namespace, selection, limit=size, continue_token=token, metadata_only=metadata_only
            )
            try:
                page = decode_list((await self.send(request)).body, resource.kind)
            except Expired:
                found.more = True  # it took longer than the server remembers; what was seen is enough to judge
                return found
            found.items += [json_object(bytes(item)) for item in page.items]
            token = page.continue_token
            if not token or len(found.items) >= self._limit:
                found.more = bool(token)
                return found


def _permission(error: Forbidden, resource: ResourceInfo, verb: str, namespace: str) -> Permission:
    return Permission(verb, resource.plural, resource.kind.group, namespace)
