"""The data file of built-in kinds: complete, lazily read, free of texts."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kopylite.apiserver.builtin import data

ROOT = Path(__file__).parent.parent.parent.parent


@pytest.mark.parametrize("path", sorted(Path(data.__file__).with_name("kinds").iterdir()), ids=lambda path: path.stem)
def test_the_files_have_the_form_that_people_read_and_diffs_show(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("plainjson", ROOT / "scripts" / "plainjson.py")
    assert spec is not None
    assert spec.loader is not None
    plainjson = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plainjson)
    assert path.read_text() == plainjson.plain_json(json.loads(path.read_text()))


def test_every_resource_that_can_be_created_has_a_schema() -> None:
    for group in data.served():
        api_version = f"{group['group']}/{group['version']}" if group["group"] else group["version"]
        for resource in group["resources"]:
            if "create" in resource["verbs"]:
                assert resource["kind"] in data.kinds_of(api_version), f"{api_version} {resource['kind']}"


def test_references_lead_to_schemas() -> None:
    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            target = value.get("$ref")
            own = {target.rpartition("/")[2]} if isinstance(target, str) and target.startswith("#/") else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    names = set(data.SCHEMAS)
    assert all(references(data.SCHEMAS[name]) <= names for name in names)


def test_lists_know_their_merge_keys() -> None:
    ports = data.DEFINITIONS.node("io.k8s.api.core.v1.Container").properties["ports"]
    assert (ports.list_type, ports.list_map_keys) == ("map", ("containerPort", "protocol"))
    assert (ports.patch_strategies, ports.patch_merge_key) == (("merge",), "containerPort")


def test_published_schemas_hold_neither_our_keys_nor_texts() -> None:
    for name in data.SCHEMAS:
        assert not any(key.startswith("x-kopylite") for key in data.published(name))
        assert "description" not in data.published(name)


def test_a_start_parses_no_schema() -> None:
    script = (
        "from kopylite.apiserver.builtin import data; data.served();"
        "import sys; sys.exit(data.member.cache_info().currsize != 1)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
