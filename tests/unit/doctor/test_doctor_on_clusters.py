"""A sick cluster and a healthy one: the doctor finds just what was made, what it prints mends it, then finds nothing.

The real cluster is shared with other tests, so only findings about what was made here count.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from kopylite import App, Context, CustomResource, Kind, Request
from kopylite.client import Client, load_config
from kopylite.clock import SYSTEM_CLOCK
from kopylite.crds.crd import crd_of
from kopylite.doctor import Diagnosis, Finding, Patient, deletions, examine
from kopylite.doctor.examination import shown_by
from kopylite.doctor.reachability import reach
from kopylite.doctor.subject import Subject
from kopylite.manager import Options
from kopylite.testing import Cluster, EmbeddedCluster
from kopylite.triggers import PAUSED
from tests.operators import eventually

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(300)]

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
ROOT = Path(__file__).parent.parent.parent.parent


class TrayerSpec(BaseModel):
    size: int = 1
    label: str | None = None


class Tray(CustomResource[TrayerSpec, None], group="trays.example.com", version="v1"):
    """Something to look at."""


class Bowl(CustomResource[TrayerSpec, None], group="bowls.example.com", version="v1"):
    """Of one test alone: it breaks its CRD."""


MODULE = """
from kopylite import App
from tests.unit.doctor.test_doctor_on_clusters import Bowl, Context, Request
app = App("bowls", leader_election=True)
@app.reconciler(Bowl)
async def reconcile(ctx: Context, request: Request) -> None: ...
"""


def tray_app(name: str, kind: type[Any] = Tray) -> App:
    app = App(name, leader_election=True)

    @app.reconciler(kind)
    async def reconcile(ctx: Context, request: Request) -> None: ...

    return app


@dataclass
class Hospital:
    """A cluster, a namespace in it, an App that lives there, and a mark in all names that are made here."""

    cluster: Cluster
    client: Client
    kubectl: str
    folder: Path
    mark: str
    user: str = ""
    kind: type[Any] = Tray

    async def look(self, **options: Any) -> list[Finding]:
        """What is found of what was made here."""
        found = (await self.examine(**options)).ordered
        return [each for each in found if re.search(self.mark, each.where + each.what + each.fix)]

    async def examine(self, **options: Any) -> Diagnosis:
        subject = Subject(
            [tray_app(self.mark, self.kind)], [crd_of(self.kind)], "bowls.py:app", Options(), self.mark, self.user
        )  # fmt: skip
        config = load_config(str(self.cluster.kubeconfig))
        return await examine(Patient(**{"config": config, "subject": subject, "timeout": 20.0, **options}))

    async def mend(self, findings: Sequence[Finding]) -> None:
        """Do as the fixes say, in a shell."""
        folder = f"{Path(self.kubectl).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {
            **os.environ,
            "PATH": folder,
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "PYTHONPATH": str(ROOT),
        }
        for finding in findings:
            done = await anyio.run_process(
                ["sh", "-ec", finding.fix], check=False, cwd=self.folder, env=environment, stderr=-2
            )
            assert done.returncode == 0, f"{finding.fix}\n{done.stdout.decode()}"

    async def make(self, version: str, kind: str, name: str, namespace: str = "", **content: Any) -> None:
        metadata = {"name": name, **content.pop("metadata", {}), **({"namespace": namespace} if namespace else {})}
        await self.client.create({"apiVersion": version, "kind": kind, "metadata": metadata, **content})


@pytest.fixture
async def hospital(cluster: Cluster, client: Client, kubectl: str, tmp_path: Path) -> AsyncIterator[Hospital]:
    (tmp_path / "bowls.py").write_text(MODULE)
    mark = f"trays-{uuid.uuid4().hex[:8]}"
    await cluster.install_crds(Tray)
    made = Hospital(cluster, client, kubectl, tmp_path, mark)
    await made.make("v1", "Namespace", mark)
    await made.make("coordination.k8s.io/v1", "Lease", mark, mark)
    yield made
    await client.delete(Kind("v1", "Namespace"), mark)


async def test_where_all_is_well_nothing_is_found(hospital: Hospital) -> None:
    await hospital.make("trays.example.com/v1", "Tray", hospital.mark, hospital.mark, spec={})
    owner = await hospital.client.get(Tray, hospital.mark, namespace=hospital.mark)
    reference = {"apiVersion": "trays.example.com/v1", "kind": "Tray", "name": owner.name, "uid": owner.uid}
    await hospital.make("v1", "ConfigMap", hospital.mark, hospital.mark, metadata={"ownerReferences": [reference]})
    diagnosis = await hospital.examine(namespaces=[hospital.mark])
    assert [each for each in diagnosis.findings if hospital.mark in each.where] == []
    assert diagnosis.unchecked == []
    assert diagnosis.version.startswith("v1.")


async def test_each_sickness_is_found_and_what_is_printed_mends_it(
    hospital: Hospital, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "ORPHANED_AFTER", -60.0)  # nobody waits for it to be long ago
    here, client = hospital.mark, hospital.client
    await hospital.make("v1", "ConfigMap", f"stuck-{here}", here, metadata={"finalizers": [f"{here}.example.com/x"]})
    await client.delete(Kind("v1", "ConfigMap"), f"stuck-{here}", namespace=here)
    await hospital.make("v1", "ConfigMap", f"owner-{here}", here)
    uid = (await client.get(Kind("v1", "ConfigMap"), f"owner-{here}", namespace=here)).uid
    for kind, name, version in (("Role", f"old-{here}", "v1beta7"), ("ClusterRole", f"wide-{here}", "v1")):
        reference = {"apiVersion": version, "kind": "ConfigMap", "name": f"owner-{here}", "uid": uid}
        where = here if kind == "Role" else ""
        await hospital.make("rbac.authorization.k8s.io/v1", kind, name, where,
                            metadata={"ownerReferences": [reference]}, rules=[])  # fmt: skip
    rules = [{"apiGroups": ["none.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    hook = {"name": "a.example.com", "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": here, "name": "gone"}}}  # fmt: skip
    await hospital.make("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", here, webhooks=[hook])
    lease = {"holderIdentity": "old_1", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    await client.live.patch(Kind("coordination.k8s.io/v1", "Lease"), here, {"spec": lease}, namespace=here)
    await hospital.make(
        "trays.example.com/v1", "Tray", f"quiet-{here}", here, spec={}, metadata={"annotations": {PAUSED: "true"}}
    )
    findings = await hospital.look()
    assert sorted((each.severity.value, each.check) for each in findings) == [
        ("error", "finalizers"), ("error", "lease"), ("error", "owners"), ("error", "owners"), ("error", "webhooks"),
        ("warning", "paused"),
    ], findings  # fmt: skip
    await hospital.mend(findings)
    role = await client.get(Kind("rbac.authorization.k8s.io/v1", "Role"), f"old-{here}", namespace=here)
    assert role.owner_references[0].api_version == "v1", "the owner is there, so the version is mended"

    async def well() -> bool:
        return await hospital.look() == []

    await eventually(well, "nothing was found any more", limit=60)


async def test_a_crd_that_is_not_the_codes_is_found_and_mended(hospital: Hospital) -> None:
    async def look() -> list[Finding]:
        return [each for each in (await hospital.examine()).ordered if "bowls.bowls.example.com" in each.where]

    async def well() -> bool:
        return await look() == []

    hospital.kind = Bowl
    (missing,) = await look()
    assert "does not have it" in missing.what
    await hospital.mend([missing])
    await eventually(well, "the CRD was served", limit=60)
    await hospital.make("bowls.example.com/v1", "Bowl", "any", hospital.mark, spec={})  # patch wants one
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size"
    patch = hospital.client.live.patch
    await patch(CRD, "bowls.bowls.example.com", [{"op": "remove", "path": path}], type="json")
    status = {"status": {"storedVersions": ["v1alpha1", "v1"]}}
    await patch(CRD, "bowls.bowls.example.com", status, subresource="status")
    findings = await look()
    assert ["differs from the code" in each.what for each in findings] == [True, False], findings
    assert "storedVersions has v1alpha1" in findings[1].what
    await hospital.mend(findings)
    await eventually(well, "nothing was found any more", limit=60)
    await hospital.client.delete(CRD, "bowls.bowls.example.com")


async def test_a_right_that_is_missing_is_named_and_its_rule_printed(hospital: Hospital) -> None:
    here = hospital.mark
    hospital.user = f"system:serviceaccount:{here}:operator"
    (absent, *_) = [each for each in await hospital.look() if "ServiceAccount" in each.where]
    await hospital.mend([absent])
    (everywhere, home) = [each for each in await hospital.look() if each.check == "rights"]
    assert "get/list/watch/patch trays.trays.example.com" in everywhere.what
    assert f"update leases.coordination.k8s.io ({here})" in home.what or "leases" in home.what
    await hospital.mend([everywhere, home])
    assert await hospital.look() == []
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        await hospital.client.delete(Kind("rbac.authorization.k8s.io/v1", kind), f"{here}-missing")


async def test_what_may_not_be_read_is_told_with_the_rule(hospital: Hospital) -> None:
    here = hospital.mark
    await hospital.make("v1", "ServiceAccount", "poor", here)
    answer = await hospital.client.live.api.create_subresource(
        Kind("v1", "ServiceAccount"), Request(here, "poor"), "token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}},
    )  # fmt: skip
    token = json.loads(answer)["status"]["token"]
    config = load_config(str(hospital.cluster.kubeconfig))
    from kopylite.client.credentials import StaticCredentials, bearer

    poor = replace(
        config,
        credentials=StaticCredentials(bearer(token, "test")),
        tls=replace(config.tls, certificate=None, key=None),
    )
    diagnosis = await hospital.examine(config=poor)
    needs = [each.needs for each in diagnosis.unchecked]
    assert '{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"]}' in needs
    assert not [each for each in diagnosis.unchecked if "a fault of this command" in each.what]
    assert token not in repr(diagnosis)
    assert shown_by(poor).authorization.endswith(token), "an hour is no finding"
    assert {each.check for each in diagnosis.findings} <= {"rights"}


async def test_a_big_cluster_is_looked_at_up_to_the_limit(hospital: Hospital) -> None:
    for number in range(4):
        await hospital.make("trays.example.com/v1", "Tray", f"t-{number}", hospital.mark, spec={})
    diagnosis = await hospital.examine(namespaces=[hospital.mark], limit=2)
    assert any("more than 2 Trays: the rest was not looked at" in each.what for each in diagnosis.unchecked)


async def test_no_request_of_an_examination_writes() -> None:
    async with EmbeddedCluster(crds=[Tray]) as cluster:
        subject = Subject([tray_app("trays")], [crd_of(Tray)], "trays.py:app", Options(), "default")
        before = len([*cluster.requests])
        await examine(Patient(load_config(str(cluster.kubeconfig)), subject))
        asked = [each for each in [*cluster.requests][before:] if each.writes and each.agent == "kopylite"]
        assert {each.path for each in asked} == {"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"}


@pytest.mark.parametrize(
    ("change", "step"),
    [
        ({"server": "https://no-such-host.invalid:6443"}, "dns"),
        ({"server": "https://127.0.0.1:1"}, "tcp"),
        ({"tls": "other"}, "tls"),
        ({"tls": "name"}, "tls"),
        ({"credentials": "nonsense"}, "auth"),
    ],
)
async def test_the_step_that_fails_has_a_name(
    embedded_cluster: EmbeddedCluster, change: dict[str, str], step: str
) -> None:
    from kopylite.client.credentials import StaticCredentials, bearer
    from tests.unit.doctor.test_doctor_access import certificate

    config = load_config(str(embedded_cluster.kubeconfig))
    if change.get("tls") == "other":
        now = datetime.now(UTC)
        config = replace(config, tls=replace(config.tls, ca=certificate(now - timedelta(1), now + timedelta(1))))
    elif change.get("tls") == "name":
        config = replace(config, tls=replace(config.tls, server_name="other.example.com"))
    elif "credentials" in change:
        config = replace(config, credentials=StaticCredentials(bearer("nonsense", "test")))
    else:
        config = replace(config, server=change["server"])
    diagnosis = await examine(Patient(config, timeout=5.0))
    assert diagnosis.unreachable == step
    (finding,) = diagnosis.findings
    assert (finding.check, bool(finding.fix)) == (step, True)
    assert len(diagnosis.unchecked) == 1


async def say_nothing(stream: anyio.abc.SocketStream) -> None:
    async with stream:
        await anyio.sleep_forever()


async def test_a_server_that_says_nothing_is_not_waited_for_longer_than_told() -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, say_nothing)
            from kopylite.client import ClientConfig, HttpTransport

            for scheme, step in (("http", "api"), ("https", "tls")):
                config = ClientConfig(f"{scheme}://127.0.0.1:{port}", source="test")
                async with HttpTransport(config) as transport:
                    with anyio.fail_after(10):
                        contact = await reach(config, transport, 0.3, SYSTEM_CLOCK)
                assert contact.failed == step
            tasks.cancel_scope.cancel()
