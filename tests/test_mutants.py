"""The mutation script itself, on a room of one function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOM_TO_GROW, Known, Run, Used, used_by
from tests.mutants.mutations import Mutant

ROOM = """
def larger(a, b):
    return a if a > b else b


def passed(times):
    while times:
        times -= 1
"""
TESTS = """
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

spec = spec_from_file_location("toy", Path("kopylite/toy.py").absolute())
toy = module_from_spec(spec)
spec.loader.exec_module(toy)


def test_larger():
    assert toy.larger(1, 2) == 2
    assert toy.passed(3) is None


def test_moods():
    again = Path("again")
    if not again.exists():
        {first}
    {then}
"""
SCRIPT = """
import sys
from pathlib import Path
from tests.mutants import __main__ as script

script.ROOT, script.GRACE = Path(sys.argv.pop()), 0.5
sys.exit(script.main())
"""


def mutants(root: Path, first: str, then: str) -> tuple[int, str]:
    """The script's exit code and output in a repository of one room, whose second test has moods."""
    (root / "kopylite").mkdir()
    (root / "kopylite/toy.py").write_text(ROOM)
    (root / "tests/unit/toy").mkdir(parents=True)
    (root / "tests/unit/toy/test_toy.py").write_text(TESTS.format(first=first, then=then))
    command = [sys.executable, "-c", SCRIPT, "toy", "--jobs", "1", str(root)]
    repository = Path(__file__).parent.parent
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_what_loops_is_noticed_and_what_no_test_notices_is_shown(tmp_path: Path) -> None:
    code, told = mutants(tmp_path, "pass", "pass")
    assert "toy: 4 of 5 mutants were noticed (80.0 %)" in told, told
    assert "kopylite/toy.py:3: larger\n    -    return a if a > b else b\n    +    return a if (a >= b) else b" in told
    assert code == 0


def test_a_test_that_fails_once_without_a_mutant_is_asked_again(tmp_path: Path) -> None:
    _, told = mutants(tmp_path, "again.touch(); assert False, 'the machine is busy'", "pass")
    assert "toy: 4 of 5 mutants were noticed" in told, told


def test_one_that_fails_twice_ends_all_and_says_why(tmp_path: Path) -> None:
    code, told = mutants(tmp_path, "pass", "assert 6 * 9 == 42")
    assert "test_toy.py::test_moods" in told, told
    assert "assert (6 * 9) == 42" in told
    assert "mutants were noticed" not in told
    assert code != 0


def test_a_mutant_that_collects_things_for_ever_is_ended_before_the_memory_is() -> None:
    run = Run(Path(), Mutant("f", 1, ""), [], Known(memory=1000), again=False)
    assert not run.never_ends(Used(0.0, 1000 + ROOM_TO_GROW))
    assert run.never_ends(Used(0.0, 1001 + ROOM_TO_GROW))


def test_what_a_process_uses_is_read_in_bytes() -> None:
    before, size = used_by(os.getpid()).memory, 64 * 1024 * 1024
    kept = bytearray(b"x") * size
    assert used_by(os.getpid()).memory - before == pytest.approx(len(kept), rel=0.2)
