"""Every sample is run as its user runs it, on each control plane. samples/myapp has a file of its own: see FOLLOWED."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from kopylite.client import Client
from kopylite.codegen.models import models_of
from kopylite.objects import Kind, Unstructured
from kopylite.testing import Cluster
from samples.alerts.prometheus import PrometheusRule
from samples.bucket.operator import FINALIZER, Bucket
from samples.bucket.store import make_store
from samples.devices.operator import Device
from samples.mailbox.operator import Mailbox
from samples.mailbox.provider import Provider
from samples.myapp.operator import MyApp
from samples.website.operator import OWNED, Website
from tests.operators import OperatorProcess, eventually, operator

SAMPLES = Path(__file__).parent.parent / "samples"
FOLLOWED = {
    "hello",
    "alerts",
    "bucket",
    "devices",
    "mailbox",
    "myapp",
    "shop",
    "website",
}  # by the tests below; myapp also by a file of its own
CONFIG_MAP = Kind("v1", "ConfigMap")
DEPLOYMENT, SERVICE = Kind("apps/v1", "Deployment"), Kind("v1", "Service")
EVENT = Kind("events.k8s.io/v1", "Event")

pytestmark = pytest.mark.timeout(120)


def folders() -> list[Path]:
    return sorted(path for path in SAMPLES.iterdir() if (path / "operator.py").is_file())


def test_every_sample_is_run_here() -> None:
    assert {folder.name for folder in folders()} == FOLLOWED


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_sample_explains_itself_with_files_that_exist(folder: Path) -> None:
    readme = (folder / "README.md").read_text()
    assert f"samples.{folder.name}.operator:app" in readme or f"samples/{folder.name}/operator.py" in readme
    for manifest in folder.glob("*.yaml"):
        assert f"samples/{folder.name}/{manifest.name}" in readme
    assert f"python -m kopylite sweep samples.{folder.name}." in readme


def a_sample(path: str, namespace: str) -> Unstructured:
    """The object of a sample's manifest, in a namespace."""
    wire = Unstructured(yaml.safe_load((SAMPLES / path).read_text()))
    wire["metadata"]["namespace"] = namespace
    return wire


