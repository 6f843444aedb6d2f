"""Paths that are no objects: metrics, the index, keys for verifiers, and sub-resources that lead to a kubelet."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kopylite.apiserver.request.request import User
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from tests.unit.apiserver.conftest import Api

PODS = "/api/v1/namespaces/default/pods"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def text(api: Any, path: str, **headers: str) -> str:
    response = await api.respond("GET", path, **headers)
    assert response.status == 200, response.body
    return str(response.body.decode())


Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(body: str) -> Samples:
    """By name and labels."""
    families = text_string_to_metric_families(body)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def total(found: Samples, name: str, **labels: str) -> float:
    return sum(value for (n, own), value in found.items() if n == name and labels.items() <= dict(own).items())


async def test_metrics_count_requests_objects_and_open_watches(api: Any) -> None:
    before = samples(await text(api, "/metrics"))
    await api.config_map("a")
    await api.call("GET", "/api/v1/namespaces/default/configmaps/nope")
    watch = await api.watch("/api/v1/configmaps?watch=1")
    after = samples(await text(api, "/metrics"))
    about = {"resource": "configmaps", "version": "v1"}
    made = {**about, "verb": "POST"}
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds_count"):
        assert total(after, name, **made) == total(before, name, **made) + 1
    assert total(after, "apiserver_request_total", **about, verb="GET", code="404", scope="resource") == 1
    assert total(after, "apiserver_request_total", **about, verb="WATCH") == 1
    assert total(after, "apiserver_request_duration_seconds_count", **about, verb="WATCH") == 0
    assert total(after, "apiserver_longrunning_requests", resource="configmaps") == 1
    objects = {"resource": "configmaps", "group": ""}
    name = "apiserver_resource_objects"
    assert total(after, name, **objects) == total(before, name, **objects) + 1
    await watch.close()


async def test_labels_are_never_a_clients_text(api: Any) -> None:
    before = len(samples(await text(api, "/metrics")))
    for number in range(20):
        await api.respond("GET", f"/apis/g{number}.example.com/v1/things/x")
        await api.respond("GET", f'/nope{number}"\n')
        await api.respond(f"VERB{number}", "/api/v1/pods")
    body = await text(api, "/metrics")
    assert len(samples(body)) < before + 100
    assert "g1.example.com" not in body
    assert "VERB1" not in body


async def test_the_index_names_what_is_served_and_nothing_is_below_it(widgets: Any) -> None:
    paths = (await widgets.get("/"))["paths"]
    assert {"/metrics", "/openid/v1/jwks", "/apis/example.com/v1", "/api/v1", "/healthz/ping", "/version"} <= set(paths)
    assert paths == sorted(paths)
    for path in paths:
        assert (await widgets.respond("GET", path, accept="*/*")).status == 200, path
    for path in ("/metrics/x", "/openid", "/openid/v1/jwks/x", "/index.html/x", "/.well-known", "/nope"):
        assert (await widgets.respond("GET", path)).status == 404, path


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


async def token_of(api: Any, **spec: Any) -> str:
    body = await api.create(f"{ACCOUNTS}/default/token", {"spec": spec})
    return str(body["status"]["token"])


async def verify(api: Any, token: str) -> dict[str, Any]:
    """As a verifier does who knows nothing but the server's address. Raises InvalidSignature."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    document = msgspec.json.decode(await text(api, "/.well-known/openid-configuration"))
    head, claims, signature = token.split(".")
    header = msgspec.json.decode(decoded(head))
    assert header["alg"] in document["id_token_signing_alg_values_supported"]
    keys = msgspec.json.decode(await text(api, "/openid/v1/jwks"))["keys"]
    (key,) = [key for key in keys if key["kid"] == header["kid"]]
    x, y = (int.from_bytes(decoded(key[axis]), "big") for axis in "xy")
    raw = decoded(signature)
    r, s = (int.from_bytes(half, "big") for half in (raw[:32], raw[32:]))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(utils.encode_dss_signature(r, s), f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    found: dict[str, Any] = msgspec.json.decode(decoded(claims))
    assert found["iss"] == document["issuer"]
    return found


@pytest.fixture
async def account(api: Any) -> Any:
    status, body = await api.call("POST", ACCOUNTS, {"metadata": {"name": "default"}})
    assert status in (201, 409), body
    return api


async def test_a_token_is_verified_by_the_published_key(account: Any) -> None:
    claims = await verify(account, await token_of(account, audiences=["vault"]))
    assert (claims["sub"], claims["aud"]) == ("system:serviceaccount:default:default", ["vault"])


async def test_a_forged_or_foreign_token_is_nobody(account: Any) -> None:
    token = await token_of(account)
    head, claims, signature = token.split(".")
    forged = decoded(claims).replace(b"default:default", b"default:another")
    middle = base64.urlsafe_b64encode(forged).rstrip(b"=").decode()
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    for bad in (f"{head}.{middle}.{signature}", f"{none}.{claims}.", f"{head}.{claims}.{signature[:-4]}", "a.b.c", "é"):
        review = await account.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": bad}})
        assert not review["status"].get("authenticated"), bad


async def test_the_key_outlives_a_restart_with_a_data_file(tmp_path: Path) -> None:
    options = ApiServerOptions(listen=False, data=tmp_path / "data", data_sync=False)
    async with ApiServer(options) as server:
        api = Api(server)
        await api.call("POST", ACCOUNTS, {"metadata": {"name": "default"}})
        token = await token_of(api)
    async with ApiServer(options) as server:
        api = Api(server)
        await verify(api, token)
        review = await api.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}})
        assert review["status"]["authenticated"]


