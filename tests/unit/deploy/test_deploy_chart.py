"""The chart renders to the plain manifests: by Helm where there is one, and by a reader of what is used of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit

TARGETS = ["samples.shop.operator:app", "samples.myapp.operator:app"]


Objects = dict[tuple[str, str, str], dict[str, Any]]
BLOCK = re.compile(
    r"^( *)\{\{- with \.Values\.(\w+) \}\}\n((?:.*:\n)?) *\{\{- toYaml \. \| nindent (\d+) \}\}\n"
    r" *\{\{- end \}\}\n",
    re.MULTILINE,
)


def by_name(text: str) -> Objects:
    found = [document for document in yaml.safe_load_all(text) if document]
    assert found
    return {(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", "")): one for one in found}


def plain(target: str, capsys: pytest.CaptureFixture[str], *options: str) -> Objects:
    assert main(["manifests", target, "--image", "r.example.com/i@sha256:0", *options]) == 0
    found = by_name(capsys.readouterr().out)
    return {name: each for name, each in found.items() if name[0] != "Namespace"}


def a_chart(target: str, folder: Path, *options: str) -> Path:
    command = ["manifests", target, "--image", "r.example.com/i@sha256:0", "--helm", *options]
    assert main([*command, "--output-dir", str(folder)]) == 0
    assert main([*command, "--check", str(folder)]) == 0
    return folder


def rendered(chart: Path, namespace: str, changed: dict[str, Any]) -> str:
    """The templates and CRDs, as Helm renders what a chart of ours uses of its language."""
    values = yaml.safe_load((chart / "values.yaml").read_text()) | changed

    def value(path: str) -> Any:
        found: Any = values
        for part in path.split("."):
            found = found[part]
        return found

    def block(found: re.Match[str]) -> str:
        if not value(found[2]):
            return ""
        items = yaml.safe_dump(value(found[2]), default_flow_style=False)
        indented = "".join(f"{' ' * int(found[4])}{line}\n" for line in items.splitlines())
        return f"{found[3]}{indented}"

    def whole(found: re.Match[str]) -> str:
        return found[2] if value(found[1]) else ""

    texts = []
    for path in sorted([*chart.glob("templates/*.yaml"), *chart.glob("crds/*.yaml")]):
        text = path.read_text()
        text = re.sub(r"\{\{- if \.Values\.([\w.]+) \}\}\n(.*?)\{\{- end \}\}\n", whole, text, flags=re.DOTALL)
        text = BLOCK.sub(block, text)
        text = text.replace("{{ .Release.Namespace }}", namespace)
        text = re.sub(r"\{\{ \.Values\.(\w+) \}\}", lambda found: str(value(found[1])), text)
        assert "{{" not in text, text
        texts.append(text)
    return "\n".join(texts)


@pytest.mark.parametrize("options", [(), ("--replicas", "2", "--watch-namespace", "ops", "--watch-namespace", "b")])
@pytest.mark.parametrize("target", TARGETS)
def test_with_its_defaults_it_renders_to_the_plain_manifests(
    target: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = plain(target, capsys, "--namespace", "ops", "--service-monitor", *options)
    chart = a_chart(target, tmp_path / "chart", "--namespace", "ops", "--service-monitor", *options)
    assert by_name(rendered(chart, "ops", {})) == wanted


def test_what_installations_differ_in_comes_from_values(tmp_path: Path) -> None:
    chart = a_chart(TARGETS[1], tmp_path / "chart", "--replicas", "2")
    changed = {
        "image": "other:2", "replicas": 3, "resources": {}, "env": [{"name": "A", "value": "b"}],
        "tolerations": [{"key": "x", "operator": "Exists"}], "nodeSelector": {"a": "b"},
        "networkPolicy": {"enabled": False},
    }  # fmt: skip
    found = by_name(rendered(chart, "elsewhere", changed))
    assert {kind for kind, *_ in found} == {
        "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
        "Lease", "Deployment", "Service", "PodDisruptionBudget",
    }  # fmt: skip
    deployment = found["Deployment", "myapp", "elsewhere"]
    pod = deployment["spec"]["template"]["spec"]
    assert (deployment["metadata"]["namespace"], deployment["spec"]["replicas"]) == ("elsewhere", 3)
    assert (pod["tolerations"], pod["nodeSelector"]) == (changed["tolerations"], {"a": "b"})
    assert "affinity" not in pod
    [container] = pod["containers"]
    assert container["image"] == "other:2"
    assert container["env"][-1] == {"name": "A", "value": "b"}
    assert "resources" not in container
    assert found["ClusterRoleBinding", "myapp", ""]["subjects"][0]["namespace"] == "elsewhere"


def test_two_replicas_that_would_both_work_are_refused_with_the_way_out(tmp_path: Path) -> None:
    """By a template: helm is asked below, where there is one."""
    for options, refused in (((), True), (("--replicas", "2"), False)):
        chart = a_chart(TARGETS[1], tmp_path / f"chart{refused}", *options)
        notes = (chart / "templates/NOTES.txt").read_text()
        assert ("if gt (int .Values.replicas) 1" in notes) is refused
        assert ("kopylite manifests --replicas 2" in notes) is refused


def test_the_schema_knows_each_value(tmp_path: Path) -> None:
    chart = a_chart(TARGETS[1], tmp_path / "chart")
    schema = json.loads((chart / "values.schema.json").read_text())
    assert set(schema["properties"]) - {"global"} == set(yaml.safe_load((chart / "values.yaml").read_text()))


def test_a_chart_needs_a_folder_and_its_drift_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifests", TARGETS[1], "--image", "i", "--helm"]) == Exit.USAGE
    assert "a chart is a folder: name it by --output-dir" in capsys.readouterr().err
    chart = a_chart(TARGETS[1], tmp_path / "chart")
    capsys.readouterr()
    command = ["manifests", TARGETS[1], "--image", "i:2", "--helm", "--replicas", "2", "--check", str(chart)]
    assert main(command) == 1
    found = capsys.readouterr().out
    assert f"{chart}/values.yaml: differs\n" in found
    assert f"{chart}/templates/operator.yaml: differs\n" in found
    assert f"{chart}/templates/rbac.yaml: Role myapp in {{{{ .Release.Namespace }}}} is missing\n" in found


@pytest.mark.skipif(shutil.which("helm") is None, reason="no helm on PATH")
@pytest.mark.parametrize("target", TARGETS)
def test_helm_lints_it_and_renders_it_to_the_plain_manifests(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def helm(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    wanted = plain(target, capsys, "--namespace", "ops", "--service-monitor")
    chart = a_chart(target, tmp_path / "chart", "--namespace", "ops", "--service-monitor")
    helm("lint", "--strict", str(chart))
    template = ["template", "release", str(chart), "--namespace", "ops", "--include-crds"]
    assert by_name(helm(*template)) == wanted
    assert "kopylite manifests --replicas 2" in helm(*template, "--set", "replicas=2", code=1)
    assert "image" in helm(*template, "--set", "image=a b", code=1)
