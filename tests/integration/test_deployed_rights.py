"""From recorded calls to rights to work: the manifests of each sample allow what it was seen to do, and nothing else.

The samples are recorded on the embedded server, and do the same again as their ServiceAccounts, on a real server that
took their manifests.
"""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from aiohttp import web

from kopylite import App
from kopylite.cli import init, make_parser, manifests
from kopylite.cli.signals import StopSignals
from kopylite.client import Client, load_config
from kopylite.deploy import Recording
from kopylite.deploy.recorder import Recorder
from kopylite.devcluster.appcrds import crds_of_app
from kopylite.doctor import Patient, examine
from kopylite.doctor.subject import Subject
from kopylite.errors import ApiError
from kopylite.manager import Manager, Options
from kopylite.objects import Kind, Unstructured
from kopylite.testing import EmbeddedCluster, EnvTest
from samples.bucket.operator import Bucket
from samples.bucket.operator import app as bucket
from samples.bucket.store import make_store
from samples.hello.operator import app as hello
from samples.myapp.operator import MyApp
from samples.myapp.operator import app as myapp
from samples.shop.operator import Order
from samples.shop.operator import app as shop
from tests.operators import OperatorProcess, eventually, operator

CONFIG_MAP, DEPLOYMENT, LEASE, NAMESPACE, ROLE = (
    Kind("v1", "ConfigMap"),
    Kind("apps/v1", "Deployment"),
    Kind("coordination.k8s.io/v1", "Lease"),
    Kind("v1", "Namespace"),
    Kind("rbac.authorization.k8s.io/v1", "Role"),
)
Job = Callable[[Client, str], Awaitable[None]]

pytestmark = [pytest.mark.kubectl, pytest.mark.slow, pytest.mark.timeout(300)]


async def greets(client: Client, namespace: str, name: str = "World") -> None:
    metadata = {"name": "world", "namespace": namespace}
    await client.apply(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"name": name}))

    async def greeted() -> bool:
        found = await client.live.get(CONFIG_MAP, "world", namespace=namespace)
        return bool(found["data"].get("greeting") == f"Hello, {name}!")

    await eventually(greeted, "the greeting was there", limit=60)


async def scales(client: Client, namespace: str) -> None:
    shown = await client.create(sample("myapp/shop.yaml", namespace))

    async def replicas() -> int:
        found = await client.live.find(DEPLOYMENT, shown.name, namespace=namespace)
        return 0 if found is None else int(found["spec"]["replicas"])

    for wanted in (2, 3):
        await client.live.patch(MyApp, shown.name, {"spec": {"replicas": wanted}}, namespace=namespace)

        async def scaled(wanted: int = wanted) -> bool:
            return await replicas() == wanted

        await eventually(scaled, f"the Deployment had {wanted} replicas", limit=60)


async def makes_and_ends(client: Client, namespace: str) -> None:
    made = await client.create(sample("bucket/photos.yaml", namespace))

    async def ready() -> bool:
        found = await client.live.get(Bucket, made.name, namespace=namespace)
        return [one.status for one in found.status.conditions] == ["True"]

    await eventually(ready, "it was ready", limit=60)
    await client.live.delete(Bucket, made.name, namespace=namespace)

    async def gone() -> bool:
        return await client.live.find(Bucket, made.name, namespace=namespace) is None

    await eventually(gone, "its finalizer let it go", limit=60)


async def judges(client: Client, namespace: str) -> None:
    """An order of the old version is completed, converted, and counted."""
    order = sample("shop/order.yaml", namespace)

    async def taken() -> bool:
        try:
            await client.live.create(order)
        except ApiError:
            return False  # the API server learns of webhooks a moment after they are stored
        found = await client.live.get(Order, order.name, namespace=namespace)
        if found.spec.currency == "EUR":
            return True
        await client.live.delete(found)
        return False

    await eventually(taken, "an order was completed", limit=60)

    async def counted() -> bool:
        found = await client.live.get(Order, order.name, namespace=namespace)
        return found.status.pieces == 2

    await eventually(counted, "its pieces were counted", limit=60)


def sample(path: str, namespace: str) -> Unstructured:
    wire = Unstructured(yaml.safe_load((Path(__file__).parents[2] / "samples" / path).read_text()))
    wire["metadata"]["namespace"] = namespace
    return wire