async def test_the_private_key_is_no_object_of_the_api(account: Any) -> None:
    await token_of(account)
    for path in ("/api/v1/signing-keys", "/apis/kopylite/v1/signing-keys", "/apis/kopylite"):
        assert (await account.respond("GET", path)).status == 404, path
    assert "PRIVATE" not in await text(account, "/openid/v1/jwks")
    assert '"d"' not in await text(account, "/openid/v1/jwks")


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "a"}], **spec}}


@pytest.fixture
async def nodes(account: Any) -> Any:
    """Two nodes, one without addresses, and a pod on each."""
    status = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": "here"}]}
    await account.create("/api/v1/nodes", {"metadata": {"name": "named"}, "status": status})
    await account.create("/api/v1/nodes", {"metadata": {"name": "bare"}})
    for node in ("named", "bare"):
        await account.create(PODS, pod(node, nodeName=node))
    await account.create(PODS, pod("free"))
    return account


async def test_what_needs_a_kubelet_fails_as_without_one(nodes: Any) -> None:
    async def message(method: str, path: str, **headers: str) -> tuple[int, str]:
        status, body = await nodes.call(method, f"{PODS}/{path}", **headers)
        return status, body.get("message", "")

    url = "https://here:10250/containerLogs/default/named/a?tailLines=1"
    assert await message("GET", "named/log?tailLines=1") == (500, f'Get "{url}": dial tcp: lookup here: no such host')
    assert await message("GET", "bare/log") == (500, "no preferred addresses found; known addresses: []")
    assert await message("GET", "free/log") == (204, "")
    for name in ("exec", "attach", "portforward"):
        assert await message("POST", f"named/{name}") == (400, "Upgrade request required")
        code, said = await message("POST", f"named/{name}", connection="Upgrade", upgrade="SPDY/3.1")
        assert (code, said) == (500, "error dialing backend: dial tcp: lookup here: no such host")
        assert await message("POST", f"free/{name}") == (400, "pod free does not have a host assigned")
        assert (await message("POST", f"nope/{name}"))[0] == 404
    assert await message("GET", "named/proxy/x/y") == (400, "address not allowed")
    ip = {"status": {"podIP": "10.1.2.3"}}
    await nodes.call("PATCH", f"{PODS}/named/status", ip)
    refused = "error trying to reach service: dial tcp 10.1.2.3:8080: connect: connection refused"
    assert await message("GET", "named:8080/proxy/x/y") == (503, refused)


async def test_a_service_with_endpoints_is_not_reached_either(nodes: Any) -> None:
    path = "/api/v1/namespaces/default/services/s/proxy/x"
    status, body = await nodes.call("GET", path)
    assert (status, body["message"]) == (503, 'no endpoints available for service "s"')
    piece = {
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"port": 80}],
        "endpoints": [{"addresses": ["10.1.2.3"]}],
    }
    await nodes.create("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", piece)
    status, body = await nodes.call("GET", path)
    assert status == 503
    assert body["message"].endswith("dial tcp 10.1.2.3:80: connect: connection refused")


async def test_rights_to_pods_are_none_to_their_shells() -> None:
    async with ApiServer(ApiServerOptions(listen=False, rbac=True)) as server:
        api = Api(server)
        stranger = User("alice", ("system:authenticated",))
        for path in (f"{PODS}/a/exec", f"{PODS}/a/proxy/x", "/metrics"):
            assert (await api.respond("GET", path, user=stranger)).status == 403, path
