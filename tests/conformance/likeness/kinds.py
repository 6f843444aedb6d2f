"""Scripts about every built-in kind, made from its schema: what is refused, what is kept, what may change.

Each kind that is stored gets a script: objects without anything in them, names of all sorts, an object whose every
field is filled by its type alone, and the sample in samples.yaml, which is accepted. Then one field at a time is
set in the sample: to a value that its type allows, and to an odd one. So each rule about one field shows, and a field
that may not change is found by a change. A type that many kinds share (a pod's spec) is gone through in one of them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kopylite.apiserver.builtin import data
from tests.conformance.likeness.script import ACCEPTS, Script, Step

Object = dict[str, Any]
Path_ = tuple[Any, ...]  # of keys and indices

SAMPLES = Path(__file__).parent / "samples.yaml"
SECTION = "Kinds"
# Types whose values are no structs in JSON.
_SCALARS: Mapping[str, tuple[Any, Any]] = {
    "IntOrString": (1, "x"),
    "Quantity": ("1", "-1"),
    "Time": ("2020-01-01T00:00:00Z", None),
    "MicroTime": ("2020-01-01T00:00:00.000000Z", None),
    "RawExtension": ({"a": "b"}, {}),
    "JSON": ("x", {}),
    "FieldsV1": ({}, {}),
    "JSONSchemaProps": ({"type": "object"}, {"type": "x"}),
    "JSONSchemaPropsOrBool": (True, False),
    "JSONSchemaPropsOrArray": ({"type": "object"}, {}),
    "JSONSchemaPropsOrStringArray": (["x"], {}),
    "Duration": ("1s", "x"),
}
_PLAIN: Mapping[str, tuple[Any, Any]] = {
    "string": ("x", "-Odd value/"),
    "integer": (1, -1),
    "number": (1.5, -1.5),
    "boolean": (True, False),
}
# A dry run gives a uid to what it accepts, so one difference would number all later ones otherwise.
_UIDS = ("metadata.uid", "details.uid", "rows.0.object.metadata.uid")
_DEEPEST = 5
# Steps whose answer hangs on how far a controller of the real server has come.
_BY_CHANCE = {
    ("CustomResourceDefinition", "spec becomes None"),
    ("CustomResourceDefinition", "spec.names becomes None"),
    ("ResourceQuota", "table"),
}
_NAMES = {"not a name": "Not_A:Name", "two labels": "a.b", "a digit": "1a", "a long label": "a" * 64}


@cache
def samples() -> Mapping[str, Object]:
    """The accepted object of each kind, by "group/version/Kind" ("v1/Kind" of the core group)."""
    made: Mapping[str, Object] = yaml.safe_load(SAMPLES.read_text())
    return made


def kinds() -> Iterator[tuple[str, Object]]:
    """Group version and entry of every kind that can be created and is stored, in the order of discovery."""
    for group in data.served():
        api_version = f"{group['group']}/{group['version']}" if group["group"] else group["version"]
        for entry in group["resources"]:
            if {"create", "list"} <= set(entry["verbs"]):
                yield api_version, entry


def scripts() -> Iterator[Script]:
    """One for each kind."""
    visited: set[str] = set()
    for api_version, entry in kinds():
        yield Script(SECTION, f"{api_version} {entry['kind']}", tuple(_Kind(api_version, entry, visited).steps()))


def thinned(script: Script, share: int) -> Script:
    """Of the steps that set or change one field, every `share`th; all others."""
    steps = [step for number, step in enumerate(script.steps) if not _about_a_field(step) or number % share == 0]
    return replace(script, steps=tuple(steps))


def _about_a_field(step: Step) -> bool:
    return " = " in step.name or " becomes " in step.name


class _Kind:
    def __init__(self, api_version: str, entry: Object, visited: set[str]) -> None:
        self.api_version, self.kind = api_version, entry["kind"]
        self.schema = data.kinds_of(api_version)[self.kind]
        prefix = f"/apis/{api_version}" if "/" in api_version else "/api/v1"
        namespace = "/namespaces/{ns}" if entry["namespaced"] else ""
        self.path = f"{prefix}{namespace}/{entry['plural']}"
        self.status = "status" in entry["subresources"]
        sample = copy.deepcopy(samples()[f"{api_version}/{self.kind}"])
        self.ignored = (*_UIDS, *sample.pop("ignore", ()))
        self.filled_status = sample.pop("status", None)
        self.name = sample.setdefault("metadata", {}).setdefault("name", "{ns}")
        self.sample = {"apiVersion": api_version, "kind": self.kind, **sample}
        self.visited = visited

    def steps(self) -> Iterator[Step]:
        """The steps, each with a name of its own: a value may be the odd one and the plain one of its type."""
        steps = {step.name: step for step in (*self._creates(), *self._changes())}
        yield from (step for name, step in steps.items() if (self.kind, name) not in _BY_CHANCE)

    def _creates(self) -> Iterator[Step]:
        """What is tried before anything is stored."""
        bare = {"apiVersion": self.api_version, "kind": self.kind}
        yield self._create("nothing", bare)
        yield self._create("empty", {**bare, "metadata": {"name": self.name}})
        yield self._create("crude", {**bare, "metadata": {"name": self.name}, **_crude(self.schema)})
        for label, odd in _NAMES.items():
            yield self._create(f"name: {label}", {**self.sample, "metadata": {**self.sample["metadata"], "name": odd}})
        for path, value in _variations(self.schema, self.sample, self.visited):
            yield self._create(f"{_dotted(path)} = {_shown(value)}", _with(self.sample, path, value))

    def _changes(self) -> Iterator[Step]:
        """The sample, and what it may become."""
        yield self._step("POST", "", "sample", self.sample)
        here, dry = f"/{self.name}", f"/{self.name}?dryRun=All"
        if self.status:
            if self.filled_status is not None:
                yield self._step("PATCH", f"{here}/status", "status", {"status": self.filled_status})
            yield self._step("PATCH", f"{here}/status?dryRun=All", "crude status", {"status": self._crude_status()})
        yield self._step("GET", here, "table", None, accept=ACCEPTS["table"])
        yield self._step("PUT", dry, "without a version", self.sample)
        for path, value in _changes(self.sample):
            label = f"{_dotted(path)} becomes {_shown(value)}"
            yield self._step("PATCH", dry, label, _merge(self.sample, path, value))
        yield self._step("DELETE", here, "delete", None)

    def _crude_status(self) -> Any:
        return _value(data.SCHEMAS[self.schema]["properties"]["status"], 0, frozenset())

    def _create(self, label: str, body: Object) -> Step:
        return self._step("POST", "?dryRun=All", label, body)

    def _step(self, method: str, rest: str, label: str, body: Any, accept: str = "application/json") -> Step:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return Step(
            method,
            self.path + rest,
            body,
            kind,
            accept,
            ignore=self.ignored,
            without=("managedFields", "resourceVersion"),
            name=label,
        )


def _merge(obj: Object, path: Path_, value: Any) -> Any:
    """The merge patch that changes the value at the path; lists are given as a whole."""
    if not path:
        return value
    if len(path) > 1 and isinstance(path[1], int):
        return {path[0]: _with(obj, path, value)[path[0]]}
    return {path[0]: _merge(obj[path[0]], path[1:], value)}


def _shown(value: Any) -> str:
    return f"{value!r:.40}"


def _dotted(path: Path_) -> str:
    return ".".join(map(str, path))


def _reference(prop: Object) -> str:
    """The schema that a property refers to, directly or as `allOf` of one; "" for none."""
    ref = prop.get("$ref") or next((one["$ref"] for one in prop.get("allOf", ()) if "$ref" in one), "")
    return str(ref).rpartition("/")[2]


def _value(prop: Object, odd: int, above: frozenset[str]) -> Any:
    """A value of the type: `odd` 0 the plain one, 1 the odd one."""
    ref = _reference(prop)
    short = ref.rpartition(".")[2]
    if short in _SCALARS:
        return _SCALARS[short][odd]
    if ref:
        return {} if odd or ref in above or len(above) > _DEEPEST else _fields(ref, above | {ref})
    if prop.get("type") == "array":
        return [_value(prop["items"], odd, above)]
    if prop.get("type") == "object":
        values = prop.get("additionalProperties")
        return {("Odd key/", "x")[1 - odd]: _value(values, odd, above)} if isinstance(values, dict) else {}
    if prop.get("format") == "byte":
        return ("eA==", "")[odd]
    return _PLAIN.get(prop.get("type", ""), ("x", {}))[odd]


def _fields(schema: str, above: frozenset[str]) -> Object:
    properties = data.SCHEMAS[schema].get("properties") or {}
    return {field: _value(prop, 0, above) for field, prop in properties.items() if field != "metadata"}


def _crude(schema: str) -> Object:
    fields = _fields(schema, frozenset({schema}))
    return {k: v for k, v in fields.items() if k not in ("apiVersion", "kind", "metadata", "status")}


def _changes(obj: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Each field of the sample, gone or with another value."""
    if isinstance(obj, dict):
        for key, value in obj.items():
            if path or key not in ("apiVersion", "kind", "metadata"):
                yield (*path, key), None
                yield from _changes(value, (*path, key))
    elif isinstance(obj, list):
        for index, value in enumerate(obj[:1]):
            yield from _changes(value, (*path, index))
    elif isinstance(obj, bool):
        yield path, not obj
    elif isinstance(obj, int):
        yield path, obj + 1
    elif isinstance(obj, str):
        yield path, f"{obj}x"


def _variations(schema: str, obj: Any, visited: set[str], path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Each field that the schema has, set to each of its values; structs that the sample has are gone into."""
    if schema in visited:
        return
    visited.add(schema)
    for field, prop in (data.SCHEMAS[schema].get("properties") or {}).items():
        if (not path and field in ("apiVersion", "kind", "metadata", "status")) or field == "managedFields":
            continue
        here = (*path, field)
        for odd in (0, 1):
            value = _value(prop, odd, frozenset({schema}))
            if value is not None:
                yield here, value
        yield from _inside(prop, obj.get(field) if isinstance(obj, dict) else None, visited, here)


def _inside(prop: Object, value: Any, visited: set[str], path: Path_) -> Iterator[tuple[Path_, Any]]:
    if prop.get("type") == "array":
        prop, path, value = prop["items"], (*path, 0), value[0] if value else None
    ref = _reference(prop)
    if value is not None and ref and ref.rpartition(".")[2] not in _SCALARS:
        yield from _variations(ref, value, visited, path)


def _with(obj: Object, path: Path_, value: Any) -> Object:
    """A copy in which the value at the path is another one; None: is not there."""
    changed = copy.deepcopy(obj)
    place: Any = changed
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed
