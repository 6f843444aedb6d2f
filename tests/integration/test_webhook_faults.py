"""Webhooks in trouble, on the embedded and on a real API server: what fails, is ignored, or is not even noticed."""

from __future__ import annotations

import base64
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import web
from anyio.streams.tls import TLSAttribute
from cryptography.x509.oid import ExtendedKeyUsageOID

from kopylite import App, Context, Denied, Kind, Request, Review, Unstructured
from kopylite.client import Client, load_config
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import ApiError, Forbidden, InternalError
from kopylite.manager import Manager, Options
from kopylite.serving.authority import CertificateAuthority, IssuedCertificate
from kopylite.serving.authority import _subject as named
from kopylite.testing import Cluster, VirtualClock
from kopylite.webhooks import service as module
from kopylite.webhooks.registration import CONFIGURATIONS, CRD
from kopylite.webhooks.service import registration_of
from tests.operators import eventually
from tests.webhookserver import webhook_server

CONFIG_MAP = Kind("v1", "ConfigMap")
VALIDATING = CONFIGURATIONS["validate"]

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]


class _TenDaysAgo(VirtualClock):
    def now(self) -> datetime:
        return SYSTEM_CLOCK.now() - timedelta(days=10)


def config_map(namespace: str, name: str, label: str = "") -> Unstructured:
    metadata = {"name": name, "namespace": namespace, "labels": {"judge": label or namespace}}
    return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata)


@asynccontextmanager
async def managed(cluster: Cluster, client: Client, app: App, **options: Any) -> AsyncIterator[Manager]:
    """As `cluster.running`, with options of one's own."""
    connections = options.pop("connections", None)
    chosen = Options(
        metrics_address="off", health_address="off", grace_period=5, webhook_address="127.0.0.1:0",
        webhook_url="https://127.0.0.1", webhook_manage=True, **options,
    )  # fmt: skip
    manager = Manager(app, replace(load_config(str(cluster.kubeconfig)), max_connections=connections), chosen)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(manager.run)
        with anyio.fail_after(30):
            await manager.wait_synced()
        yield manager
        await registration_of(app, client).withdraw()
        manager.stop()


