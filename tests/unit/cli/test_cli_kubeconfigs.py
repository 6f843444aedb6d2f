from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopylite.apiserver.access.kubeconfig import kubeconfig
from kopylite.cli.kubeconfigs import is_replaceable, publish_kubeconfig
from kopylite.client import load_config
from kopylite.errors import KubeconfigError, UsageError
from kopylite.wholefiles import write_private

OURS = kubeconfig("https://127.0.0.1:6443", {"token": "our-token"}, b"a CA")
THEIRS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "work", "cluster": {"server": "https://work", "extensions": [{"name": "x"}]}}],
    "users": [{"name": "me", "user": {"token": "theirs"}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "current-context": "work",
    "preferences": {"colors": True},
}


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    assert publish_kubeconfig(path, OURS) == ""
    assert (path.read_text(), mode(path)) == (OURS, 0o600)
    assert list(tmp_path.iterdir()) == [path]
    assert publish_kubeconfig(path, OURS.replace("6443", "6444")) == "", "what was ours is replaced"
    assert "6444" in path.read_text()


def test_a_kubeconfig_of_others_gets_a_context_and_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    path.write_text(yaml.safe_dump(THEIRS))
    path.chmod(0o644)
    for port in ("6443", "6444"):
        assert publish_kubeconfig(path, OURS.replace("6443", port)) == "kopylite"
        assert mode(path) == 0o600
        merged = yaml.safe_load(path.read_text())
        assert {name: merged[name] for name in ("current-context", "preferences")} == {
            "current-context": "work",
            "preferences": {"colors": True},
        }
        for section in ("clusters", "users", "contexts"):
            assert merged[section][0] == THEIRS[section][0]
            assert len(merged[section]) == 2
        assert load_config(path).server == "https://work"
        assert load_config(path, "kopylite").server == f"https://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("kind: Deployment\n", "is no kubeconfig"),
        ("just: [text\n", "is no YAML"),
        ("- a\n", "should hold a mapping"),
        ("clusters: {}\nusers: [{name: x}]\n", "`clusters` is no list"),
        ("clusters: [{name: kopylite, cluster: {server: https://work}}]\n", "not of this machine"),
    ],
)
def test_what_cannot_be_merged_stays_as_it_is(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "kc"
    path.write_text(content)
    if "clusters: {}" in content:
        path.write_text(content.replace("{}", "{a: b}"))
    before = path.read_text()
    with pytest.raises((UsageError, KubeconfigError), match=message):
        publish_kubeconfig(path, OURS)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_another_program_writes_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "kc.lock").touch()
    with pytest.raises(UsageError, match=r"another program does, says .*kc\.lock"):
        publish_kubeconfig(tmp_path / "kc", OURS)
    assert not (tmp_path / "kc").exists()


def test_a_link_is_not_followed_and_not_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    for existing in (False, True):
        if existing:
            target.write_text("theirs")
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        with pytest.raises(UsageError, match="is a link or no regular file"):
            write_private(link, "x")
        assert link.is_symlink()
        assert not existing or target.read_text() == "theirs"
    os.mkfifo(tmp_path / "fifo")
    for other in (tmp_path / "fifo", tmp_path):
        with pytest.raises(UsageError, match="no regular file"):
            write_private(other, "x")
    with pytest.raises(UsageError, match=r"cannot write .*No such file"):
        write_private(tmp_path / "none" / "kc", "x")


def test_a_cluster_of_dev_replaces_only_its_like(tmp_path: Path) -> None:
    path = tmp_path / "kc"
    assert is_replaceable(path, "kopylite")
    path.write_text(OURS)
    assert is_replaceable(path, "kopylite")
    path.write_text(yaml.safe_dump(THEIRS))
    assert not is_replaceable(path, "kopylite")
