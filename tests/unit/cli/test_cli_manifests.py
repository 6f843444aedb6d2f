from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.deploy import ApiCall, Recording

MODULE = """
from pydantic import BaseModel
from kopylite import App, CustomResource, Kind

class Spec(BaseModel):
    image: str

class Status(BaseModel):
    ready: bool = False

class MyApp(CustomResource[Spec, Status], group="example.com", version="v1"):
    pass

app = App("myapp"ELECTION)

@app.reconciler(MyApp, owns=[Kind("apps/v1", "Deployment")])
async def reconcile(ctx, request):
    return None
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    (tmp_path / "operator.py").write_text(MODULE.replace("ELECTION", ""))
    return str(tmp_path / "operator.py")


def objects(text: str) -> dict[str, dict]:  # type: ignore[type-arg]
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def test_it_prints_all_that_an_operator_needs_and_the_same_each_time(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["manifests", module, "--image", "i:1"]) == 0
    out = capsys.readouterr()
    assert "writes of myapp are assumed" in out.err
    found = objects(out.out)
    assert set(found) == {
        "Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment",
        "Service", "PodDisruptionBudget", "NetworkPolicy",
    }  # fmt: skip
    assert found["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["command"][-1] == module
    assert pod["terminationGracePeriodSeconds"] > 30 + 10
    assert main(["manifests", module, "--image", "i:1"]) == 0
    assert capsys.readouterr().out == out.out


def test_several_replicas_elect_a_leader_by_a_lease_that_is_shipped(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--image", "i", "--replicas", "3", "--namespace", "ops", "--watch-namespace", "a", "--service-monitor"]
    assert main(["manifests", module, *options]) == 0
    out = capsys.readouterr().out
    found = objects(out)
    assert "ClusterRole" not in found
    assert "spec" not in found["Lease"]
    assert found["Lease"]["metadata"] | {"labels": 0} == {"name": "myapp", "namespace": "ops", "labels": 0}
    environment = {
        e["name"]: e["value"] for e in found["Deployment"]["spec"]["template"]["spec"]["containers"][0]["env"]
    }
    assert (environment["KOPYLITE_LEADER_ELECT"], environment["KOPYLITE_NAMESPACE"]) == ("true", "a")
    roles = {d["metadata"]["namespace"]: d for d in yaml.safe_load_all(out) if d["kind"] == "Role"}
    assert set(roles) == {"a", "ops"}
    leases = [rule for rule in roles["ops"]["rules"] if rule["resources"] == ["leases"]]
    assert leases == [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["myapp"],
                       "verbs": ["get", "watch", "update"]}]  # fmt: skip
    assert "ServiceMonitor" in found


def test_an_operator_with_webhooks_is_reached_by_the_api_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", "samples.shop.operator:app", "--image", "i", "--namespace", "ops"]) == 0
    out = capsys.readouterr().out
    found = objects(out)
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhooks", "containerPort": 9443} in container["ports"]
    environment = {e["name"]: e["value"] for e in container["env"]}
    assert environment["KOPYLITE_WEBHOOK_ADDRESS"] == "0.0.0.0:9443"
    assert environment["KOPYLITE_WEBHOOK_MANAGE"] == "true"
    services = {d["metadata"]["name"]: d["spec"] for d in yaml.safe_load_all(out) if d["kind"] == "Service"}
    assert services["shop-webhooks"]["ports"][0] | {"name": 0} == {
        "name": 0, "port": 443, "protocol": "TCP", "targetPort": 9443,
    }  # fmt: skip
    assert services["shop-webhooks"]["selector"] == services["shop"]["selector"]
    assert {"protocol": "TCP", "port": "webhooks"} in found["NetworkPolicy"]["spec"]["ingress"][0]["ports"]
    called = found["CustomResourceDefinition"]["spec"]["conversion"]["webhook"]["clientConfig"]
    assert called == {"service": {"name": "shop-webhooks", "namespace": "ops", "path": "/convert", "port": 443}}


def test_replicas_of_an_operator_with_shards_work_side_by_side(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", module, "--image", "i", "--namespace", "ops", "--shards", "3"]) == 0
    out = capsys.readouterr().out
    found = objects(out)
    spec = found["Deployment"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (2, {"type": "RollingUpdate"})
    environment = {e["name"]: e["value"] for e in spec["template"]["spec"]["containers"][0]["env"]}
    assert environment["KOPYLITE_SHARDS"] == "3"
    assert "KOPYLITE_LEADER_ELECT" not in environment
    leases = [d["metadata"]["name"] for d in yaml.safe_load_all(out) if d["kind"] == "Lease"]
    assert leases == ["myapp-shard-0", "myapp-shard-1", "myapp-shard-2"]
    [rule] = [rule for rule in found["Role"]["rules"] if rule["resources"] == ["leases"]]
    assert set(rule["verbs"]) == {"get", "list", "watch", "create", "update", "delete"}
    assert "resourceNames" not in rule  # each replica says by a Lease of its own that it is there


def test_check_names_the_rule_that_has_drifted(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, recording = tmp_path / "deploy", tmp_path / "recording.json"
    Recording({"myapp": [ApiCall("", "secrets", "get", "*")]}).add_to(recording)
    command = ["manifests", module, "--image", "i", "--rbac-from", str(recording), "--kustomize"]
    assert main([*command, "--output-dir", str(folder)]) == 0
    assert "kustomization.yaml" in {path.name for path in folder.iterdir()}
    assert main([*command, "--check", str(folder)]) == 0
    assert "assumed" not in capsys.readouterr().err
    Recording({"myapp": [ApiCall("apps", "deployments", "create", "*")]}).add_to(recording)
    assert main(command) == 0
    assert "seen to create deployments, and never to change them" in capsys.readouterr().err
    assert main([*command, "--check", str(folder)]) == 1
    rule = '{apiGroups: ["apps"], resources: ["deployments"], verbs: ["create"]}'
    assert capsys.readouterr().out == f"{folder}/20-rbac.yaml: ClusterRole myapp lacks the rule {rule}\n"


def test_an_edited_file_is_left_alone(module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["manifests", module, "--image", "i", "--output-dir", str(tmp_path / "deploy")]
    assert main(command) == 0
    path = tmp_path / "deploy" / "30-operator.yaml"
    path.write_text(path.read_text().replace("replicas: 1", "replicas: 5"))
    edited = path.read_text()
    assert main(command) == Exit.USAGE
    assert "30-operator.yaml: not made by this command, or edited since" in capsys.readouterr().err
    assert path.read_text() == edited
    assert main([*command, "--force"]) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["no_such_module", "--image", "i"], Exit.MODULE, "there is no module"),
        (["M", "--image", "i", "--rbac-from", "none.json"], Exit.USAGE, "none.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said_with_a_code_of_its_own(
    module: str, capsys: pytest.CaptureFixture[str], arguments: list[str], code: Exit, text: str
) -> None:
    assert main(["manifests", *(module if one == "M" else one for one in arguments)]) == code
    assert text in capsys.readouterr().err


def test_a_scope_that_is_followed_is_handed_on(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    def environment(*options: str) -> dict[str, str]:
        assert main(["manifests", module, "--image", "i", *options]) == 0
        found = objects(capsys.readouterr().out)
        assert {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]} in found["ClusterRole"][
            "rules"
        ]
        assert "Role" not in found
        [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
        return {each["name"]: each["value"] for each in container["env"] if "NAMESPACE" in each["name"]}

    assert environment("--watch-namespace", "team-*,shop") == {"KOPYLITE_NAMESPACE": "team-*,shop"}
    assert environment("--watch-namespaces-labelled", "tier in (a, b)") == {
        "KOPYLITE_NAMESPACES_LABELLED": "tier in (a, b)"
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--watch-namespace", "Team*"], "names no namespaces"),
        (["--watch-namespaces-labelled", "tier in prod"], "tier in prod"),
        (["--watch-namespace", "a", "--watch-namespaces-labelled", "a=b"], "do not go together"),
    ],
)
def test_what_is_no_scope_is_refused(
    module: str, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    try:
        code = main(["manifests", module, "--image", "i", *options])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code == 2
    assert words in capsys.readouterr().err
