"""RealCore: a real API server where a sweep has its own one; what is written there is followed in a store here.

Whoever asks is shown one namespace of the real server, under the name that the scenario has for it, and no other.
"""

from __future__ import annotations

import json
from typing import Any

from kopylite.apiserver.core import error_response
from kopylite.apiserver.request.request import HttpRequest, Response, Target, parse_target
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.apiserver.world import World, store_key
from kopylite.client.transport import Transport
from kopylite.devcluster.faults import WRITES
from kopylite.devcluster.relay import JSON, Relay
from kopylite.errors import Forbidden, NotFound

INSIDE = "default"
_COLLECTIONS = frozenset({"list", "watch", "deletecollection"})
_REVIEWS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class RealCore(Relay):
    """Answers for a real server as the core of an embedded one does.

    Args:
        world: what is followed there; its hooks are those of the requests.
        namespace: of the real server, which is called INSIDE here.

    Attributes:
        followed: the kinds that were written, by the names of their storages.
    """

    def __init__(self, transport: Transport, world: World, namespace: str) -> None:
        super().__init__(transport, world.hooks)
        self._world = world
        self._namespace = namespace
        self.followed: dict[str, Resource] = {}
        self._known: dict[tuple[str, str], tuple[str, int]] = {}

    async def pass_on(self, request: HttpRequest) -> Response:
        target = parse_target(request)
        resource = self._world.registry.find(target.group, target.version, target.resource)
        if (why := _refusal(target)) is not None:
            return error_response(request, Forbidden(why))
        if target.resource and resource is None and target.group not in _REVIEWS:
            return error_response(request, NotFound("the server could not find the requested resource"))
        response = await super().pass_on(self._outward(request, target, resource))
        written = json.loads(response.body) if target.verb == "create" and response.status < 300 else {}
        response.body = response.body.replace(self._namespace.encode(), INSIDE.encode())
        if resource is not None and target.verb in WRITES and response.status < 300 and target.group not in _REVIEWS:
            self.followed[resource.storage] = resource
            name = target.name or (written.get("metadata") or {}).get("name", "")
            await (self._look_at(resource, name) if name else self._look_at_all(resource))
        return response

    async def look(self) -> None:
        """Follow what others wrote to kinds that were written through this."""
        for resource in list(self.followed.values()):
            await self._look_at_all(resource)

    async def _shown(self, call: Any, event: bytes) -> bytes | None:
        return await super()._shown(call, event.replace(self._namespace.encode(), INSIDE.encode()))

    def _outward(self, request: HttpRequest, target: Target, resource: Resource | None) -> HttpRequest:
        path, query = request.path, dict(request.query)
        if target.namespace == INSIDE:
            path = path.replace(f"/namespaces/{INSIDE}", f"/namespaces/{self._namespace}", 1)
        elif resource is not None and resource.namespaced and not target.namespace and target.verb in _COLLECTIONS:
            path = self.collection(resource)
        elif target.resource == "namespaces" and target.verb in _COLLECTIONS:
            query["fieldSelector"] = [f"metadata.name={self._namespace}"]
        body = request.body
        if body and target.resource:
            body = json.dumps(_moved(json.loads(body), self._namespace)).encode()
        return HttpRequest(request.method, path, query, request.headers, body, request.user)

    def collection(self, resource: Resource) -> str:
        """The path of a kind's objects there."""
        start = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
        return f"{start}/namespaces/{self._namespace}/{resource.plural}"

    async def _ask(self, path: str) -> tuple[int, dict[str, Any]]:
        answer = await super().pass_on(HttpRequest("GET", path, {}, {"accept": JSON}))
        body = answer.body.replace(self._namespace.encode(), INSIDE.encode())
        return answer.status, json.loads(body) if answer.status == 200 else {}

    # What is followed

    async def _look_at(self, resource: Resource, name: str) -> None:
        status, found = await self._ask(f"{self.collection(resource)}/{name}")
        if status == 200:
            self._take(resource, found)
        elif status == 404:
            self._drop(resource, store_key(resource, INSIDE, name))

    async def _look_at_all(self, resource: Resource) -> None:
        status, found = await self._ask(self.collection(resource))
        if status != 200:
            return
        for item in found["items"]:
            self._take(resource, {"apiVersion": found["apiVersion"], "kind": resource.kind, **item})
        there = {store_key(resource, INSIDE, item["metadata"]["name"]) for item in found["items"]}
        newest = int(found["metadata"]["resourceVersion"])
        for storage, key in list(self._known):
            _, version = self._known[storage, key]
            if storage == resource.storage and key not in there and version <= newest:
                self._drop(resource, key)

    def _take(self, resource: Resource, obj: dict[str, Any]) -> None:
        metadata = obj["metadata"]
        storage, key = resource.storage, store_key(resource, INSIDE, metadata["name"])
        uid, version = self._known.get((storage, key), ("", 0))
        if int(metadata["resourceVersion"]) <= version:
            return
        if uid and uid != metadata["uid"]:
            self._drop(resource, key)
        self._known[storage, key] = metadata["uid"], int(metadata["resourceVersion"])
        store, stored = self._store, self._store.get(storage, key)
        if stored is None:
            store.create(storage, key, obj, encoding_version=resource.encoding_version)
        else:
            store.update(storage, key, obj, stored, encoding_version=resource.encoding_version)

    def _drop(self, resource: Resource, key: str) -> None:
        self._known.pop((resource.storage, key), None)
        if (stored := self._store.get(resource.storage, key)) is not None:
            self._store.delete(resource.storage, key, stored)

    @property
    def _store(self) -> ObjectStore:
        return self._world.store


def _refusal(target: Target) -> str | None:
    """Why a request is none of a sweep's; None: it is."""
    if target.verb not in WRITES and target.verb in ("get", "list", "watch") and target.namespace in ("", INSIDE):
        return None
    if target.group in _REVIEWS or (target.namespace == INSIDE and target.resource != "namespaces"):
        return None
    where = f"namespace {target.namespace}" if target.namespace else "the whole cluster"
    return f"a sweep on a real server has one namespace, which it calls {INSIDE}: {target.verb} in {where} is refused"


def _moved(value: Any, namespace: str) -> Any:
    """A body with the namespace as the real server has it."""
    if isinstance(value, dict):
        return {
            key: namespace if key == "namespace" and inner == INSIDE else _moved(inner, namespace)
            for key, inner in value.items()
        }
    return [_moved(inner, namespace) for inner in value] if isinstance(value, list) else value
