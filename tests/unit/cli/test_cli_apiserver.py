from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kopylite.cli import apiserver
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from kopylite.errors import UsageError


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