class Deployed:
    """A namespace on the real server with an operator's manifests in it, and the rights of its ServiceAccount."""

    def __init__(self, cluster: EnvTest, kubectl: str, folder: Path, client: Client) -> None:
        self.namespace = f"deploy-{uuid.uuid4().hex[:8]}"
        self.client, self.folder = client, folder
        self._cluster, self._kubectl = cluster, kubectl

    @property
    def kubeconfig_of_all(self) -> Path:
        """With every right."""
        return self._cluster.kubeconfig

    async def kubectl(self, *arguments: str) -> str:
        command = [self._kubectl, "--kubeconfig", str(self._cluster.kubeconfig), *arguments]
        done = await anyio.run_process(command, check=False, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout.decode()
        return done.stdout.decode()

    async def apply(self, files: Path) -> None:
        """Also as a dry run, for which the namespace has to be there."""
        await self.kubectl("apply", "-f", str(files / "00-namespace.yaml"))
        await self.kubectl("apply", "--dry-run=server", "-f", str(files))
        await self.kubectl("apply", "-f", str(files))
        if (crds := files / "10-crds.yaml").exists():
            await self.kubectl("wait", "--for=condition=Established", "-f", str(crds), "--timeout=60s")

    async def kubeconfig(self, account: str) -> Path:
        """As the ServiceAccount, by a TokenRequest, and in its namespace."""
        config = yaml.safe_load(self._cluster.kubeconfig.read_text())
        token = (await self.kubectl("create", "token", account, "-n", self.namespace)).strip()
        for user in config["users"]:
            user["user"] = {"token": token}
        for context in config["contexts"]:
            context["context"]["namespace"] = self.namespace
        path = self.folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path


@pytest.fixture
async def deployed(real_cluster: EnvTest, kubectl: str, tmp_path: Path) -> AsyncIterator[Deployed]:
    async with real_cluster.client() as client:
        found = Deployed(real_cluster, kubectl, tmp_path, client)
        yield found
        await client.live.delete(NAMESPACE, found.namespace)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(Manager, "recorder", recorder)
    return recorder


async def recorded(app: App, crds: list[Any], job: Job, recorder: Recorder, file: Path) -> None:
    """What an operator asks for while it does its job."""
    async with EmbeddedCluster(crds=crds) as cluster, cluster.client() as client, cluster.running(app):
        await job(client, "default")
    recorder.recording.add_to(file)


def written(target: str, deployed: Deployed, recording: Path, *options: str) -> Path:
    """The manifests."""
    files = deployed.folder / "deploy"
    command = ["manifests", target, "--image", "operator:1", "--namespace", deployed.namespace, *options]
    command += ["--rbac-from", str(recording), "--output-dir", str(files)]
    assert manifests.run(make_parser().parse_args(command), StopSignals()) == 0
    return files


async def diagnosed(app: App, deployed: Deployed, recording: Path) -> list[str]:
    """What the doctor says of the operator and what belongs to it, its rights as those of its ServiceAccount."""
    where, user = deployed.namespace, f"system:serviceaccount:{deployed.namespace}:{app.name}"
    subject = Subject([app], [], "x:app", Options(), where, user, recording=Recording.read(recording))
    config = load_config(str(deployed.kubeconfig_of_all))
    found = await examine(Patient(config, subject, namespaces=[where], timeout=30.0))
    assert [each for each in found.unchecked if each.check in ("rights", "lease", "operator")] == []
    return [each.what for each in found.findings if each.check in ("rights", "lease", "operator")]


def refused(running: OperatorProcess) -> list[Any]:
    """The rules that its log names."""
    _, *texts = running.log.split("Missing are, in ")
    return [rule for text in texts for rule in yaml.safe_load("\n".join(text.splitlines()[1:4]))]


async def test_hello_has_a_role_and_shards_and_names_the_rule_that_somebody_took_away(
    deployed: Deployed, recorder: Recorder, tmp_path: Path
) -> None:
    target, of = "samples/hello/operator.py", {"namespace": deployed.namespace}
    await recorded(hello, [], greets, recorder, tmp_path / "calls.json")
    files = written(target, deployed, tmp_path / "calls.json", "--watch-namespace", deployed.namespace, "--shards", "2")
    await deployed.apply(files)
    options = ("-n", deployed.namespace, "--shards", "2", "--lease-namespace", deployed.namespace)
    async with operator(target, await deployed.kubeconfig("hello"), deployed.folder, *options) as running:
        await greets(deployed.client, deployed.namespace)
        for shard in range(2):
            lease = await deployed.client.live.get(LEASE, f"hello-shard-{shard}", **of)
            assert lease["spec"]["holderIdentity"]
        assert not refused(running), running.log

        assert await diagnosed(hello, deployed, tmp_path / "calls.json") == []
        role = await deployed.client.live.get(ROLE, "hello", **of)
        rules = [rule for rule in role["rules"] if "configmaps" in rule["resources"]]
        assert [rule["verbs"] for rule in rules] == [["get", "list", "watch", "patch"]]
        less = [{**rule, "verbs": [verb for verb in rule["verbs"] if rule not in rules or verb != "patch"]}
                for rule in role["rules"]]  # fmt: skip
        await deployed.client.live.patch(role, {"rules": less})

        async def told() -> bool:
            greeting = {"data": {"greeting": uuid.uuid4().hex}}
            await deployed.client.live.patch(CONFIG_MAP, "world", greeting, namespace=deployed.namespace)
            return bool(refused(running))

        await eventually(told, "the log named the rule", limit=60)
        assert refused(running) == [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]}]
        assert f"a Role of namespace {deployed.namespace}" in running.log
        assert await diagnosed(hello, deployed, tmp_path / "calls.json") == ["may not patch configmaps"]
        await deployed.apply(files)  # its manifests have the rule
        await greets(deployed.client, deployed.namespace, "Mars")
        assert await running.stop() == 0


