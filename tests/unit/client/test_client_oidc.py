from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Callable
from urllib.parse import parse_qs

import pytest
import trustme

from kopylite.client.oidc import oidc_provider
from kopylite.errors import KubeconfigError
from kopylite.testing.clock import VirtualClock
from tests.unit.client.scripted import Act, Received, ScriptedServer, answer, reset

LATER = 4102444800  # the year 2100


def jwt(expires: object) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in ({}, {"exp": expires})]
    return ".".join([*parts, "signature"])


def config(url: str = "https://127.0.0.1:9", **more: str) -> dict[str, str]:
    return {"idp-issuer-url": url, "client-id": "me", "refresh-token": "refresh", **more}


def provider(url: Callable[[], str], tokens: dict[str, str], accepted: str = "Basic bWU6aHVzaA==") -> Act:
    """A script of an OpenID Connect provider that knows the client by its header, or (accepted "") by the form."""

    async def serve(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.method == "GET":
            assert received.target == "/.well-known/openid-configuration"
            writer.write(answer(200, json.dumps({"token_endpoint": f"{url()}/token"}).encode()))
            return
        form = parse_qs(received.body.decode())
        assert form["grant_type"] == ["refresh_token"]
        known = received.headers.get("authorization", "") == accepted
        if known and not accepted:
            known = form["client_id"] == ["me"]
        writer.write(answer(200, json.dumps(tokens).encode()) if known else answer(401, b"{}"))

    return serve


async def test_a_token_is_used_while_it_lasts() -> None:
    token = jwt(LATER)
    identity = await oidc_provider(config(**{"id-token": token}), "file").fetch()
    assert identity.authorization == f"Bearer {token}"


@pytest.mark.parametrize("accepted", ["Basic bWU6aHVzaA==", ""])
async def test_a_token_that_has_ended_is_renewed(accepted: str, caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    urls: list[str] = []
    expires = clock.now().timestamp() + 100
    tokens = {"id_token": jwt(expires), "refresh_token": "next"}
    async with ScriptedServer(provider(lambda: urls[0], tokens, accepted)) as server:
        urls.append(server.url)
        settings = config(server.url, **{"id-token": jwt(0), "client-secret": "hush"})
        credentials = oidc_provider(settings, "file", clock=clock)
        assert (await credentials.fetch()).authorization == f"Bearer {tokens['id_token']}"
        assert "kept in this process only" in caplog.text
        clock.advance(91)
        assert credentials.current() is None, "renewed before it ends"
        await credentials.fetch()
    assert parse_qs(server.received[-1].body.decode())["refresh_token"] == ["next"]


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/token/", "/token/"),
        ("/v2.0/token?p=b2c_1_sign_in", "/v2.0/token?p=b2c_1_sign_in"),
        ("/täken%20", "/t%C3%A4ken%20"),
        ("", "/"),
    ],
)
async def test_tokens_are_asked_for_just_where_the_provider_says(path: str, target: str) -> None:
    async def serve(received: Received, writer: asyncio.StreamWriter) -> None:
        document = {"id_token": jwt(LATER), "token_endpoint": f"{server.url}{path}"}
        writer.write(answer(200, json.dumps(document).encode()))

    async with ScriptedServer(serve) as server:
        await oidc_provider(config(server.url), "file").fetch()
    assert server.received[1].target == target


async def test_the_provider_is_verified_with_and_without_an_authority_of_its_own() -> None:
    ca = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(tls)
    urls: list[str] = []
    tokens = {"id_token": jwt(LATER)}
    async with ScriptedServer(provider(lambda: urls[0], tokens, ""), tls=tls) as server:
        urls.append(server.url)
        with pytest.raises(KubeconfigError, match=r"no answer from the provider https://.*certificate"):
            await oidc_provider(config(server.url), "file").fetch()
        assert not server.received
        authority = {"idp-certificate-authority-data": base64.b64encode(ca.cert_pem.bytes()).decode()}
        await oidc_provider(config(server.url, **authority), "file").fetch()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (reset, "no answer from the provider"),
        (answer(302, b"", Location="http://127.0.0.1:9/"), "answered HTTP 302"),
        (answer(500, b"hush"), "answered HTTP 500"),
        (answer(200, b"<html>hush"), "is unusable"),
        (answer(200, b"[]"), "is unusable"),
        (answer(200, b"{}"), "names no token_endpoint"),
        (answer(200, b'{"token_endpoint": 5}'), "is unusable"),
        (answer(200, b'{"token_endpoint": "http://example.com/token"}'), "plain HTTP"),
        (answer(200, b"[" * 100_000), "is unusable"),
        (answer(200, b" " * 1_100_000), "more than 1 MiB"),
        (b"SSH-2.0\r\n\r\n", "no answer from the provider"),
    ],
)
async def test_whatever_the_provider_answers_is_a_documented_error(script: bytes | Act, message: str) -> None:
    async with ScriptedServer(script) as server:
        with pytest.raises(KubeconfigError, match=f"file: .*{message}") as caught:
            await oidc_provider(config(server.url), "file").fetch()
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("tokens", [{}, {"id_token": "no token"}, {"id_token": jwt("x")}, {"id_token": "a\nb.c.d"}])
async def test_an_unusable_renewal_is_a_documented_error(tokens: dict[str, str]) -> None:
    urls: list[str] = []
    async with ScriptedServer(provider(lambda: urls[0], tokens, "")) as server:
        urls.append(server.url)
        with pytest.raises(KubeconfigError, match=r"id_token|id-token"):
            await oidc_provider(config(server.url), "file").fetch()


async def test_what_cannot_be_renewed_is_an_error() -> None:
    with pytest.raises(KubeconfigError, match="file: the id-token has ended"):
        await oidc_provider(config(**{"id-token": jwt(0), "refresh-token": ""}), "file").fetch()
    with pytest.raises(KubeconfigError, match="file: the id-token is no JSON web token"):
        await oidc_provider(config(**{"id-token": "a.%.c"}), "file").fetch()
    with pytest.raises(KubeconfigError, match="needs `client-id`"):
        oidc_provider({"idp-issuer-url": "https://x"}, "file")
    with pytest.raises(KubeconfigError, match="plain HTTP"):
        oidc_provider(config("http://example.com"), "file")
