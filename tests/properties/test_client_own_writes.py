"""A read is never older than this client's own writes: all verbs, all fates of an answer, caches of any lateness."""

from __future__ import annotations

import asyncio
import builtins
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kopylite.client import Client
from kopylite.client.transport import ApiResponse, ApiStream
from kopylite.client.verbs import EVERYTHING, ApiRequest, Preconditions
from kopylite.errors import ConnectionFailed, KopyliteError, RequestTimeout, StreamBroken
from kopylite.objects import Kind, ObjectKey, compare_versions
from kopylite.testing.clock import VirtualClock
from tests.sizes import examples
from tests.unit.client.memcache import StoredObject

CM = Kind("v1", "ConfigMap")
FATES = ("ok", "refused", "unsent", "lost before", "lost after", "gateway before", "gateway after", "repeated")
VERBS = (
    "create", "generate", "update", "patch", "apply", "status", "mark", "release", "delete", "delete_all", "scale",
    "evict",
)  # fmt: skip
KEYS = [ObjectKey("shop", "a"), ObjectKey("else", "b")]
Step = tuple[Any, ...]  # what is done, and with what


class Model:
    """A server of ConfigMaps, with the history of each change; answers as the fate of the next write says."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, dict[str, Any]] = {}
        self.version = 10
        self.history: list[tuple[int, ObjectKey, dict[str, Any] | None]] = []
        self.fate = "ok"
        self.written: list[ObjectKey] = []

    async def request(self, request: ApiRequest, *, timeout: float | None = None) -> ApiResponse:
        if request.method == "GET":
            return self.carry_out(request)
        match self.fate:
            case "refused":
                return answer(403, {"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"})
            case "unsent":
                raise ConnectionFailed("no")
            case "lost before":
                raise RequestTimeout("late")
            case "gateway before":
                return ApiResponse(502, {}, b"<html>")
        answered = self.carry_out(request)
        match self.fate:
            case "lost after":
                raise StreamBroken("cut")
            case "gateway after":
                return ApiResponse(504, {}, b"<html>")
            case "repeated" if request.method in ("PUT", "DELETE"):  # as a proxy on the way may do
                return self.carry_out(request)
        return answered

    @asynccontextmanager
    async def stream(self, request: ApiRequest) -> AsyncIterator[ApiStream]:
        raise AssertionError("no streams here")
        yield

    def carry_out(self, request: ApiRequest) -> ApiResponse:
        if request.path == "/api/v1":
            names = ("configmaps", "configmaps/status", "configmaps/scale", "configmaps/eviction")
            served = [{"name": name, "kind": "ConfigMap", "namespaced": True} for name in names]
            return answer(200, {"resources": served})
        parts = request.path.split("/")[3:]  # namespaces/NS/configmaps/NAME/SUB, or configmaps
        namespace = parts[1] if parts[0] == "namespaces" else ""
        rest = parts[3:] if namespace else parts[1:]
        if not rest:
            return self.on_collection(request, namespace)
        return self.on_object(request, ObjectKey(namespace, rest[0]), rest[1] if len(rest) > 1 else "")

    def on_collection(self, request: ApiRequest, namespace: str) -> ApiResponse:
        keys = [key for key in self.objects if namespace in ("", key.namespace)]
        if request.method == "POST":
            obj = json.loads(request.body or b"")
            name = obj["metadata"].get("name") or f"{obj['metadata']['generateName']}{self.version}"
            key = ObjectKey(namespace, name)
            if key in self.objects:
                return refusal(409, "AlreadyExists", key)
            return answer(201, self.put(key, {}, uid=f"uid-{self.version}"))
        if request.method == "DELETE":
            for key in keys:
                self.remove(key)
            return answer(200, {"kind": "ConfigMapList", "items": [], "metadata": {"resourceVersion": "1"}})
        items = [self.objects[key] for key in keys]
        return answer(200, {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": items})

    def on_object(self, request: ApiRequest, key: ObjectKey, subresource: str) -> ApiResponse:
        old = self.objects.get(key)
        if old is None:
            if "apply" in str(request.content_type):
                return answer(201, self.put(key, {}, uid=f"uid-{self.version}"))
            return refusal(404, "NotFound", key)
        if request.method == "GET":
            return answer(200, old)
        if subresource == "eviction":
            self.remove(key)
            return answer(201, {"kind": "Status", "status": "Success"})
        if request.method == "DELETE":
            self.remove(key)
            marked = self.objects.get(key)
            details = {"name": key.name, "uid": old["metadata"]["uid"]}
            return answer(200, marked or {"kind": "Status", "status": "Success", "details": details})
        body = json.loads(request.body or b"")
        if request.method == "PUT" and subresource != "scale":
            if body["metadata"]["resourceVersion"] != old["metadata"]["resourceVersion"]:
                return refusal(409, "Conflict", key)
            body = {}
        metadata = {**old["metadata"], **body.get("metadata", {})}
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.drop(key)
            return answer(200, {**old, "metadata": {**metadata, "finalizers": []}})  # with its old version
        new = self.put(key, {**old, "metadata": metadata}, uid=metadata["uid"])
        return answer(200, {"kind": "Scale", "metadata": new["metadata"]} if subresource == "scale" else new)

    def put(self, key: ObjectKey, obj: dict[str, Any], uid: str) -> dict[str, Any]:
        self.version += 1
        metadata = {**obj.get("metadata", {}), "name": key.name, "namespace": key.namespace, "uid": uid}
        metadata["resourceVersion"] = str(self.version)
        self.note(key, {"apiVersion": "v1", "kind": "ConfigMap", **obj, "metadata": metadata})
        return self.objects[key]

    def remove(self, key: ObjectKey) -> None:
        metadata = self.objects[key]["metadata"]
        if metadata.get("finalizers"):
            if not metadata.get("deletionTimestamp"):
                marked = {**self.objects[key], "metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
                self.put(key, marked, uid=metadata["uid"])
        else:
            self.drop(key)

    def drop(self, key: ObjectKey) -> None:
        self.version += 1
        self.note(key, None)

    def note(self, key: ObjectKey, obj: dict[str, Any] | None) -> None:
        if obj is None:
            del self.objects[key]
        else:
            self.objects[key] = obj
        self.history.append((self.version, key, obj))
        self.written.append(key)


def answer(status: int, body: dict[str, Any]) -> ApiResponse:
    return ApiResponse(status, {}, json.dumps(body).encode())


def refusal(code: int, reason: str, key: ObjectKey) -> ApiResponse:
    details = {"name": key.name, "kind": "configmaps"}
    return answer(code, {"kind": "Status", "reason": reason, "code": code, "message": reason, "details": details})


@dataclass(eq=False)
class LateStore:
    """A cache of the model, as late as the test wants; without a state at first."""

    model: Model
    namespace: str
    partial: bool = False
    born: bool = False
    applied: int = 0  # of the model's history
    ended: int = 0
    version: str = ""
    objects: dict[ObjectKey, StoredObject] = field(default_factory=dict)

    def begin(self, place: int) -> None:
        """Its first list is of the state after `place` changes."""
        self.objects.clear()
        self.applied, self.version, self.born = 0, "10", True
        self.catch_up(place)

    def catch_up(self, changes: int) -> None:
        for version, key, obj in self.model.history[self.applied : self.applied + changes]:
            self.applied += 1
            if self.namespace not in ("", key.namespace):
                continue
            self.version = str(version)
            if obj is None:
                self.objects.pop(key, None)
            else:
                metadata = obj["metadata"]
                body = json.dumps(obj).encode()
                self.objects[key] = StoredObject(key, metadata["uid"], metadata["resourceVersion"], body)

    def bookmark(self) -> None:
        self.catch_up(len(self.model.history))
        self.version = str(self.model.version)

    def get(self, key: ObjectKey) -> StoredObject | None:
        return self.objects.get(key)

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> Iterable[StoredObject]:
        return [stored for key, stored in self.objects.items() if namespace in ("", key.namespace)]

    def find_in(self, kind: Kind, bodies: Iterable[bytes], index: Mapping[str, str]) -> builtins.list[bytes]:
        raise AssertionError("no index here")

    def newest(self) -> str:
        return self.version

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        self.catch_up(1)
        return compare_versions(self.version, version) >= 0


class Bench:
    """One client, two caches (of one namespace, and of all), and what the client may read of each object."""

    def __init__(self) -> None:
        self.model, self.clock = Model(), VirtualClock()
        self.stores = {name: LateStore(self.model, name) for name in ("shop", "")}
        self.client = Client(self.model, cache=self, clock=self.clock)

    def store_for(self, kind: Kind, namespace: str) -> LateStore | None:
        for name in (namespace, ""):
            store = self.stores.get(name)
            if store is not None and store.born:
                return store
        return None

    def follows(self, kind: Kind, namespace: str) -> bool:
        return True

    async def write(self, verb: str, key: ObjectKey, fate: str, own: dict[ObjectKey, int]) -> None:
        self.model.fate = fate
        self.model.written.clear()
        before = len(self.model.history)
        with suppress(KopyliteError):
            await self._send(verb, key)
        for place, (_, changed, _) in enumerate(self.model.history[before:], before):
            own[changed] = place

    async def _send(self, verb: str, key: ObjectKey) -> None:
        api, stored = self.client.api, self.model.objects.get(key, {})
        meta = {"name": key.name, "namespace": key.namespace, "resourceVersion": "1", **stored.get("metadata", {})}
        match verb:
            case "create":
                await api.create(CM, key.namespace, {"metadata": {"name": key.name}})
            case "generate":
                await api.create(CM, key.namespace, {"metadata": {"generateName": "child-"}})
            case "update":
                await api.update(CM, {"metadata": meta})
            case "scale":
                await api.update(CM, {"metadata": meta}, "scale")
            case "patch" | "apply":
                await api.patch(CM, key, {}, "merge" if verb == "patch" else "apply", None, self.client.options())
            case "status":
                await api.patch(CM, key, {}, "merge", "status")
            case "mark" | "release":
                finalizers = ["x/y"] if verb == "mark" else []
                await api.patch(CM, key, {"metadata": {"finalizers": finalizers}})
            case "delete":
                await api.delete(CM, key, Preconditions())
            case "delete_all":
                await api.delete_all(CM, key.namespace, EVERYTHING, Preconditions())
            case "evict":
                await api.create_subresource(CM, key, "eviction", {})

    def allowed(self, key: ObjectKey, own: dict[ObjectKey, int]) -> set[str]:
        """The versions ("": none) of an object that are not older than the client's last write to it."""
        since = own.get(key, -1)
        states = [(place, obj) for place, (_, changed, obj) in enumerate(self.model.history) if changed == key]
        found = {obj["metadata"]["resourceVersion"] if obj else "" for place, obj in states if place >= since}
        return found if since >= 0 else found | {""}

    async def check(self, own: dict[ObjectKey, int]) -> None:
        self.model.fate = "ok"
        keys = {*KEYS, *own}
        for key in sorted(keys):
            found = await self.client.find(CM, key)
            assert (found.resource_version if found else "") in self.allowed(key, own), f"find {key}"
        for namespace in ("", "shop", "else"):
            listed = {ObjectKey(o.namespace, o.name): o for o in await self.client.list(CM, namespace=namespace)}
            for key in keys:
                if namespace in ("", key.namespace):
                    seen = listed[key].resource_version if key in listed else ""
                    assert seen in self.allowed(key, own), f"list of {namespace!r}: {key}"


