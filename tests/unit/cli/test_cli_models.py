from __future__ import annotations

import io
from pathlib import Path

import pytest

from kopylite.cli import main
from kopylite.crds import crd_of
from kopylite.objects.yamlwrite import to_yaml
from tests.zoo import Cluster, Full


def test_it_prints_the_classes_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(to_yaml([crd_of(Full)]))
    assert main(["models", str(path)]) == 0
    source = capsys.readouterr().out
    assert "class FullSpec(ApiModel):" in source
    assert "short_names=['fl']," in source
    compile(source, "models.py", "exec")


def test_it_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(to_yaml([crd_of(Full)]).encode())))
    assert main(["models", "-", "--no-descriptions"]) == 0
    assert "Everything that a class keyword can say." not in capsys.readouterr().out


def test_all_kinds_are_printed_or_those_that_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "crds.yaml"
    path.write_text(to_yaml([crd_of(Full), crd_of(Cluster)]))
    assert main(["models", str(path)]) == 0
    both = capsys.readouterr().out
    assert "class Full(" in both
    assert "class Cluster(" in both
    compile(both, "models.py", "exec")
    assert main(["models", str(path), "--kind", "Cluster"]) == 0
    assert "scope='Cluster'," in capsys.readouterr().out
    assert main(["models", str(path), "--kind", "Nothing"]) == 2
    assert "no kind Nothing; it has Full, Cluster" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "crd.yaml:1: did not find"), ("kind: Pod", "has no CustomResourceDefinition")]
)
def test_a_file_without_a_crd_gives_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(text)
    assert main(["models", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "no-such-file.yaml"]) == 2
    assert "no-such-file.yaml cannot be read" in capsys.readouterr().err
