from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kopylite.cli.streams import announce

SCRIPT = "from kopylite.cli import script; script()"
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")

# What a program of Unix finds out of its three streams: where each leads.
STREAMS = """
import os, sys
from kopylite.cli.streams import open_streams
open_streams()
opened = os.open(os.devnull, os.O_RDONLY)
same = [os.path.samestat(os.fstat(number), os.stat(os.devnull)) for number in range(3)]
print("nobody reads this"), print("nor this", file=sys.stderr)
os.write(int(sys.argv[1]), repr((opened > 2, same, sys.stdin.read())).encode())
"""


def run_as(shell: str, *python: str, **options: object) -> subprocess.CompletedProcess[str]:
    """A program of Python with what a shell does to its streams."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, *python]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.fixture(params=[("-u",), ()], ids=["unbuffered", "buffered"])
def python(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    return tuple(request.param)


def test_who_reads_no_further_ends_a_command_quietly(python: Sequence[str]) -> None:
    command = [sys.executable, *python, "-c", SCRIPT, "--version"]
    ran = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ran.stdout is not None
    ran.stdout.close()
    _, told = ran.communicate()
    assert (ran.returncode, told) == (141, "")


@needs_full
def test_output_that_cannot_be_written_is_told_in_a_line(python: Sequence[str]) -> None:
    ran = run_as(">/dev/full", *python, "-c", SCRIPT, "--version")
    assert (ran.returncode, ran.stderr) == (74, "kopylite: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_does_its_work(closed: str, python: Sequence[str]) -> None:
    ran = run_as(closed, *python, "-c", SCRIPT, "--version")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&- 2>&-"])
def test_what_is_opened_later_gets_the_number_of_no_closed_stream(closed: str) -> None:
    heard, tells = os.pipe()
    with os.fdopen(heard, "rb") as reader:
        run_as(closed, "-c", STREAMS, str(tells), stdin=subprocess.DEVNULL, pass_fds=[tells])
        os.close(tells)
        assert reader.read() == b"(True, [True, True, True], '')"


@needs_full
def test_what_is_only_announced_ends_nothing() -> None:
    text = "import sys; from kopylite.cli.streams import announce; announce('here'); print('went on', file=sys.stderr)"
    assert run_as(">/dev/full", "-u", "-c", text).stderr == "went on\n"


def test_lines_are_announced_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    announce("serving", "  here")
    assert capsys.readouterr().out == "serving\n  here\n"