fates = st.one_of(st.just("ok"), st.sampled_from(FATES))
write = st.tuples(st.just("write"), st.sampled_from(VERBS), st.sampled_from(KEYS), fates)
# Objects that are there, that hold finalizers, that are on their way out: verbs do different things to them.
PRELUDES: list[list[str]] = [[], ["create"], ["create", "mark"], ["create", "mark", "delete"]]


def prelude(verbs: list[str], key: ObjectKey) -> list[Step]:
    return [*(("write", verb, key, "ok") for verb in verbs), ("bookmark", "shop"), ("bookmark", "")]


steps: st.SearchStrategy[Step] = st.one_of(
    write,
    write,
    st.tuples(st.just("catch up"), st.sampled_from(["shop", ""]), st.integers(1, 3)),
    st.tuples(st.just("bookmark"), st.sampled_from(["shop", ""])),
    st.tuples(st.just("begin"), st.sampled_from(["shop", ""]), st.integers(0, 20)),
    st.tuples(st.just("end"), st.sampled_from(["shop", ""])),
    st.tuples(st.just("somebody else"), st.sampled_from(KEYS)),
    st.tuples(st.just("time"), st.sampled_from([0.5, 3.0])),
)
preludes = st.builds(prelude, st.sampled_from(PRELUDES), st.sampled_from(KEYS))
scripts = st.builds(lambda begin, rest: begin + rest, preludes, st.lists(steps, max_size=12))


