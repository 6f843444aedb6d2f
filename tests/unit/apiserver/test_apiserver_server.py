"""The server on a socket: TLS, credentials, streams, the data file."""

from __future__ import annotations

import ssl
import stat
from pathlib import Path

import aiohttp
import anyio
import msgspec
import pytest
import yaml

from kopylite.apiserver.bootstrap.cluster import bootstrap
from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.errors import UsageError
from kopylite.wholefiles import write_private

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def create(server: ApiServer, name: str) -> int:
    body = msgspec.json.encode({"metadata": {"name": name}})
    return (await server.handle(HttpRequest.of("POST", CONFIG_MAPS, body=body))).status


async def test_the_kubeconfig_leads_a_client_in_over_tls(tmp_path: Path) -> None:
    async with ApiServer(ApiServerOptions(tls=True)) as server:
        config = yaml.safe_load(server.kubeconfig())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        assert cluster["server"] == server.url
        assert server.authority is not None
        trust = ssl.create_default_context(cadata=server.authority.certificate.decode())
        headers = {"Authorization": f"Bearer {user['token']}"}
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{server.url}/api/v1/namespaces", ssl=trust, headers=headers) as response:
                assert response.status == 200
                assert response.headers["Audit-Id"]
                assert response.headers["Cache-Control"] == "no-cache, private"
            async with session.get(f"{server.url}/api/v1/namespaces", ssl=trust) as response:
                assert (response.status, (await response.json())["reason"]) == (401, "Unauthorized")


async def test_a_client_certificate_names_user_and_groups(tmp_path: Path) -> None:
    async with ApiServer(ApiServerOptions(tls=True)) as server:
        assert server.authority is not None
        pair = server.authority.client("alice", ["team"])
        trust = ssl.create_default_context(cadata=server.authority.certificate.decode())
        (tmp_path / "c.pem").write_bytes(pair.certificate + pair.key)
        trust.load_cert_chain(tmp_path / "c.pem")
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews", ssl=trust, json={}
            ) as response,
        ):
            info = (await response.json())["status"]["userInfo"]
    assert (info["username"], info["groups"]) == ("alice", ["team", "system:authenticated"])


async def test_a_wrong_token_is_refused_even_where_anonymous_is_not() -> None:
    async with ApiServer(ApiServerOptions(anonymous=True)) as server, aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/version") as response:
            assert response.status == 200
        async with session.get(f"{server.url}/version", headers={"Authorization": "Bearer x"}) as response:
            assert response.status == 401


async def test_a_watch_sends_its_headers_at_once_and_its_events_as_they_come() -> None:
    async with ApiServer() as server, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {server.token}"}
        with anyio.fail_after(5):
            async with session.get(f"{server.url}{CONFIG_MAPS}?watch=1", headers=headers) as response:
                assert response.status == 200
                assert await create(server, "a") == 201
                event = msgspec.json.decode(await response.content.readline())
                assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
            collection = server.world.store.collection("configmaps")
            while collection.subscriptions:  # noqa: ASYNC110 - the server tells nobody when a client has left
                await anyio.sleep(0.01)


async def test_large_answers_are_compressed_when_asked() -> None:
    async with ApiServer() as server:
        body = msgspec.json.encode({"metadata": {"name": "big"}, "data": {"x": "x" * 300_000}})
        assert (await server.handle(HttpRequest.of("POST", CONFIG_MAPS, body=body))).status == 201
        headers = {"Authorization": f"Bearer {server.token}", "Accept-Encoding": "gzip"}
        async with (
            aiohttp.ClientSession(auto_decompress=False) as session,
            session.get(f"{server.url}{CONFIG_MAPS}/big", headers=headers) as response,
        ):
            assert response.headers["Content-Encoding"] == "gzip"
            assert len(await response.read()) < 10_000


async def test_warnings_are_headers_of_their_own() -> None:
    async with ApiServer() as server, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {server.token}"}
        body = {"metadata": {"name": "a"}, "foo": 1, "bar": 2}
        async with session.post(f"{server.url}{CONFIG_MAPS}", headers=headers, json=body) as response:
            assert response.headers.getall("Warning") == [
                '299 - "unknown field \\"foo\\""',
                '299 - "unknown field \\"bar\\""',
            ]


async def test_objects_survive_in_the_data_file_and_old_versions_do_not(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    async with ApiServer(ApiServerOptions(listen=False, data=path)) as server:
        assert await create(server, "a") == 201
        version = server.world.store.version
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with ApiServer(ApiServerOptions(listen=False, data=path)) as server:
        assert server.world.store.version == version
        response = await server.handle(HttpRequest.of("GET", f"{CONFIG_MAPS}/a"))
        assert response.status == 200
        watch = await server.handle(HttpRequest.of("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={version - 1}"))
        assert watch.stream is not None
        assert b'"reason":"Expired"' in await anext(watch.stream)
        await watch.stream.aclose()


async def test_a_taken_port_is_a_usage_error() -> None:
    async with ApiServer() as server:
        with pytest.raises(UsageError, match="cannot listen"):
            async with ApiServer(ApiServerOptions(port=server.port)):
                raise AssertionError("two servers at one port")


async def test_a_fork_goes_its_own_way() -> None:
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        await create(server, "a")
        async with ApiServer(ApiServerOptions(listen=False), store=server.world.store.fork()) as twin:
            assert await create(twin, "a") == 409
            assert await create(twin, "b") == 201
            assert (await server.handle(HttpRequest.of("GET", f"{CONFIG_MAPS}/b"))).status == 404


async def test_bootstrapping_twice_changes_nothing() -> None:
    async with ApiServer(ApiServerOptions(listen=False)) as server:
        version = server.world.store.version
        await bootstrap(server.core)
        assert server.world.store.version == version


def test_a_kubeconfig_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("old")
    path.chmod(0o644)
    write_private(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)
