"""CRDs of well-known projects behave on the embedded server as on a real one.

They are other people's texts: KOPYLITE_FIELD_CRDS names a folder of YAML files, which are read in place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml

from kopylite.client import ApiRequest, HttpTransport, load_config
from kopylite.testing import Cluster

FOLDER = os.environ.get("KOPYLITE_FIELD_CRDS", "")
SERVED_SECONDS = 30

pytestmark = pytest.mark.skipif(not FOLDER, reason="KOPYLITE_FIELD_CRDS names no folder of CRDs")

Object = dict[str, Any]


def documents() -> list[tuple[str, Object]]:
    """Everything in the folder, with the name of its file, as JSON would have it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    paths = sorted(Path(FOLDER).glob("*.yaml")) if FOLDER else []
    found = [(path.stem, obj) for path in paths for obj in yaml.load_all(path.read_text(), Loader=loader) if obj]
    return json.loads(json.dumps(found, default=lambda time: f"{time.isoformat()}"))  # type: ignore[no-any-return]


def crds() -> list[Any]:
    found = [(stem, obj) for stem, obj in documents() if obj["kind"] == "CustomResourceDefinition"]
    return [pytest.param(obj, id=f"{stem}-{obj['spec']['names']['plural']}") for stem, obj in found]


class Server:
    """One control plane, asked directly: what it answers is what is compared."""

    def __init__(self, cluster: Cluster) -> None:
        self._transport = HttpTransport(load_config(kubeconfig=str(cluster.kubeconfig)))

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def ask(self, method: str, path: str, body: Object | None = None, **params: str) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        request = ApiRequest(method, path, params, content, "application/json")
        answer = await self._transport.request(request)
        return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else answer.body.decode()

    async def install(self, crd: Object) -> Object:
        """Create the CRD and wait until it is served and in OpenAPI v3. Returns it as stored."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        status, stored = await self.ask("POST", path, crd)
        assert status in (201, 409), stored
        with anyio.fail_after(SERVED_SECONDS):
            for version in served(crd):
                while not await self._published(crd, version):  # noqa: ASYNC110 - a poll; the server is far away
                    await anyio.sleep(0.1)
        return (await self.ask("GET", f"{path}/{crd['metadata']['name']}"))[1]  # type: ignore[no-any-return]

    async def _published(self, crd: Object, version: Object) -> bool:
        status, _ = await self.ask("GET", collection(crd, version))
        return status == 200 and bool(await self.schema(crd, version))

    async def schema(self, crd: Object, version: Object) -> Object | None:
        """The schema of a version in OpenAPI v3, without the prose."""
        status, document = await self.ask("GET", f"/openapi/v3/apis/{crd['spec']['group']}/{version['name']}")
        if status != 200:
            return None
        found: Object | None = without_prose(document["components"]["schemas"].get(schema_name(crd, version)))
        return found

    async def older_schema(self, crd: Object, version: Object) -> Object:
        """The same in OpenAPI v2, which a real server makes a little later."""
        with anyio.fail_after(SERVED_SECONDS):
            while True:
                _, document = await self.ask("GET", "/openapi/v2")
                if found := document["definitions"].get(schema_name(crd, version)):
                    return without_prose(found)  # type: ignore[no-any-return]
                await anyio.sleep(0.2)

    async def try_create(self, crd: Object, version: Object, obj: Object) -> dict[str, Any]:
        """What becomes of an object, without keeping it."""
        status, answer = await self.ask("POST", collection(crd, version), obj, dryRun="All", fieldValidation="Strict")
        if status == 201:
            return {"status": 201, **{key: value for key, value in answer.items() if key != "metadata"}}
        causes = answer.get("details", {}).get("causes", ())
        text = "" if causes else answer["message"]
        told = sorted((cause["reason"], cause.get("field", ""), cause["message"]) for cause in causes)
        return {"status": status, "reason": answer["reason"], "message": text, "causes": told}


def schema_name(crd: Object, version: Object) -> str:
    return ".".join([*reversed(crd["spec"]["group"].split(".")), version["name"], crd["spec"]["names"]["kind"]])


def served(crd: Object) -> list[Object]:
    return [version for version in crd["spec"]["versions"] if version["served"]]


def collection(crd: Object, version: Object) -> str:
    scope = "/namespaces/default" if crd["spec"]["scope"] == "Namespaced" else ""
    return f"/apis/{crd['spec']['group']}/{version['name']}{scope}/{crd['spec']['names']['plural']}"


def without_prose(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {k: without_prose(v) for k, v in schema.items() if k != "description" or isinstance(v, dict)}
    return [without_prose(inner) for inner in schema] if isinstance(schema, list) else schema


def samples(crd: Object, version: Object) -> Iterator[Object]:
    """Objects of a version: empty, with the wrong types, with what is required, with everything."""
    schema = version["schema"]["openAPIV3Schema"]
    head = {"apiVersion": f"{crd['spec']['group']}/{version['name']}", "kind": crd["spec"]["names"]["kind"]}
    head["metadata"] = {"name": "sample"}
    yield head
    yield {**head, "spec": "text"}
    yield {**head, "spec": {}, "surely": {"unknown": 1}}
    for everything in (False, True):
        yield {**fill(schema, everything), **head}


def fill(schema: Object, everything: bool) -> Any:
    """A value for a schema, by its types only: patterns, limits and rules are left to be violated."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "properties" in schema:
        wanted = schema["properties"] if everything else schema.get("required", ())
        return {name: fill(schema["properties"][name], everything) for name in wanted if name in schema["properties"]}
    kind = schema.get("type", "string" if schema.get("x-kubernetes-int-or-string") else "object")
    if kind == "array":
        return [fill(schema["items"], everything)] if everything or schema.get("minItems") else []
    return {"string": "a", "integer": 1, "number": 1, "boolean": True, "object": {}}[kind]


def own_samples(crd: Object, version: Object) -> list[Object]:
    """Objects of this version that lie in the folder, beside the CRDs."""
    head = (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"])
    return [obj for _, obj in documents() if (obj.get("apiVersion"), obj["kind"]) == head]


@pytest.mark.parametrize("crd", crds())
async def test_a_crd_of_the_field_is_established_published_and_used(crd: Object, embedded_cluster: Cluster) -> None:
    server = Server(embedded_cluster)
    try:
        stored = await server.install(crd)
        conditions = {c["type"]: c["status"] for c in stored["status"]["conditions"]}
        assert conditions["Established"] == conditions["NamesAccepted"] == "True"
        for version in served(crd):
            for sample in own_samples(crd, version):
                assert (await server.try_create(crd, version, sample))["status"] == 201
    finally:
        await server.aclose()


@pytest.mark.realserver
@pytest.mark.parametrize("crd", crds())
async def test_a_crd_of_the_field_behaves_as_on_a_real_server(
    crd: Object, real_cluster: Cluster, embedded_cluster: Cluster
) -> None:
    real, embedded = Server(real_cluster), Server(embedded_cluster)
    try:
        for server in (real, embedded):
            await server.install(crd)
        for version in served(crd):
            assert await embedded.schema(crd, version) == await real.schema(crd, version)
            assert await embedded.older_schema(crd, version) == await real.older_schema(crd, version)
            for sample in [*samples(crd, version), *own_samples(crd, version)]:
                assert await embedded.try_create(crd, version, sample) == await real.try_create(crd, version, sample)
    finally:
        await real.aclose()
        await embedded.aclose()
