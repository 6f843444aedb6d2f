from __future__ import annotations

import json
from pathlib import Path

import pytest

from kopylite.deploy.folder import is_ours, made_files, marked, write_files
from kopylite.errors import UsageError


def test_files_that_are_as_they_were_made_are_replaced_and_no_others(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": marked("a.yaml", "a: 1\n"), "sub/b.yaml": marked("b.yaml", "b: 1\n")})
    write_files(tmp_path, {"a.yaml": marked("a.yaml", "a: 2\n")})
    assert (tmp_path / "a.yaml").read_text().endswith("a: 2\n")
    edited = (tmp_path / "a.yaml").read_text() + "more: 1\n"
    (tmp_path / "a.yaml").write_text(edited)
    (tmp_path / "c.yaml").write_text("mine: 1\n")
    with pytest.raises(UsageError, match=r"a\.yaml, .*c\.yaml: not made by this command, or edited since"):
        write_files(tmp_path, {name: marked("x.yaml", "x: 1\n") for name in ("a.yaml", "c.yaml", "new.yaml")})
    assert (tmp_path / "a.yaml").read_text() == edited
    assert not (tmp_path / "new.yaml").exists()
    assert set(made_files(tmp_path)) == {"a.yaml", "sub/b.yaml"}
    write_files(tmp_path, {"c.yaml": marked("x.yaml", "x: 1\n")}, force=True)
    assert is_ours((tmp_path / "c.yaml").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "c.yaml", "sub"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / "a.yaml").symlink_to(target)
    with pytest.raises(UsageError, match="left alone"):
        write_files(tmp_path, {"a.yaml": marked("a.yaml", "a: 1\n")})
    assert target.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        write_files(tmp_path / "file", {"a.yaml": "a: 1\n"})


@pytest.mark.parametrize(("name", "text"), [("a.yaml", "a: 1\n"), ("a.json", '{\n  "a": 1\n}\n'), ("a.txt", "a\n")])
def test_each_kind_of_file_says_who_made_it_in_its_own_language(name: str, text: str) -> None:
    found = marked(name, text)
    assert "Made by `kopylite manifests`" in found.splitlines()[0]
    assert is_ours(found)
    assert not is_ours(found + " ")
    assert not is_ours(text)
    if name.endswith("json"):
        assert json.loads(found).keys() == {"$comment", "a"}
