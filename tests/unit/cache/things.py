"""Records for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kopylite.cache import Record
from kopylite.cache.steps import Spaces
from kopylite.objects import OwnerReference


def thing(
    name: str = "a",
    version: int | str = 1,
    *,
    namespace: str = "ns",
    uid: str = "",
    generation: int = 1,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    owners: tuple[OwnerReference, ...] = (),
    spec: Any = None,
) -> Record:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}}
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec}
    return Record(
        namespace=namespace,
        name=name,
        uid=uid or f"uid-{name}",
        resource_version=str(version),
        generation=generation,
        labels=labels,
        owner_references=owners,
        finalizers=(),
        deletion_timestamp=None,
        body=json.dumps(body).encode(),
    )


def spaces(records: Iterable[Record]) -> Spaces:
    found: Spaces = {}
    for record in records:
        found.setdefault(record.namespace, {})[record.name] = record
    return found
