"""Actor: a controller of the control plane as a client of the server, with no socket between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kopylite.apiserver.core import Core
from kopylite.apiserver.request.request import AUTHENTICATED, MASTERS, HttpRequest, User
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import StoredObject
from kopylite.errors import api_error

_SERVICE_ACCOUNTS = ("system:serviceaccounts", "system:serviceaccounts:kube-system")
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


class Actor:
    """Sends requests as the service account of one controller, with every right.

    Args:
        name: of the account.
    """

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self._user = User(f"system:serviceaccount:kube-system:{name}", (*_SERVICE_ACCOUNTS, AUTHENTICATED, MASTERS))
        self._headers = {"user-agent": f"kube-controller-manager/v1.{core.world.minor}.0 {name}"}
        # The preferred resource of each storage, for one generation of the registry.
        self._resources: dict[str, Resource] = {}
        self._generation = -1

    def resource(self, storage: str) -> Resource | None:
        """How to reach the objects of a storage; None when nothing serves them (any more)."""
        registry = self._core.world.registry
        if self._generation != registry.generation:
            self._generation, self._resources = registry.generation, registry.storages()
        return self._resources.get(storage)

    async def delete(self, resource: Resource, record: StoredObject, options: Mapping[str, Any]) -> None:
        """Delete one object. Raises ApiError."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
        await self.send("DELETE", path_of(resource, record.namespace, record.name), body)

    async def patch(self, resource: Resource, record: StoredObject, patch: Mapping[str, Any] | Sequence[Any]) -> None:
        """Patch one object: a merge patch, or a list of JSON Patch operations. Raises ApiError."""
        kind = MERGE if isinstance(patch, Mapping) else JSON_PATCH
        await self.send("PATCH", path_of(resource, record.namespace, record.name), patch, content_type=kind)

    async def send(self, method: str, path: str, body: Any = None, *, content_type: str = "application/json") -> Any:
        """Any request. Returns the decoded answer. Raises ApiError."""
        headers = {**self._headers, "content-type": content_type}
        encoded = b"" if body is None else msgspec.json.encode(body)
        response = await self._core.handle(HttpRequest.of(method, path, headers=headers, body=encoded, user=self._user))
        if response.status >= 400:
            raise api_error(response.status, response.body)
        return msgspec.json.decode(response.body)


def path_of(resource: Resource, namespace: str, name: str = "") -> str:
    """The path of an object, or of the collection."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    place = f"/namespaces/{namespace}" if resource.namespaced and namespace else ""
    return f"{root}{place}/{resource.plural}" + (f"/{name}" if name else "")
