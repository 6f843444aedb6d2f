from __future__ import annotations

import subprocess
import sys

import pytest

from kopylite.cli import main, make_parser
from kopylite.cli.commands import COMMANDS

SHOW = """
import sys
from kopylite.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *sorted(name for name in sys.modules if name.startswith(("kopylite.", "pydantic", "asyncio"))))
"""


def loaded_by(*arguments: str) -> set[str]:
    ran = subprocess.run([sys.executable, "-c", SHOW, *arguments], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_parser_of_one_command_shows_all(command: str) -> None:
    assert make_parser(command).format_help() == make_parser().format_help()


def test_a_command_that_is_asked_for_has_all_its_options() -> None:
    assert make_parser("run").parse_args(["run", "hello.py", "--workers=3"]).workers == 3


def test_a_default_that_is_empty_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    assert "default ]" not in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["-1"], ["-", "run"]])
def test_a_wrong_command_line_is_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "migrate" in capsys.readouterr().err


def test_help_loads_none_of_the_commands() -> None:
    assert loaded_by("--help") == {
        "kopylite.cli", "kopylite.cli.commands", "kopylite.cli.exitcodes", "kopylite.cli.signals",
        "kopylite.cli.streams",
    }  # fmt: skip


def test_a_command_loads_no_other() -> None:
    loaded = loaded_by("run", "--help")
    assert "kopylite.cli.run" in loaded
    assert not {f"kopylite.cli.{name}" for name in COMMANDS if name not in ("run", "webhooks")} & loaded
    assert not {name for name in loaded if name.startswith(("pydantic", "kopylite.crds", "kopylite.client"))}
