"""APIServices follow what is served."""

from __future__ import annotations

from typing import Any

import msgspec

from kopylite.apiserver.request.request import ADMIN, HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


async def ask(server: ApiServer, method: str, path: str, body: Any = None) -> Any:
    headers = {"content-type": "application/json"}
    encoded = b"" if body is None else msgspec.json.encode(body)
    response = await server.handle(HttpRequest.of(method, path, headers=headers, body=encoded, user=ADMIN))
    assert response.status < 300, response.body
    return msgspec.json.decode(response.body)


async def names(server: ApiServer) -> set[str]:
    listed = await ask(server, "GET", "/apis/apiregistration.k8s.io/v1/apiservices")
    return {item["metadata"]["name"] for item in listed["items"]}


async def test_built_in_versions_are_there_from_the_start() -> None:
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        assert {"v1.", "v1.apps", "v2.autoscaling"} <= await names(server)
        apps = await ask(server, "GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
        assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}


async def test_a_custom_version_comes_and_goes_with_its_crd() -> None:
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        await ask(server, "POST", CRDS, CRD)
        assert "v1.example.com" in await names(server)
        await ask(server, "DELETE", f"{CRDS}/widgets.example.com")
        assert "v1.example.com" not in await names(server)
