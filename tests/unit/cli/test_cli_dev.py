from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kopylite.cli import main
from kopylite.cli.dev import dev_cluster, example_of, try_line
from kopylite.cli.exitcodes import Exit
from kopylite.crds.crd import crd_of
from samples.myapp.operator import MyApp


def a_crd(spec: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": {"type": "object"}}}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {"spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [version]}}


def test_the_line_to_try_creates_an_object_of_the_first_kind() -> None:
    line = try_line([crd_of(MyApp)])
    assert line.startswith("kubectl create -f - <<< '")
    assert json.loads(line.partition("'")[2].rstrip("'")) == {
        "apiVersion": "example.com/v1",
        "kind": "MyApp",
        "metadata": {"name": "demo"},
        "spec": {"image": "image"},
    }


def test_without_kinds_of_its_own_it_looks_around() -> None:
    assert try_line([]) == "kubectl get all -A"


def test_a_cluster_that_can_be_announced_to_nobody_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unread(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout", Unread())
    with dev_cluster([], data=None, port=0, simulate=False) as kubeconfig:
        assert kubeconfig.exists()


def test_an_example_has_what_is_required_and_no_more() -> None:
    spec = {
        "type": "object",
        "required": ["name", "size", "color", "parts", "deep", "on", "preset"],
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "minimum": 3},
            "color": {"type": "string", "enum": ["red", "green"]},
            "parts": {"type": "array", "items": {"type": "string"}},
            "deep": {"type": "object", "required": ["a"], "properties": {"a": {"type": "number"}, "b": {}}},
            "on": {"type": "boolean"},
            "preset": {"type": "string", "default": "so"},
            "free": {"type": "string"},
        },
    }
    assert example_of(a_crd(spec))["spec"] == {
        "name": "name", "size": 3, "color": "red", "parts": [], "deep": {"a": 1}, "on": True, "preset": "so",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--no-simulator"], "add --dev"),
        (["--dev-data", "x"], "add --dev"),
        (["--crds", "x"], "add --dev"),
        (["--dev", "--crds", "there-is-none.yaml"], "there-is-none.yaml: No such file"),
        (["--dev", "--kubeconfig", "x"], "leave out --kubeconfig"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], repository: Path
) -> None:
    target = str(repository / "samples" / "hello" / "operator.py")
    assert main(["run", target, *arguments]) == Exit.USAGE
    assert text in capsys.readouterr().err
