from __future__ import annotations

from pathlib import Path

import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.cli.migrate import NEEDED

Capture = pytest.CaptureFixture[str]

OPERATOR = """\
import kopf


@kopf.on.create("pages")
def create(name, **_):
    kopf.info({}, reason="x")
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pages.example.com}
spec:
  group: example.com
  names: {kind: WebPage, plural: pages}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true}]
"""


@pytest.fixture
def operator(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    path = tmp_path / "src" / "site.py"
    path.write_text(OPERATOR)
    return path


def test_a_file_goes_to_standard_output_and_the_report_to_standard_error(operator: Path, capsys: Capture) -> None:
    (operator.parent.parent / "crd.yaml").write_text(CRD)
    assert main(["migrate", "kopf", str(operator)]) == Exit.STOPPED
    out, err = capsys.readouterr()
    assert "WebPage = Kind('example.com/v1', 'WebPage')" in out
    compile(out, "moved.py", "exec")
    assert "Nothing needs a person" in err
    assert operator.read_text() == OPERATOR


def test_without_its_crd_the_kind_is_a_guess_that_needs_a_person(operator: Path, capsys: Capture) -> None:
    assert main(["migrate", "kopf", str(operator), "--check"]) == NEEDED
    assert "--crds" in capsys.readouterr().out
    (operator.parent / "other.yaml").write_text("{{ .Values.broken")
    (operator.parent / "crd.yml").write_text(CRD)
    assert main(["migrate", "kopf", str(operator), "--check"]) == Exit.STOPPED


def test_files_go_to_a_folder_and_nothing_that_is_there_is_replaced(
    operator: Path, tmp_path: Path, capsys: Capture
) -> None:
    other = operator.parent / "deep" / "conf.py"
    other.parent.mkdir()
    other.write_text("X = 1\n")
    command = ["migrate", "kopf", str(operator), str(other), "--output", str(tmp_path / "new"), "--report",
               str(tmp_path / "report.txt")]  # fmt: skip
    assert main(command) == Exit.STOPPED
    assert "run" in capsys.readouterr().err
    assert (tmp_path / "new" / "deep" / "conf.py").read_text() == "X = 1\n"
    assert "App('site')" in (tmp_path / "new" / "site.py").read_text()
    assert "site.py:4: @kopf.on.create('pages') create" in (tmp_path / "report.txt").read_text()
    assert main(command) == Exit.USAGE
    assert "is there already" in capsys.readouterr().err
    assert main([*command, "--force"]) == Exit.STOPPED


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["site.py", "two.py"], "--output DIR"),
        (["none.py"], "there is no such file"),
        (["."], "there is no such file"),
        (["two.py"], "no handler of kopf was found"),
        (["py2.py"], "py2.py:1: is no Python 3"),
        (["site.py", "--output", "site.py", "--force"], "written over"),
        (["site.py", "--crds", "none.yaml"], "--crds none.yaml: there is no such"),
        (["site.py", "--crds", "py2.py"], "--crds py2.py"),
        (["site.py", "--check", "--output", "x.py"], "--check writes nothing"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_traceback(
    options: list[str], told: str, operator: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(operator.parent)
    Path("two.py").write_text("x = 1\n")
    Path("py2.py").write_text("print 'kopf: {'\n")
    assert main(["migrate", "kopf", *options]) == Exit.USAGE
    assert told in capsys.readouterr().err
    assert operator.read_text() == OPERATOR
