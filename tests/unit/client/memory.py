"""MemoryServer: a Transport that keeps objects in a dict. As much of an API server as the client's own logic needs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.client.patches import merge_apply
from kopylite.client.transport import ApiResponse, ApiStream
from kopylite.client.verbs import ApiRequest
from kopylite.errors import AlreadyExists, ApiError, Conflict, NotFound


class MemoryServer:
    """Stores objects by path.

    Attributes:
        objects: path to object; tests may put some in.
        requests: "METHOD path" of all requests so far.
        admit: changes every object before it is stored, as defaulting and pruning do.
    """

    def __init__(self, admit: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.sent: list[ApiRequest] = []
        self.admit = admit
        self.answers: list[ApiResponse] = []
        self._version = 100

    @property
    def writes(self) -> list[str]:
        return [request for request in self.requests if not request.startswith("GET")]

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        self.requests.append(str(request))
        self.sent.append(request)
        if self.answers:
            return self.answers.pop(0)
        try:
            result = getattr(self, request.method.lower())(request)
        except ApiError as error:
            return ApiResponse(error.code, {}, json.dumps(error.to_status()).encode())
        return ApiResponse(200, {}, json.dumps(result).encode())

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
        raise AssertionError("no streams here")
        yield

    def put_in(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Store an object; if that changes it, under a new version."""
        old = self.objects.get(path)
        metadata = obj.setdefault("metadata", {})
        metadata["uid"] = old["metadata"]["uid"] if old else f"uid-{self._version}"
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"] if old else ""
        self.admit(obj)
        if obj != old:
            self._version += 1
            metadata["resourceVersion"] = str(self._version)
        self.objects[path] = obj
        return obj

    def get(self, request: ApiRequest) -> dict[str, Any]:
        if request.path in self.objects:
            return self.objects[request.path]
        items = [obj for path, obj in self.objects.items() if path.startswith(f"{request.path}/")]
        if not request.path.rpartition("/")[2].endswith("s"):
            raise self._missing(request)
        return {"kind": "List", "metadata": {"resourceVersion": str(self._version)}, "items": items}

    def post(self, request: ApiRequest) -> dict[str, Any]:
        obj = json.loads(request.body or b"")
        path = f"{request.path}/{obj['metadata']['name']}"
        if path in self.objects:
            raise AlreadyExists("already exists", details={"name": obj["metadata"]["name"]})
        return self.put_in(path, obj)

    def put(self, request: ApiRequest) -> dict[str, Any]:
        old, obj = self._stored(request), json.loads(request.body or b"")
        if obj["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified", details={"name": "it"})
        return self.put_in(request.path, obj)

    def patch(self, request: ApiRequest) -> dict[str, Any]:
        path = request.path.removesuffix("/status")
        patch = json.loads(request.body or b"")
        if path not in self.objects and "apply" not in str(request.content_type):
            raise self._missing(request)
        old = self.objects.get(path, {})
        if isinstance(patch, list):
            return self.put_in(path, json_patch(json.loads(json.dumps(old)), patch))
        return self.put_in(path, json.loads(json.dumps(merge_apply(old, patch))))

    def delete(self, request: ApiRequest) -> dict[str, Any]:
        obj = self._stored(request)
        if obj["metadata"].get("finalizers"):
            return self.put_in(
                request.path, merge_apply(obj, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
            )
        del self.objects[request.path]
        return {"kind": "Status", "status": "Success", "details": {"uid": obj["metadata"]["uid"]}}

    def _stored(self, request: ApiRequest) -> dict[str, Any]:
        if request.path not in self.objects:
            raise self._missing(request)
        return self.objects[request.path]

    def _missing(self, request: ApiRequest) -> NotFound:
        name = request.path.rpartition("/")[2]
        return NotFound(f"{name} not found", details={"name": name})
