"""The serving of webhooks: certificates that are rotated, missing or bad, and what a Manager says of it."""

from __future__ import annotations

import io
import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from kopylite import App, Kind, Unstructured
from kopylite.clock import SYSTEM_CLOCK
from kopylite.manager.webhooks import webhook_service
from kopylite.reconcile import Environment
from kopylite.serving import Address
from kopylite.serving.authority import CertificateAuthority
from kopylite.testing import EmbeddedCluster, VirtualClock
from kopylite.webhooks import service as module
from kopylite.webhooks.service import WebhookService, WebhookSettings
from tests.operators import eventually
from tests.unit.webhooks.test_webhooks_admission import Shop, review_of, shop


def write(folder: Path, authority: CertificateAuthority) -> None:
    pair = authority.server(["127.0.0.1"])
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[WebhookService]:
    app = App("shop")

    @app.validator(Shop)
    async def check(ctx: Any, review: Any) -> None: ...

    boxes = [Kind(f"a.example.com/{version}", "Box", "boxes", True) for version in ("v1", "v2")]

    @app.converter(boxes[0], versions=boxes[1:])
    def convert(obj: Any, to: Any) -> Any:
        if obj["spec"]["text"] == "bad":
            raise ValueError("bad")
        return Unstructured({**obj, "apiVersion": to.api_version})

    async with EmbeddedCluster() as cluster, cluster.client() as client, anyio.create_task_group() as tasks:
        environment = Environment("shop", client, logger=logging.getLogger("shop"))
        settings = WebhookSettings(address=Address("127.0.0.1", 0), certs=str(folder))
        service = WebhookService([(app, environment)], settings, SYSTEM_CLOCK)
        tasks.start_soon(service.run)
        yield service
        tasks.cancel_scope.cancel()


async def ready(service: WebhookService) -> None:
    with anyio.fail_after(30):
        await service.wait_ready()


async def call(service: WebhookService, *trusted: CertificateAuthority) -> int:
    context = ssl.create_default_context(cadata="".join(one.certificate.decode() for one in trusted))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        url = f"https://{service.server.address}/validate-example-com-v1-shop"
        async with session.post(url, data=review_of(shop()), headers={"Content-Type": "application/json"}) as response:
            return response.status


async def test_credentials_that_cannot_be_read_for_a_while_end_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)
    async with EmbeddedCluster(token="a-token") as cluster, anyio.create_task_group() as tasks:
        token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
        kubeconfig.write_text(cluster.kubeconfig.read_text().replace("token: a-token", f"tokenFile: {token}"))
        token.write_text("a-token")
        async with cluster.client(kubeconfig) as client:
            token.unlink()
            environment = Environment("shop", client, logger=logging.getLogger("shop"))
            settings = WebhookSettings(address=Address("127.0.0.1", 0))
            service = WebhookService([(App("shop"), environment)], settings, SYSTEM_CLOCK)
            tasks.start_soon(service.run)
            await eventually(lambda: "token cannot be read: No such file" in caplog.text, "it is told")
            token.write_text("a-token")
            await ready(service)
            tasks.cancel_scope.cancel()
    assert "webhooks are not served yet, and it is tried again" in caplog.text


async def test_a_certificate_is_rotated_in_mid_traffic_and_a_bad_one_is_not_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.02)
    caplog.set_level(logging.INFO)
    old, new = CertificateAuthority("old"), CertificateAuthority("new")
    write(tmp_path, old)
    async with serving(tmp_path) as service:
        await ready(service)
        assert await call(service, old) == 200
        (tmp_path / "tls.key").write_bytes(b"garbage")
        with anyio.fail_after(30):
            while "the last one is still served" not in caplog.text:
                assert await call(service, old) == 200
        write(tmp_path, new)
        with anyio.fail_after(30):
            while True:
                try:
                    assert await call(service, new) == 200
                    break
                except aiohttp.ClientConnectorCertificateError:
                    assert await call(service, old, new) == 200
        assert service.check() is None
    assert "PRIVATE" not in caplog.text


async def test_a_certificate_that_has_expired_is_told_and_not_ready_until_it_is_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.02)
    write(tmp_path, CertificateAuthority(days=1, clock=_TwoDaysAgo()))
    async with serving(tmp_path) as service:
        await eventually(lambda: service.server.listening, "it is served")
        assert service.check() == "the API server will not take the certificate: certificate has expired"
        write(tmp_path, CertificateAuthority())
        await ready(service)
    assert caplog.text.count(f"certificate has expired; renew it in {tmp_path}. See ") == 1


class _TwoDaysAgo(VirtualClock):
    def now(self) -> datetime:
        return SYSTEM_CLOCK.now() - timedelta(days=2)


async def test_a_folder_is_swapped_as_the_kubelet_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.02)
    authorities = [CertificateAuthority("old"), CertificateAuthority("new")]
    for number, authority in enumerate(authorities):
        (tmp_path / f"..{number}").mkdir()
        write(tmp_path / f"..{number}", authority)
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).symlink_to(tmp_path / "..data" / name)
    (tmp_path / "..data").symlink_to("..0")
    async with serving(tmp_path) as service:
        await ready(service)
        assert await call(service, authorities[0]) == 200
        (tmp_path / "..data_tmp").symlink_to("..1")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        with anyio.fail_after(30):
            while True:
                try:
                    assert await call(service, authorities[1]) == 200
                    break
                except aiohttp.ClientConnectorCertificateError:
                    continue


async def test_a_list_is_converted_in_one_call_however_large_and_one_bad_object_is_named(tmp_path: Path) -> None:
    """Larger than an admission review may be."""
    write(tmp_path, authority := CertificateAuthority())
    async with serving(tmp_path) as service:
        await ready(service)
        objects = [box(f"box-{number}", "x" * 5000) for number in range(2000)]
        context = ssl.create_default_context(cadata=authority.certificate.decode())
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

            async def convert(*sent: Any) -> Any:
                request = {"uid": "u", "desiredAPIVersion": "a.example.com/v2", "objects": sent}
                body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
                url = f"https://{service.server.address}/convert?timeout=30s"
                data, headers = io.BytesIO(json.dumps(body).encode()), {"Content-Type": "application/json"}
                async with session.post(url, data=data, headers=headers) as response:
                    assert response.status == 200
                    return (await response.json())["response"]

            answer = await convert(*objects)
            assert answer["result"] == {"status": "Success"}
            assert [obj["metadata"]["name"] for obj in answer["convertedObjects"]] == [
                obj["metadata"]["name"] for obj in objects
            ]
            answer = await convert(*objects[:1500], box("bad", "bad"), *objects[1500:])
            assert answer["result"]["status"] == "Failure"
            assert answer["result"]["message"].startswith("Box default/bad cannot be converted")
            assert answer["convertedObjects"] == []


def box(name: str, text: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "a.example.com/v1", "kind": "Box", "metadata": metadata, "spec": {"text": text}}


async def test_without_a_certificate_it_is_not_ready_and_says_which_file_is_missing(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        with anyio.fail_after(30):
            while "tls.crt" not in (service.check() or ""):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        write(tmp_path, CertificateAuthority())
        await ready(service)


def test_an_app_without_webhooks_has_no_service() -> None:
    from kopylite.manager import Options
    from kopylite.metrics import Metrics

    assert webhook_service([], Options(), None, Metrics(), SYSTEM_CLOCK) is None  # type: ignore[arg-type]
