"""Paths: the dotted names of fields that indexes and predicates take: "spec.config", "spec.volumes.name". Pure.

A list on the way stands for each of its items. A name with dots in it stands in brackets:
"metadata.annotations['example.com/team']".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from kopylite.boundary import show
from kopylite.checks import nearest
from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import CustomResource, Kind, ObjectMeta

_STEP = re.compile(r"\.([^.\[\]'\"\s]+)|\[(?:'([^']+)'|\"([^\"]+)\")\]")


def parse_path(path: object) -> tuple[str, ...]:
    """The names of a path.

    Raises:
        UsageError: it is none.
    """
    text, names, at = f".{path}" if isinstance(path, str) else "", list[str](), 0
    while step := _STEP.match(text, at):
        names.append(step[1] or step[2] or step[3])
        at = step.end()
    if not names or at != len(text):
        raise UsageError(
            f"{show(path)} is no path of a field: write names with dots, as in 'spec.config', and a name that has dots "
            "itself as in \"metadata.annotations['example.com/team']\""
        )
    return tuple(names)


def check_path(kind: Kind | type[Any], path: str) -> None:
    """Refuse what is no path, or not of a class. Of other kinds nothing is known here but the syntax.

    Raises:
        UsageError: names the field, and one that may be meant.
    """
    names = parse_path(path)
    if not (isinstance(kind, type) and issubclass(kind, CustomResource)):
        return
    node: Any = _schema(kind)
    for number, name in enumerate(names):
        while isinstance(node, dict) and node.get("type") == "array":
            node = node.get("items")
        if not isinstance(node, dict) or not node or node.get("x-kubernetes-preserve-unknown-fields"):
            return
        fields = node.get("properties")
        inner = fields.get(name) if fields else node.get("additionalProperties")
        if inner is None:
            where = ".".join(names[:number]) or kind.__name__
            near = nearest(name, fields or ())
            has = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(fields)) if fields else 'none'}"
            raise UsageError(f"{path!r}: {where} of {kind.__name__} has no field {name!r}; {has}")
        node = inner


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path of a decoded object; of lists on the way a list; None where there is nothing."""
    for number, name in enumerate(path):
        if isinstance(value, list):
            return [value_at(item, path[number:]) for item in value]
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


@cache
def top_reader(first: str) -> Callable[[bytes], Any]:
    """Decodes one field of an object and no other; the result has it as `.value`, Raw, empty when it is missing."""
    fields = [("value", msgspec.Raw, msgspec.Raw())]
    model = msgspec.defstruct("Top", fields, rename={"value": first}, gc=False)
    return msgspec.json.Decoder(model).decode


@cache
def _schema(kind: type[Any]) -> Mapping[str, Any]:
    """The schema of a class; {} where none can be made: then nothing is known of its fields."""
    from kopylite.crds.schema import SchemaWarning, schema_of  # needed by few, and a tenth of what an import costs

    texts: dict[str, Any] = {"type": "string"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # they are for whoever makes a CRD
            fields = schema_of(kind).get("properties") or {}
            metadata = schema_of(ObjectMeta)
    except RegistrationError:
        return {}
    return {"properties": {**fields, "apiVersion": texts, "kind": texts, "metadata": metadata}}