async def test_myapp_elects_a_leader_and_works_with_what_was_recorded(
    deployed: Deployed, recorder: Recorder, tmp_path: Path
) -> None:
    target = "samples.myapp.operator:app"
    await recorded(myapp, [MyApp], scales, recorder, tmp_path / "calls.json")
    await deployed.apply(written(target, deployed, tmp_path / "calls.json", "--replicas", "2"))
    options = ("--leader-elect", "--lease-namespace", deployed.namespace)
    async with operator(target, await deployed.kubeconfig("myapp"), deployed.folder, *options) as running:
        await scales(deployed.client, deployed.namespace)
        lease = await deployed.client.live.get(LEASE, "myapp", namespace=deployed.namespace)
        assert lease["spec"]["holderIdentity"]
        assert await running.stop() == 0
    assert not refused(running), running.log


async def test_bucket_makes_and_ends_with_what_was_recorded(
    deployed: Deployed, recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "samples.bucket.operator:app"
    runner = web.AppRunner(make_store({}))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    monkeypatch.setenv("STORE_URL", f"http://{host}:{port}")
    await recorded(bucket, [Bucket], makes_and_ends, recorder, tmp_path / "calls.json")
    await deployed.apply(written(target, deployed, tmp_path / "calls.json"))
    async with operator(target, await deployed.kubeconfig("bucket"), deployed.folder) as running:
        await makes_and_ends(deployed.client, deployed.namespace)
        assert await running.stop() == 0
    await runner.cleanup()
    assert not refused(running), running.log


async def test_shop_looks_after_its_webhooks_and_conversion_and_nobody_elses(
    deployed: Deployed, recorder: Recorder, tmp_path: Path
) -> None:
    target = "samples.shop.operator:app"
    crd = crds_of_app(shop)
    await recorded(shop, crd, judges, recorder, tmp_path / "calls.json")
    files = written(target, deployed, tmp_path / "calls.json")
    role = next(d for d in yaml.safe_load_all((files / "20-rbac.yaml").read_text()) if d["kind"] == "ClusterRole")
    assert not [rule for rule in role["rules"] if "secrets" in rule["resources"]]
    await deployed.apply(files)
    options = ("--webhook-manage", "--webhook-url", "https://127.0.0.1", "--webhook-address", "127.0.0.1:0")
    async with operator(target, await deployed.kubeconfig("shop"), deployed.folder, *options) as running:
        await judges(deployed.client, deployed.namespace)
        assert await running.stop() == 0
    assert not refused(running), running.log
    for kind in ("Mutating", "Validating"):
        await deployed.kubectl("delete", f"{kind.lower()}webhookconfiguration", "shop")


async def test_a_new_project_works_with_the_manifests_that_came_with_it(deployed: Deployed, tmp_path: Path) -> None:
    name, folder = deployed.namespace, tmp_path / "project"
    command = ["init", name, "--kind", "WebCache", "--group", f"{name}.example.com", "--dir", str(folder)]
    assert init.run(make_parser().parse_args(command), StopSignals()) == 0
    await deployed.apply(folder / "deploy")
    target = str(folder / name.replace("-", "_") / "operator.py")
    async with operator(target, await deployed.kubeconfig(name), deployed.folder) as running:
        await deployed.kubectl("apply", "-n", name, "-f", str(folder / "example.yaml"))

        async def made() -> bool:
            found = await deployed.client.live.find(DEPLOYMENT, "example", namespace=name)
            return found is not None and found["spec"]["replicas"] == 2

        await eventually(made, "it had its Deployment", limit=60)
        assert await running.stop() == 0
    assert not refused(running), running.log
