from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kopylite.cli import main
from kopylite.cli.doctor import FOUND
from kopylite.cli.exitcodes import Exit
from kopylite.testing import EmbeddedCluster

MODULE = """
from pydantic import BaseModel
from kopylite import App, CustomResource

class Spec(BaseModel):
    image: str = "x"

class Vase(CustomResource[Spec, None], group="vases.example.com", version="v1"):
    pass

app = App("vases")

@app.reconciler(Vase)
async def reconcile(ctx, request):
    return None
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def module(tmp_path: Path, embedded_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("KUBECONFIG", str(embedded_cluster.kubeconfig))
    (tmp_path / "vases.py").write_text(MODULE)
    return str(tmp_path / "vases.py")


def report(capsys: Capture) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_cluster_in_which_all_is_well_is_one_line_and_code_0(module: str, capsys: Capture) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr()
    assert out.out.endswith(": nothing found\n")
    assert out.err == ""


def test_a_finding_is_code_1_and_json_for_ci(module: str, capsys: Capture) -> None:
    assert main(["doctor", module, "--output", "json"]) == FOUND
    found = report(capsys)
    assert [each["check"] for each in found["findings"]] == ["crd"]
    assert found["findings"][0]["fix"] == f"python -m kopylite crd {module} | kubectl apply -f -"
    assert (found["reachable"], found["errors"]) == (True, 1)


@pytest.mark.parametrize("scope", [["-n", "team-*"], ["--namespaces-labelled", "tier=prod"]])
def test_an_operator_that_follows_namespaces_has_to_see_them(module: str, scope: list[str], capsys: Capture) -> None:
    asked = ["doctor", module, "--as-service-account", "default/nobody", "--output", "json"]

    def missing(*options: str) -> str:
        assert main([*asked, *options]) == FOUND
        return "".join(each["fix"] for each in report(capsys)["findings"] if each["check"] == "rights")

    assert "  - namespaces\n" in missing(*scope)
    assert "namespaces\n" not in missing("-n", "shop")


def test_what_is_unchecked_counts_when_it_is_strict(module: str, capsys: Capture) -> None:
    assert main(["doctor", "-n", "nowhere"]) == 0
    assert main(["doctor", "-n", "nowhere", "--strict"]) == FOUND
    assert "namespace nowhere does not exist" in capsys.readouterr().out


def test_a_server_that_is_not_reached_has_its_own_code(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "config"
    user = {"name": "u", "user": {"token": "secret-token-value"}}
    cluster = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config.write_text(
        json.dumps({"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"})
    )
    assert main(["doctor", "--kubeconfig", str(config), "--output", "json"]) == Exit.UNREACHABLE
    found = report(capsys)
    assert (found["reachable"], found["failedStep"], found["findings"][0]["check"]) == (False, "tcp", "tcp")
    assert "secret-token-value" not in json.dumps(found)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--as-service-account", "a/b"], Exit.USAGE),
        (["--rbac-from", "x"], Exit.USAGE),
        (["no.such.module:app"], Exit.MODULE),
        (["--kubeconfig", "/no/such/file"], Exit.KUBECONFIG),
    ],
)
def test_a_wrong_command_line_has_the_codes_of_the_others(
    module: str, arguments: list[str], code: Exit, capsys: Capture
) -> None:
    assert main(["doctor", *arguments]) == code
    assert capsys.readouterr().err.startswith("kopylite doctor: ")


@pytest.mark.parametrize(
    "arguments", [["--as-service-account", "a"], ["--limit", "0"], ["--timeout", "0"], ["-n", "A"]]
)
def test_a_value_that_is_none_is_refused_with_its_rule(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["doctor", *arguments])
    assert raised.value.code == Exit.USAGE
    assert arguments[0] in capsys.readouterr().err


def test_help_teaches(capsys: Capture) -> None:
    for command in (["doctor", "--help"], ["finalizers", "--help"], ["finalizers", "clear", "--help"]):
        with pytest.raises(SystemExit):
            main(command)
        assert "examples:" in capsys.readouterr().out
