from __future__ import annotations

import json
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
