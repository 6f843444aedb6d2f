from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.deploy import ApiCall, Recording
from kopylite.errors import UsageError

GET, PATCH = ApiCall("", "pods", "get", "*"), ApiCall("x.io", "things/status", "patch", "a")


def test_it_is_the_same_file_for_the_same_calls_and_forgets_nothing(tmp_path: Path) -> None:
    path = tmp_path / "new" / "recording.json"
    Recording({"b": [PATCH, GET], "a": [GET]}).add_to(path)
    first = path.read_text()
    Recording({"a": [GET], "b": [GET]}).add_to(path)
    assert path.read_text() == first
    Recording({"a": [PATCH]}).add_to(path)
    read = Recording.read(path)
    assert (read.apps, read.of("a"), read.of("nobody")) == (["a", "b"], frozenset({GET, PATCH}), frozenset())
    assert [entry.name for entry in path.parent.iterdir()] == ["recording.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"kopyliteRecording": 1, "apps": [1]}', '{"kopyliteRecording": 1, "apps": {"a": [{}]}}', "["],
)
def test_what_is_no_recording_is_called_so_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "recording.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="is no recording of calls"):
        Recording({"a": [GET]}).add_to(path)
    assert path.read_text() == text


def test_one_of_another_version_and_one_that_is_missing_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Recording.read(tmp_path / "none.json")
    with pytest.raises(UsageError, match="another version"):
        Recording.of_wire({"kopyliteRecording": 2, "apps": {}}, "it")


def test_the_name_of_a_call_is_kept() -> None:
    bind = ApiCall("rbac.authorization.k8s.io", "clusterroles", "bind", "*", "edit")
    recording = Recording({"a": [GET, bind]})
    assert Recording.of_wire(recording.to_wire(), "it") == recording
    assert "name" not in recording.to_wire()["apps"]["a"][0]


def test_what_is_made_and_never_changed_is_told_but_what_nobody_can_change() -> None:
    made = [ApiCall("", name, "create", "*") for name in ("pods", "configmaps", "services", "pods/eviction")]
    recording = Recording({"a": [*made, ApiCall("", "services", "patch", "*")]})
    assert (recording.never_changed("a"), recording.never_changed("b")) == (["configmaps"], [])


JSON = st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner) | st.dictionaries(
    st.sampled_from(["apps", "group", "resource", "verb", "namespace"]), inner))  # fmt: skip


@given(JSON)
def test_any_json_is_a_recording_or_a_usage_error(apps: object) -> None:
    try:
        found = Recording.of_wire({"kopyliteRecording": 1, "apps": apps}, "it")
    except UsageError:
        return
    assert Recording.of_wire(json.loads(json.dumps(found.to_wire())), "it") == found