LAST_FINALIZER = [*prelude(["create", "mark", "delete"], KEYS[0]), ("write", "release", KEYS[0], "ok")]


@given(st.booleans(), scripts)
@example(True, LAST_FINALIZER)
@settings(max_examples=examples(600))
def test_no_read_is_older_than_an_own_write(cached: bool, script: list[Step]) -> None:
    async def play() -> None:
        bench, own = Bench(), dict[ObjectKey, int]()
        begin_at_start = ["shop", ""] if cached else []
        for name in begin_at_start:
            bench.stores[name].begin(0)
        for step in script:
            match step:
                case ("write", verb, key, fate):
                    await bench.write(verb, key, fate, own)
                case ("catch up", name, changes):
                    bench.stores[name].catch_up(changes)
                case ("bookmark", name):
                    bench.stores[name].bookmark()
                case ("begin", name, place) if not bench.stores[name].born:
                    # A list is never older than its beginning, which comes after the end of what was there before.
                    bench.stores[name].begin(max(place, bench.stores[name].ended))
                case ("end", name):
                    bench.stores[name].born = False
                    bench.stores[name].ended = len(bench.model.history)
                case ("somebody else", key):
                    if key in bench.model.objects:
                        old = bench.model.objects[key]
                        bench.model.put(key, old, uid=old["metadata"]["uid"])
                case ("time", seconds):
                    bench.clock.advance(seconds)
            await bench.check(own)

    asyncio.run(play())


@given(scripts)
@settings(max_examples=examples(100))
def test_when_the_caches_have_caught_up_they_are_asked_again(script: list[Step]) -> None:
    async def play() -> None:
        bench, own = Bench(), dict[ObjectKey, int]()
        for name in ("shop", ""):
            bench.stores[name].begin(0)
        for step in script:
            if step[0] == "write":
                _, verb, key, fate = step
                await bench.write(verb, key, fate, own)
        bench.clock.advance(10.0)
        await bench.check(own)
        bench.clock.advance(10.0)
        for store in bench.stores.values():
            store.bookmark()
        await bench.check(own)
        bench.model.request = None  # type: ignore[method-assign,assignment]  # who asks the server fails
        await bench.check(own)

    asyncio.run(play())
