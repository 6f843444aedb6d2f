"""CRDs of well-known projects load and behave. They are other people's texts: read in place, never copied.

KOPYLITE_FIELD_CRDS names a folder of YAML files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kopylite.apiserver.builtin.strategies import builtin_resources
from kopylite.apiserver.crd import definitions as crds
from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy
from kopylite.apiserver.openapi.documents import OpenApi
from kopylite.apiserver.resources.registry import Registry
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.clock import SystemClock
from tests.unit.apiserver.conftest import finished

FOLDER = os.environ.get("KOPYLITE_FIELD_CRDS", "")

pytestmark = pytest.mark.skipif(not FOLDER, reason="KOPYLITE_FIELD_CRDS names no folder of CRDs")


def field_crds() -> Iterator[Any]:
    for path in sorted(Path(FOLDER).glob("*.yaml")) if FOLDER else ():
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for index, document in enumerate(yaml.load_all(path.read_text(), Loader=loader)):
            if document and document.get("kind") == "CustomResourceDefinition":
                yield pytest.param(json.loads(json.dumps(document, default=str)), id=f"{path.stem}-{index}")


@pytest.fixture(scope="module")
def crd_strategy() -> crds.CrdStrategy:
    resources = builtin_resources(StrategyContext(SystemClock(), lambda storage: []))
    (resource,) = (r for r in resources if r.plural == "customresourcedefinitions")
    base = resource.strategy
    return base if isinstance(base, crds.CrdStrategy) else crds.CrdStrategy(base)


@pytest.mark.parametrize("document", list(field_crds()))
def test_a_crd_of_the_field_is_accepted_and_served(document: dict[str, Any], crd_strategy: crds.CrdStrategy) -> None:
    assert crd_strategy.decode(document) == []
    crd_strategy.default(document)
    crd_strategy.prepare_create(document)
    assert list(map(str, crd_strategy.validate_create(document))) == []
    assert [text for text in crd_strategy.warnings(document, None) if "cannot be evaluated" in text] == []
    established = crds.establish(document, [], "2026-01-01T00:00:00Z")
    assert crds.is_established(established)
    registry = Registry()
    for resource in crds.crd_resources(established):
        registry.add(resource)
        check_objects(resource.strategy)
    openapi = OpenApi(registry, 37)
    for key in openapi.index()["paths"]:
        assert finished(openapi.document(key))


def check_objects(strategy: Any) -> None:
    """Default and validate an empty object and one with a scalar where most kinds want an object."""
    assert isinstance(strategy, CustomResourceStrategy)
    for spec in ({}, {"surely": "unknown"}):
        obj: dict[str, Any] = {
            "apiVersion": strategy.api_version, "kind": strategy.kind, "metadata": {"name": "a"}, "spec": dict(spec),
        }  # fmt: skip
        strategy.decode(obj)
        strategy.default(obj)
        strategy.prepare_create(obj)
        once = json.dumps(obj, sort_keys=True)
        strategy.default(obj)
        assert json.dumps(obj, sort_keys=True) == once
        for error in strategy.validate_create(obj):
            assert "rule compile error" not in error.detail
    wrong: dict[str, Any] = {"apiVersion": strategy.api_version, "kind": strategy.kind, "metadata": {}, "spec": "text"}
    strategy.default(wrong)
    if "spec" in strategy.schema.properties and not strategy.schema.properties["spec"].preserve_unknown:
        assert any(error.field == "spec" for error in strategy.validate_create(wrong))
