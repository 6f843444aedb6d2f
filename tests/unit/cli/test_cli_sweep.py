from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kopylite.cli import main
from kopylite.cli.sweep import plans_in
from kopylite.errors import UsageError
from tests.unit.sweep.operators import CRD, a_thing

TARGET = "tests.unit.sweep.operators:bug"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "thing.crd.yaml").write_text(json.dumps(CRD))
    path = tmp_path / "scenario.yaml"
    path.write_text(json.dumps({"crds": ["thing.crd.yaml"], "steps": [{"apply": a_thing()}]}))
    return path


def test_it_finds_tells_writes_and_plays_again(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = scenario.with_name("found.json")
    arguments = ["sweep", TARGET, "--scenario", str(scenario), "--jobs", "1"]
    assert main([*arguments, "--faults", "crash", "--json", str(found)]) == 1
    told = capsys.readouterr().out
    assert "leaves no Secret default/a" in told
    assert "tests/unit/sweep/operators.py:" in told
    written = json.loads(found.read_text())
    assert set(written) == {"plans", "findings"}
    [finding] = written["findings"]
    assert set(finding) == {"sentence", "object", "field", "plan", "trace", "line", "replay"}
    assert main([*arguments, "--replay", str(found)]) == 1
    assert "1 plans" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "options", "code", "problem"),
    [
        ("no.such.module", [], 3, "there is no module"),
        ("tests.unit.sweep.operators:nobody", [], 4, "has no attribute 'nobody'"),
        (TARGET, ["--faults", "crashes"], 2, "there is no fault 'crashes'; there are rerun, crash"),
        (TARGET, ["--replay", "no.json"], 2, "--replay no.json: No such file"),
        (TARGET, ["--scenario", "no.yaml"], 2, "no.yaml: No such file"),
    ],
)
def test_what_cannot_be_swept_is_told_with_its_code(
    scenario: Path, capsys: pytest.CaptureFixture[str], target: str, options: list[str], code: int, problem: str
) -> None:
    assert main(["sweep", target, "--scenario", str(scenario), *options]) == code
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is no JSON"),
        ("5", "no findings in it"),
        ('{"findings": []}', "nothing to play again"),
        ("[{}]", "plan"),
    ],
)
def test_what_holds_no_plans_is_told(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem):
        plans_in(path)


ENDLESS = """
import time
from pathlib import Path
from kopylite import App
app = App("endless")
before = Path(__file__).with_name("imported")
while {condition}:
    try:
        time.sleep(0.05)
    except Exception:
        pass
before.touch()
"""


@pytest.mark.parametrize(
    ("condition", "code"), [("True", 3), ("before.exists()", 1)], ids=["at first", "when it is made anew"]
)
def test_an_import_that_never_ends_is_told_with_its_line_and_ended(
    scenario: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    condition: str,
    code: int,
) -> None:
    monkeypatch.setattr("kopylite.sweep.patience.TELL_AFTER", 0.5)
    monkeypatch.setattr("kopylite.sweep.patience.FIRST", 1.0)
    monkeypatch.setattr("kopylite.sweep.source.ANEW", 1.0)
    operator = scenario.with_name("endless.py")
    operator.write_text(ENDLESS.format(condition=condition))
    assert main(["sweep", str(operator), "--scenario", str(scenario), "--jobs", "1"]) == code
    told = capsys.readouterr()
    assert "its import has not ended within 1 s" in told.err + told.out
    assert re.search(rf"it is at {re.escape(str(operator))}:[789];", told.err + told.out)  # within the loop
    assert ("is still being imported" in told.err) == (code == 3)  # forks are silent
