"""Built-in kinds against what a real kube-apiserver 1.37 answered: whole created objects, and all refusals.

`recorded/` holds one JSON document a line: the object sent, and the answer to a dry-run POST (uid "U", times
"T" and "NOW").
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kopylite.apiserver.builtin.strategies import builtin_resources
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.clock import SYSTEM_CLOCK

RECORDED = Path(__file__).parent / "recorded"
RESOURCES = {(r.api_version, r.kind): r for r in builtin_resources(StrategyContext(SYSTEM_CLOCK, lambda storage: ()))}

Object = dict[str, Any]


def recorded(name: str) -> list[Any]:
    rows = [json.loads(line) for line in (RECORDED / name).read_text().splitlines()]
    return [pytest.param(row, id=f"{i}-{row['object']['kind']}") for i, row in enumerate(rows)]


def prepared(sent: Object) -> tuple[Resource, Object]:
    """The object after everything that a create does before validation."""
    obj = copy.deepcopy(sent)
    resource = RESOURCES[obj["apiVersion"], obj["kind"]]
    strategy: Any = resource.strategy
    assert strategy.decode(obj) == []
    strategy.default(obj)
    obj["metadata"] |= {"uid": "U", "creationTimestamp": "T"}
    if resource.namespaced:
        obj["metadata"]["namespace"] = "default"
    if strategy.generation:
        obj["metadata"]["generation"] = 1
    update_managed_fields(
        obj,
        None,
        schema=strategy.schema,
        manager="test",
        api_version=resource.api_version,
        subresource="",
        now="NOW",
        reset=strategy.reset_fields(""),
    )
    strategy.prepare_create(obj)
    return resource, obj


@pytest.mark.parametrize("row", recorded("creations.jsonl"))
def test_a_created_object_is_the_real_servers(row: dict[str, Object]) -> None:
    resource, obj = prepared(row["object"])
    assert resource.strategy.validate_create(obj) == []
    assert obj == row["created"]
    # Ownership in the same order too.
    entries = [json.dumps(e["fieldsV1"]) for e in obj["metadata"].get("managedFields", ())]
    assert entries == [json.dumps(e["fieldsV1"]) for e in row["created"]["metadata"].get("managedFields", ())]


@pytest.mark.parametrize("row", recorded("refusals.jsonl"))
def test_a_refusal_has_the_real_servers_causes(row: dict[str, Any]) -> None:
    resource, obj = prepared(row["object"])
    errors = resource.strategy.validate_create(obj)
    assert [[e.reason, e.message, e.field] for e in errors] == row["causes"]