@asynccontextmanager
async def https(issued: IssuedCertificate) -> AsyncIterator[int]:
    """A port that answers to TLS with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(issued.certificate + issued.key)
        file.flush()
        context.load_cert_chain(file.name)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=500)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def webhook(name: str, config: Mapping[str, Any], policy: str, timeout: int = 10) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    return {
        "name": f"{name}.example.com", "clientConfig": config, "failurePolicy": policy, "timeoutSeconds": timeout,
        "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "objectSelector": {"matchLabels": {"judge": "fault"}},
    }  # fmt: skip


async def refused(client: Client, namespace: str, error: type[ApiError], text: str) -> None:
    """A real API server learns of another configuration a moment after it is stored."""
    last = ""
    with anyio.move_on_after(30):
        while True:
            try:
                await client.create(config_map(namespace, "a", "fault"), dry_run=True)
            except ApiError as found:
                last = found.message
                if isinstance(found, error) and text in last:
                    return
            await anyio.sleep(0.02)
    raise AssertionError(f"no refusal with {text!r}, but {last!r}")


async def test_what_fails_is_an_error_or_is_ignored_by_its_policy(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    expired = CertificateAuthority("expired", days=5, clock=_TenDaysAgo())
    good, stranger = CertificateAuthority("good"), CertificateAuthority("stranger")
    trusted_itself = stranger.server(["127.0.0.1"])
    async with (
        webhook_server() as hooks,
        https(expired.server(["127.0.0.1"])) as expired_port,
        https(good.server(["elsewhere.example.com"])) as misnamed_port,
        https(good._leaf(named("localhost"), ExtendedKeyUsageOID.SERVER_AUTH, None)) as common_name_port,
        https(trusted_itself) as strange_port,
    ):
        faults = [
            ({"url": "https://127.0.0.1:1/down"}, "connection refused", 10),
            (hooks.client_config("slow"), "context deadline exceeded", 1),
            (trusted(good.certificate, strange_port), "x509: certificate signed by unknown authority", 10),
            (trusted(trusted_itself.certificate, strange_port), "an error on the server", 10),
            (
                trusted(good.certificate, common_name_port, "localhost"),
                "x509: certificate relies on legacy Common Name field, use SANs instead",
                10,
            ),
            (
                trusted(expired.certificate, expired_port),
                "x509: certificate has expired or is not yet valid: current time 2",
                10,
            ),
            (
                trusted(good.certificate, misnamed_port),
                "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
                10,
            ),
            (hooks.client_config("wrong-uid"), "expected response.uid=", 10),
        ]
        made = await client.create(configuration(f"{namespace}-faults", []))
        for config, text, timeout in faults:
            made = await configure(client, made, webhook("fault", config, "Fail", timeout))
            await refused(client, namespace, InternalError, 'failed calling webhook "fault.example.com"')
            await refused(client, namespace, InternalError, text)
            ignored = webhook("fault", config, "Ignore", timeout)
            made = await configure(client, made, ignored, webhook("deny", hooks.client_config("deny-message"), "Fail"))
            await refused(client, namespace, ApiError, "not today")
        await client.delete(made)


def trusted(bundle: bytes, port: int, host: str = "127.0.0.1") -> dict[str, Any]:
    return {"url": f"https://{host}:{port}/x", "caBundle": base64.b64encode(bundle).decode()}


def configuration(name: str, webhooks: list[Any]) -> Unstructured:
    wire = {"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, "metadata": {"name": name}}
    return Unstructured({**wire, "webhooks": webhooks})


async def configure(client: Client, made: Unstructured, *webhooks: dict[str, Any]) -> Unstructured:
    return await client.update(Unstructured({**made, "webhooks": list(webhooks)}))


async def test_an_operator_whose_writes_pass_its_own_webhook_does_not_wait_for_itself(
    cluster: Cluster, client: Client, namespace: str
) -> None:
    """One worker, one connection; and the webhook writes what the webhook is called for, too."""
    app = App(f"own-{namespace}")
    seen: list[str] = []

    @app.on_start
    async def begin(ctx: Context) -> None:
        await ctx.client.create(config_map(namespace, "at-the-start"))

    @app.validator(CONFIG_MAP, labels={"judge": namespace}, timeout=5, side_effects="NoneOnDryRun")
    async def check(ctx: Context, review: Review[Unstructured]) -> None:
        seen.append(review.name)
        if review.namespace == namespace and review.name != "noted" and not review.dry_run:
            await ctx.client.apply(config_map(namespace, "noted"))

    @app.reconciler(CONFIG_MAP, workers=1)
    async def reconcile(ctx: Context, request: Request) -> None:
        if request.name == "at-the-start":
            await ctx.client.apply(config_map(namespace, "result"))

    async with managed(cluster, client, app, namespaces=(namespace,), workers=1, connections=1):
        with anyio.fail_after(20):
            while await client.live.find(CONFIG_MAP, "result", namespace=namespace) is None:  # noqa: ASYNC110
                await anyio.sleep(0.02)
    assert {"at-the-start", "result", "noted"} <= set(seen)


async def test_authority_and_certificate_are_rotated_in_mid_traffic_and_no_request_fails(
    cluster: Cluster, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.1)
    monkeypatch.setattr(module, "HEARD_SECONDS", 1.0)
    app = App(f"rotated-{namespace}")
    served: list[bytes] = []

    @app.validator(CONFIG_MAP, labels={"judge": "rotation"})
    async def check(ctx: Context, review: Review[Unstructured]) -> None:
        raise Denied("judged")

    write_pair(tmp_path, CertificateAuthority("first"))
    answers: list[str] = []

    async def ask() -> None:
        try:
            await client.create(config_map(namespace, "a", "rotation"), dry_run=True)
            answers.append("not asked")
        except ApiError as error:
            answers.append("judged" if isinstance(error, Forbidden) and "judged" in error.message else error.message)

    async with managed(cluster, client, app, webhook_certs=str(tmp_path)) as manager:
        assert manager.webhooks is not None
        with anyio.fail_after(30):
            while "judged" not in answers:
                await ask()
        answers.clear()
        async with anyio.create_task_group() as traffic:
            for second in range(4):
                for _ in range(50):
                    traffic.start_soon(ask)
                    await anyio.sleep(0.02)
                served.append(await served_certificate(str(manager.webhooks.server.address)))
                if second == 0:
                    write_pair(tmp_path, CertificateAuthority("second"))
    assert len(set(served)) == 2, "the certificate was rotated in between"
    assert answers == ["judged"] * 200


async def test_a_converted_kind_whose_crd_goes_holds_up_no_rotation(
    cluster: Cluster, client: Client, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLDER_SECONDS", 0.1)
    monkeypatch.setattr(module, "HEARD_SECONDS", 0.1)
    app = App(f"half-{namespace}")
    versions = [Kind(f"{namespace}.example.com/{version}", "Box", "boxes", True) for version in ("v1", "v2")]

    @app.converter(versions[0], versions=versions[1:])
    def convert(obj: Any, to: Any) -> Any:
        return obj

    write_pair(tmp_path, CertificateAuthority("first"))
    crd = await client.create(boxes(versions))
    async with managed(cluster, client, app, webhook_certs=str(tmp_path)) as manager:
        service = manager.webhooks
        assert service is not None
        first = await served_certificate(str(service.server.address))
        await client.delete(crd)

        async def is_gone() -> bool:
            return await client.live.find(CRD, crd.name) is None

        await eventually(is_gone, "the CRD is gone")
        write_pair(tmp_path, CertificateAuthority("second"))

        async def is_another() -> bool:
            return await served_certificate(str(service.server.address)) != first

        await eventually(is_another, "the new certificate is served")
        assert "there is no CRD boxes." in str(service.check())


def boxes(versions: list[Kind]) -> Unstructured:
    """The CRD of a kind in some versions, the first of which is stored."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [
        {"name": kind.version, "served": True, "storage": kind is versions[0], "schema": schema} for kind in versions
    ]
    names = {"kind": versions[0].kind, "plural": "boxes", "singular": "box", "listKind": "BoxList"}
    spec = {"group": versions[0].group, "scope": "Namespaced", "names": names, "versions": served}
    metadata = {"name": f"boxes.{versions[0].group}"}
    return Unstructured(apiVersion=CRD.api_version, kind=CRD.kind, metadata=metadata, spec=spec)


def write_pair(folder: Path, authority: CertificateAuthority) -> None:
    pair = authority.server(["127.0.0.1"])
    for name, content in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority.certificate)):
        (folder / name).write_bytes(content)


async def served_certificate(address: str) -> bytes:
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    stream = await anyio.connect_tcp(host, int(port), ssl_context=context, tls_standard_compatible=False)
    async with stream:
        found = stream.extra(TLSAttribute.peer_certificate_binary)
    assert found is not None, "there was no certificate to compare"
    return found
