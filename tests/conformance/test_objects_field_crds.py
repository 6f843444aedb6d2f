"""The large CRDs of the field: to Python source and back, and every object is as welcome as before.

`KOPYLITE_FIELD_CRDS` names a folder of YAML files with CRDs (and sample objects); they are not part of the project.
"""

from __future__ import annotations

import copy
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, given, settings

from kopylite.client import Client
from kopylite.codegen.models import models_of
from kopylite.crds import SchemaWarning, crd_of
from kopylite.crds.changes import compare_crds
from kopylite.errors import Invalid
from kopylite.objects import Unstructured, adapter_of
from kopylite.objects.quantity import PATTERN, USUAL_PATTERN
from kopylite.objects.yamlread import read_documents
from kopylite.testing import EnvTest
from tests.instances import valid
from tests.sizes import examples

FOLDER = os.environ.get("KOPYLITE_FIELD_CRDS")


def documents() -> list[dict[str, Any]]:
    if not FOLDER:
        return []
    return [
        document
        for path in sorted(Path(FOLDER).glob("*.yaml"))
        for document in read_documents(path.read_bytes(), str(path))
        if isinstance(document, dict)
    ]


FIELD = documents()
CRDS = {d["metadata"]["name"]: d for d in FIELD if d.get("kind") == "CustomResourceDefinition"}
SAMPLES = [d for d in FIELD if d.get("kind") in {crd["spec"]["names"]["kind"] for crd in CRDS.values()}]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not FOLDER, reason="no CRDs of the field: let KOPYLITE_FIELD_CRDS name their folder"),
]


def stored_version(crd: dict[str, Any]) -> dict[str, Any]:
    """The CRD with its stored version only."""
    narrowed = copy.deepcopy(crd)
    narrowed["spec"]["versions"] = [version for version in crd["spec"]["versions"] if version["storage"]]
    return narrowed


def model_of(name: str) -> Any:
    """The class that the `models` command writes for a CRD."""
    module = ModuleType(f"field_{re.sub(r'[^a-z]', '_', name)}")
    if module.__name__ not in sys.modules:
        sys.modules[module.__name__] = module
        exec(compile(models_of(CRDS[name]), f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return getattr(sys.modules[module.__name__], CRDS[name]["spec"]["names"]["kind"])


def again(name: str) -> dict[str, Any]:
    """The CRD that comes out of the generated class."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", SchemaWarning)
        return crd_of(model_of(name))


@pytest.mark.parametrize("name", CRDS)
def test_the_way_to_source_and_back_endangers_no_object(name: str) -> None:
    changes = compare_crds(stored_version(CRDS[name]), again(name))
    assert [str(change) for change in changes if change.dangerous] == []


class Server:
    """A real API server, to be called from synchronous tests."""

    def __init__(self, portal: BlockingPortal, cluster: EnvTest, client: Client) -> None:
        self._portal, self._cluster, self._client = portal, cluster, client

    def install(self, crd: dict[str, Any]) -> None:
        self._portal.call(lambda: self._cluster.install_crds(copy.deepcopy(crd), timeout=60))

    def refusal(self, obj: dict[str, Any]) -> str | None:
        """What the server finds wrong with an object; None: nothing."""
        try:
            self._portal.call(lambda: self._client.live.create(Unstructured(obj), dry_run=True))
        except Invalid as error:
            return str(error)
        return None


@pytest.fixture(scope="module")
def server(real_cluster: EnvTest) -> Iterator[Server]:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(real_cluster.client()) as client,
    ):
        yield Server(portal, real_cluster, client)


def object_of(crd: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    spec = crd["spec"]
    metadata = {"generateName": "field-"} | ({"namespace": "default"} if spec["scope"] == "Namespaced" else {})
    version = next(version["name"] for version in spec["versions"] if version["storage"])
    known = {key: value for key, value in parts.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": f"{spec['group']}/{version}", "kind": spec["names"]["kind"], "metadata": metadata, **known}


def readable(schema: Any) -> Any:
    """A schema whose quantities are ones that Kubernetes can read, and without rules in CEL to be met by chance."""
    if isinstance(schema, list):
        return [readable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: readable(part) for key, part in schema.items()}
    return schema | {"pattern": PATTERN} if schema.get("pattern") == USUAL_PATTERN else schema


@pytest.mark.realserver
@pytest.mark.parametrize("name", CRDS)
def test_the_new_crd_and_the_class_accept_what_the_old_crd_accepts(server: Server, name: str) -> None:
    old, new = CRDS[name], again(name)
    schema = readable(stored_version(old)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    accepted: list[dict[str, Any]] = []
    server.install(old)

    @settings(max_examples=examples(40), derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(parts=valid(schema))
    def collect(parts: dict[str, Any]) -> None:
        obj = object_of(old, parts)
        if server.refusal(obj) is None:
            accepted.append(obj)

    collect()
    accepted += [object_of(old, sample) for sample in SAMPLES if sample["kind"] == old["spec"]["names"]["kind"]]
    assert accepted, "no generated object was accepted: the test shows nothing"
    server.install(new)
    adapter = adapter_of(model_of(name))
    for obj in accepted:
        assert server.refusal(obj) is None
        typed = adapter.decode(json.dumps(obj, default=str).encode())
        assert server.refusal(adapter.encode(typed)) is None
