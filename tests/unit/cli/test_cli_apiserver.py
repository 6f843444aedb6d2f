from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from kopylite.cli import apiserver
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.crds.crd import crd_of
from kopylite.errors import UsageError
from samples.myapp.operator import MyApp


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    apiserver.add_parser(parser.add_subparsers())
    return parser.parse_args(["apiserver", *argv])


def test_the_defaults_are_loopback_and_tls() -> None:
    options = apiserver.options_of(parse())
    assert (options.host, options.port, options.tls, options.anonymous, options.rbac) == (
        "127.0.0.1",
        0,
        True,
        False,
        False,
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["--host", "0.0.0.0"],
        ["--host", "::"],
        ["--host", "example.com"],
        ["--host", "0.0.0.0", "--allow-remote", "--no-tls"],
        ["--host", "0.0.0.0", "--allow-remote", "--anonymous"],
        ["--kubernetes-version", "1.12"],
        ["--kubernetes-version", "nonsense"],
    ],
)
def test_what_is_unsafe_or_impossible_is_refused(argv: list[str]) -> None:
    with pytest.raises(UsageError):
        apiserver.options_of(parse(*argv))


def test_other_machines_need_to_be_asked_for() -> None:
    assert apiserver.options_of(parse("--host", "0.0.0.0", "--allow-remote")).host == "0.0.0.0"
    assert apiserver.options_of(parse("--host", "localhost")).host == "localhost"


@pytest.mark.parametrize(("text", "minor"), [("1.34", 34), ("v1.37.2", 37), ("36", 36)])
def test_a_version_is_its_minor(text: str, minor: int) -> None:
    assert apiserver.options_of(parse("--kubernetes-version", text)).minor == minor


def test_a_damaged_data_file_ends_the_command_with_a_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.json"
    data.write_text("x")
    code = apiserver.run(parse("--data", str(data), "--write-kubeconfig", str(tmp_path / "config")), StopSignals())
    assert code == Exit.USAGE
    assert "damaged" in capsys.readouterr().err
    assert not (tmp_path / "config").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\nc: [", "crds.yaml"),
        ("kind: CustomResourceDefinition\n  x: y\n", "crds.yaml:2: "),
        ("kind: ConfigMap\n", "no CustomResourceDefinition in it"),
    ],
)
def test_a_file_without_good_definitions_is_named_before_anything_is_served(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crds.yaml"
    path.write_text(text)
    code = apiserver.run(parse("--crds", str(path), "--write-kubeconfig", str(tmp_path / "config")), StopSignals())
    assert code == Exit.USAGE
    told = capsys.readouterr().err
    assert str(path) in told
    assert message in told
    assert not (tmp_path / "config").exists()


def test_a_definition_that_the_server_refuses_is_named_with_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crds.json"
    crd = crd_of(MyApp)
    crd["spec"]["group"] = "other.example.com"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [crd]}))
    code = apiserver.run(parse("--crds", str(path), "--write-kubeconfig", str(tmp_path / "config")), StopSignals())
    assert code == Exit.USAGE
    assert f"{path}: CustomResourceDefinition myapps.example.com: 422 Invalid" in capsys.readouterr().err