async def test_hello_greets_and_keeps_greeting(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async def greeting() -> str | None:
        found = await client.get(CONFIG_MAP, "world", namespace=namespace)
        answer: str | None = found["data"].get("greeting")
        return answer

    async with operator("samples/hello/operator.py", cluster.kubeconfig, tmp_path, "-n", namespace) as running:
        metadata = {"name": "world", "namespace": namespace}
        await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": "World"}))

        async def greets(name: str) -> bool:
            return await greeting() == f"Hello, {name}!"

        await eventually(lambda: greets("World"), "the greeting was there")
        await client.patch(CONFIG_MAP, "world", {"data": {"greeting": None}}, namespace=namespace)
        await eventually(lambda: greets("World"), "the greeting was there again")
        assert await running.stop() == 0
        await client.patch(CONFIG_MAP, "world", {"data": {"name": "Mars"}}, namespace=namespace)
    async with operator("samples/hello/operator.py", cluster.kubeconfig, tmp_path, "-n", namespace):
        await eventually(lambda: greets("Mars"), "it caught up with what happened while it was away")


async def test_myapp_makes_what_its_manifest_says(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await cluster.install_crds(MyApp)
    await client.create(a_sample("myapp/shop.yaml", namespace))
    async with operator("samples.myapp.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace):

        async def scaled() -> bool:
            found = await client.find(Kind("apps/v1", "Deployment"), "shop", namespace=namespace)
            return found is not None and found["spec"]["replicas"] == 2

        await eventually(scaled, "the Deployment had two replicas")


@pytest.fixture
async def buckets(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[dict[str, str]]:
    """What the object store holds; the operator is told where it is."""
    held: dict[str, str] = {}
    runner = web.AppRunner(make_store(held))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    monkeypatch.setenv("STORE_URL", f"http://{host}:{port}")
    yield held
    await runner.cleanup()


@pytest.fixture
async def bucket_operator(
    buckets: dict[str, str], cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[OperatorProcess]:
    await cluster.install_crds(Bucket)
    async with operator("samples.bucket.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace) as running:
        yield running


async def test_a_bucket_is_made_reported_on_and_deleted_with_its_object(
    client: Client, namespace: str, buckets: dict[str, str], bucket_operator: OperatorProcess
) -> None:
    await client.create(a_sample("bucket/photos.yaml", namespace))

    async def ready(status: str) -> bool:
        bucket = await client.get(Bucket, "photos", namespace=namespace)
        return [(c.status, c.observed_generation) for c in bucket.status.conditions] == [(status, bucket.generation)]

    await eventually(lambda: ready("True"), "it was ready")
    bucket = await client.get(Bucket, "photos", namespace=namespace)
    assert bucket.metadata.finalizers == [FINALIZER]
    assert buckets == {bucket.uid: "north"}
    assert bucket.status.url == f"store://north/{bucket.uid}"

    await client.patch(bucket, patch={"spec": {"region": "moon"}})
    await eventually(lambda: ready("False"), "it was not ready any more")

    async def told() -> bool:
        events = await client.list(EVENT, namespace=namespace)
        return {(e["type"], e["reason"]) for e in events} >= {("Normal", "Stored"), ("Warning", "Refused")}

    await eventually(told, "both Events were published")
    await client.delete(Bucket, "photos", namespace=namespace)

    async def gone() -> bool:
        return await client.find(Bucket, "photos", namespace=namespace) is None

    await eventually(gone, "the object was gone")
    assert buckets == {}


@pytest.mark.parametrize(
    "folder", [f for f in folders() if f.name not in ("hello", "alerts")], ids=lambda folder: folder.name
)
def test_the_crd_command_prints_what_the_readme_applies(folder: Path) -> None:
    command = [sys.executable, "-m", "kopylite", "crd", f"samples.{folder.name}.operator:app"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=SAMPLES.parent, timeout=50)
    names = {crd["spec"]["names"]["kind"] for crd in yaml.safe_load_all(printed.stdout)}
    manifests = [yaml.safe_load(path.read_text()) for path in folder.glob("*.yaml") if path.name != "sweep.yaml"]
    assert names == {manifest["kind"] for manifest in manifests}


def test_samples_are_short_enough_to_be_read_before_they_are_copied() -> None:
    lengths = {folder.name: len((folder / "operator.py").read_text().splitlines()) for folder in folders()}
    assert max(lengths.values()) <= 150, lengths


async def test_a_website_owns_five_kinds_and_builds_again_what_goes(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await cluster.install_crds(Website)
    await client.create(a_sample("website/blog.yaml", namespace))
    async with operator("samples.website.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace):

        async def owned() -> set[str]:
            found = [await client.find(kind, "blog", namespace=namespace) for kind in OWNED]
            return {obj.kind for obj in found if obj and [ref.kind for ref in obj.owner_references] == ["Website"]}

        async def complete() -> bool:
            return await owned() == {kind.kind for kind in OWNED}

        async def told() -> bool:
            site = await client.get(Website, "blog", namespace=namespace)
            return [condition.type for condition in site.status.conditions] == ["Ready"]

        async def pages() -> str:
            deployment = await client.get(DEPLOYMENT, "blog", namespace=namespace)
            return str(deployment["spec"]["template"]["metadata"]["annotations"]["web.example.com/pages"])

        await eventually(complete, "all five were there")
        await eventually(told, "the status said so")
        before = await pages()
        await client.delete(SERVICE, "blog", namespace=namespace)
        await eventually(complete, "the Service was there again")
        await client.patch(Website, "blog", {"spec": {"pages": {"about.html": "me"}}}, namespace=namespace)

        async def other_pods() -> bool:
            return await pages() != before

        await eventually(other_pods, "new pages were a new template")


async def test_alerts_makes_somebody_elses_kind_and_takes_back_only_its_own(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await cluster.install_crds(SAMPLES / "alerts/crds/prometheusrules.yaml")
    async with operator("samples.alerts.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace):
        web = await client.create(a_sample("alerts/web.yaml", namespace))

        async def made() -> bool:
            rule = await client.find(PrometheusRule, web)
            return rule is not None and [each.for_ for each in rule.spec.groups[0].rules] == ["5m"]

        await eventually(made, "there was a rule")
        await client.patch(web, {"metadata": {"labels": {"alerts.example.com/team": None}}})

        async def gone() -> bool:
            return await client.find(PrometheusRule, web) is None

        await eventually(gone, "the rule had gone with the label")


def test_the_models_of_alerts_are_what_the_command_makes() -> None:
    crd = yaml.safe_load((SAMPLES / "alerts/crds/prometheusrules.yaml").read_text())
    assert models_of([crd], descriptions=False) == (SAMPLES / "alerts/prometheus.py").read_text()


async def test_a_mailbox_is_opened_once_and_waits_when_the_provider_says_so(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider()
    runner = web.AppRunner(provider.app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    monkeypatch.setenv("PROVIDER_URL", "http://{}:{}".format(*runner.addresses[0]))
    await cluster.install_crds(Mailbox)
    try:
        async with operator("samples.mailbox.operator:app", cluster.kubeconfig, tmp_path, "-n", namespace) as running:
            await client.create(a_sample("mailbox/alice.yaml", namespace))

            def has(quota: int) -> bool:
                return [account.get("quota") for account in provider.accounts.values()] == [quota]

            await eventually(lambda: has(5), "there was one account")
            provider.patience = 0
            await client.patch(Mailbox, "alice", {"spec": {"quota": 2}}, namespace=namespace)
            await eventually(lambda: "the provider is asked too often" in running.log, "it was told to wait")
            assert "ERROR" not in running.log
            provider.patience = None
            await eventually(lambda: has(2), "it came back when it was time")
            await client.delete(Mailbox, "alice", namespace=namespace)
            await eventually(lambda: not provider.accounts, "the account was closed")
            assert list(provider.answers.values()) != []
    finally:
        await runner.cleanup()


async def test_devices_are_shared_among_shards_and_all_have_the_defaults_of_their_model(
    client: Client, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    await cluster.install_crds(Device)
    names = [f"lamp-{number}" for number in range(8)]
    for name in names:
        lamp = a_sample("devices/lamp.yaml", namespace)
        lamp["metadata"]["name"] = name
        await client.create(lamp)
    options = ("-n", namespace, "--shards", "2", "--lease-namespace", namespace)
    async with operator("samples.devices.operator:app", cluster.kubeconfig, tmp_path, *options):

        async def worked_on() -> bool:
            devices = await client.list(Device, namespace=namespace)
            return {device.status.shard for device in devices} == {0, 1}

        await eventually(worked_on, "each was worked on, by two shards")
        labels = {"devices.example.com/model": "lamp"}
        metadata = {"name": "lamps", "namespace": namespace, "labels": labels}
        data = {"brightness": "50", "color": "cold"}
        await client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data))
        wanted = {"brightness": "50", "color": "warm", "room": "hall"}

        async def configured() -> bool:
            found = [await client.find(CONFIG_MAP, name, namespace=namespace) for name in names]
            return all(config_map and config_map["data"] == wanted for config_map in found)

        await eventually(configured, "all of them had the defaults")
