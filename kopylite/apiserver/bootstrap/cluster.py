"""What a cluster holds before the first client comes: `objects.jsonl`, from a real server, and what is its own."""

from __future__ import annotations

import functools
import ipaddress
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from kopylite.apiserver.core import Core
from kopylite.apiserver.request.request import AUTHENTICATED, MASTERS, HttpRequest, User
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.world import World
from kopylite.apiserver.writes.metadata import timestamp

_SERVER: Final = User("system:apiserver", (MASTERS, AUTHENTICATED))
_AGENT: Final = {"user-agent": "kube-apiserver/v1"}
# Whose fields they are, of those that are not kube-apiserver's.
_FLOW_CONTROL: Final = "flowcontrol.apiserver.k8s.io"
_CREATORS: Final = {_FLOW_CONTROL: "api-priority-and-fairness-config-producer-v1"}
_STATUS_WRITERS: Final = {
    "FlowSchema": "api-priority-and-fairness-config-consumer-v1",
    "ServiceCIDR": "kubernetes-service-cidr-controller",
}
# An address that validation lets pass, unlike the loopback that the server may listen on (RFC 5737).
_ADDRESS: Final = ipaddress.ip_address("192.0.2.1")


@dataclass(frozen=True, slots=True)
class _Stored:
    """One bootstrap object as a server of this process has stored it."""

    storage: str
    key: str
    body: bytes
    encoding_version: str
    fields: dict[str, str] | None


# By minor: what the first server of this process has made of the bootstrap objects. The way of a write takes a hundred
# times longer than a copy, and tests start thousands of servers.
_made: dict[int, list[_Stored]] = {}


async def bootstrap(core: Core, certificate: bytes = b"") -> None:
    """Create what is missing; what is there, from a data file, is left as it is.

    Args:
        certificate: of the CA that signs clients, PEM, for extension servers; b"" for none.
    """
    world = core.world
    made = _made.get(world.minor)
    if made is not None and not world.store.collection("namespaces").records:
        _copy(world, made)
    else:
        stored = [found for obj in _objects() if (found := await _make(core, obj)) is not None]
        if made is None and len(stored) == len(_objects()):
            _made[world.minor] = stored
    for obj in _own_objects(world, certificate):
        await _make(core, obj)


@functools.cache
def _objects() -> list[dict[str, Any]]:
    lines = Path(__file__).with_name("objects.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


def _own_objects(world: World, certificate: bytes) -> Iterator[dict[str, Any]]:
    """What differs from server to server."""
    kubernetes = {"name": "kubernetes", "namespace": "default"}
    port = {"name": "https", "port": 6443, "protocol": "TCP"}
    yield {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {**kubernetes, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": str(_ADDRESS)}], "ports": [port]}],
    }
    yield {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**kubernetes, "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [str(_ADDRESS)], "conditions": {"ready": True}}],
        "ports": [port],
    }
    today = timestamp(world.clock.now()).partition("T")[0]
    yield _config_map("kube-apiserver-legacy-service-account-token-tracking", {"since": today})
    if certificate:
        yield _config_map("extension-apiserver-authentication", {"client-ca-file": certificate.decode()})


def _config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def _make(core: Core, obj: dict[str, Any]) -> _Stored | None:
    """Create an object as the server's own client; None: it was there, or its kind is not served."""
    world, metadata = core.world, obj["metadata"]
    resource = world.registry.find_kind(obj["apiVersion"], obj["kind"])
    if resource is None:
        return None
    key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
    if world.store.get(resource.storage, key) is not None:
        return None
    path = _path(resource, metadata.get("namespace", ""))
    creator = _CREATORS.get(resource.group, "kube-apiserver")
    await _send(core, "POST", f"{path}?fieldManager={creator}", obj, "application/json")
    writer = _STATUS_WRITERS.get(obj["kind"])
    if writer is not None:
        status = _dated(obj["status"], timestamp(world.clock.now()))
        patch = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": metadata["name"]}}
        path = f"{path}/{metadata['name']}/status?fieldManager={writer}&force=true"
        await _send(core, "PATCH", path, patch | {"status": status}, "application/apply-patch+yaml")
    record = world.store.get(resource.storage, key)
    assert record is not None
    return _Stored(resource.storage, key, record.body, record.encoding_version, record.fields)


def _copy(world: World, made: list[_Stored]) -> None:
    """Store what another server of this process has made, as if it had been made here and now."""
    now = timestamp(world.clock.now())
    for one in made:
        obj = msgspec.json.decode(one.body)
        metadata = obj["metadata"]
        metadata["uid"], metadata["creationTimestamp"] = str(uuid.uuid4()), now
        for entry in metadata.get("managedFields") or ():
            entry["time"] = now
        if "status" in obj:
            obj["status"] = _dated(obj["status"], now)
        world.store.create(one.storage, one.key, obj, encoding_version=one.encoding_version, fields=one.fields)


def _dated(status: dict[str, Any], now: str) -> dict[str, Any]:
    if "conditions" not in status:
        return status
    return status | {"conditions": [{**condition, "lastTransitionTime": now} for condition in status["conditions"]]}


def _path(resource: Resource, namespace: str) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/namespaces/{namespace}/{resource.plural}" if namespace else f"{root}/{resource.plural}"


async def _send(core: Core, method: str, path: str, obj: dict[str, Any], media: str) -> None:
    headers = {**_AGENT, "content-type": media}
    response = await core.handle(
        HttpRequest.of(method, path, headers=headers, body=msgspec.json.encode(obj), user=_SERVER)
    )
    if response.status >= 400:
        raise RuntimeError(f"bootstrap failed: {method} {path}: {response.body.decode()}")
