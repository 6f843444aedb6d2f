"""Specs: what the schema of a CRD lets a spec be beside what it is, and what it does not."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopylite.sweep.trace import SCENARIO, TraceEntry

# Of a variation: the schema speaks for the value; it has nothing against it, which is less; it refuses it.
ALLOWED, OPEN, REFUSED = "allowed", "open", "refused"
# Numbers may be counts of what is made: nothing is tried that makes more than so many more.
FARTHEST = 50
LONGEST_TEXT = 1024
# What nobody puts into a spec, and what a made-up text is.
ODD = "sweep"
_OWN = frozenset({"apiVersion", "kind", "metadata", "status"})
_INT32 = 2**31 - 1
_MISSING: Any = object()

Schema = Mapping[str, Any]
CrdSchemas = Mapping[str, Mapping[str, Schema]]
"""By storage ("things.example.com") and apiVersion."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One field that is otherwise.

    Attributes:
        how: ALLOWED, OPEN or REFUSED.
        pointer: a JSON pointer in the object.
        value: as JSON; "" takes the field away.
        fresh: the object has no such field.
    """

    how: str
    pointer: str
    value: str
    fresh: bool = False


def schemas_of(crds: Iterable[Mapping[str, Any]]) -> CrdSchemas:
    """The schemas of CustomResourceDefinitions."""
    return {
        crd["metadata"]["name"]: {
            f"{crd['spec']['group']}/{version['name']}": (version.get("schema") or {}).get("openAPIV3Schema") or {}
            for version in crd["spec"]["versions"]
        }
        for crd in crds
    }


def varied_objects(entries: Iterable[TraceEntry], schemas: CrdSchemas) -> Iterator[tuple[int, str, list[Variation]]]:
    """The variations of what people write in each step, as it is at the end of it: with step and key; each one once."""
    theirs: set[tuple[int, str]] = set()
    last: dict[tuple[int, str], TraceEntry] = {}
    for entry in entries:
        if entry.kind == "change" and entry.key.partition(" ")[0] in schemas:
            last[entry.step, entry.key] = entry
            if entry.actor == SCENARIO:
                theirs.add((entry.step, entry.key))
    seen: set[tuple[str, Variation]] = set()
    for (step, key), entry in last.items():
        obj = entry.after or {}
        schema = schemas[key.partition(" ")[0]].get(obj.get("apiVersion", ""))
        if (step, key) not in theirs or entry.change == "DELETED" or schema is None or _is_deleted(obj):
            continue
        found = [each for each in dict.fromkeys(variations(schema, obj)) if (key, each) not in seen]
        seen |= {(key, each) for each in found}
        yield step, key, found


def _is_deleted(obj: Mapping[str, Any]) -> bool:
    return bool(obj.get("metadata", {}).get("deletionTimestamp"))


def variations(schema: Schema, obj: Mapping[str, Any]) -> Iterator[Variation]:
    """Each changes one field of the spec (or whatever else there is beside metadata and status) to another value.

    Bounds and one beyond, each of an enum, neighbours of numbers, longer, shorter and other texts, lists and maps with
    more, fewer and no elements, optional fields that go and come.
    """
    required = schema.get("required") or ()
    for name, inner in (schema.get("properties") or {}).items():
        if name not in _OWN:
            yield from _field(inner, obj.get(name, _MISSING), f"/{_escaped(name)}", name in required)


def _field(schema: Schema, value: Any, pointer: str, required: bool) -> Iterator[Variation]:
    if value is _MISSING:
        if not required:
            for how, other in _fresh(schema):
                yield Variation(how, pointer, _text(other), fresh=True)
        return
    if required and "default" not in schema:
        yield Variation(REFUSED, pointer, "")
    elif schema.get("default", _MISSING) != value:  # else the server would put it back
        yield Variation(ALLOWED, pointer, "")
    if value is None or schema.get("x-kubernetes-int-or-string"):
        return
    for how, other in _values(schema, value):
        if _text(other) != _text(value):
            yield Variation(how, pointer, _text(other))
    if isinstance(value, dict):
        yield from _inside_map(schema, value, pointer)
    elif isinstance(value, list) and value:
        # One element stands for all.
        yield from (each for each in _field(schema.get("items") or {}, value[0], f"{pointer}/0", True) if each.value)


def _inside_map(schema: Schema, value: Mapping[str, Any], pointer: str) -> Iterator[Variation]:
    required, properties = schema.get("required") or (), schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _field(inner, value.get(name, _MISSING), f"{pointer}/{_escaped(name)}", name in required)
    free = [name for name in value if name not in properties]
    if isinstance(others := schema.get("additionalProperties"), Mapping) and free:
        yield from _field(others, value[free[0]], f"{pointer}/{_escaped(free[0])}", False)


def _values(schema: Schema, value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of a field that is there."""
    if choices := schema.get("enum"):
        yield from ((ALLOWED, each) for each in choices if each is not None)
        if isinstance(value, str) and f"{value}-{ODD}" not in choices:
            yield REFUSED, f"{value}-{ODD}"
    elif isinstance(value, bool):
        yield ALLOWED, not value
    elif isinstance(value, (int, float)):
        yield from _numbers(schema, value)
    elif isinstance(value, str):
        yield from _texts(schema, value)
    elif isinstance(value, list):
        yield from _lists(schema, value)
    elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), Mapping):
        if value and not schema.get("minProperties"):
            yield ALLOWED, {}
        if value and ODD not in value and len(value) < schema.get("maxProperties", math.inf):
            yield OPEN, {**value, ODD: next(iter(value.values()))}


def _bounds(schema: Schema) -> tuple[float, float]:
    """The least and the greatest whole number; infinite where nothing is said."""
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    if schema.get("format") == "int32":
        high = min(high, _INT32)
    if math.isfinite(low):
        low = math.floor(low) + 1 if schema.get("exclusiveMinimum") else math.ceil(low)
    if math.isfinite(high):
        high = math.ceil(high) - 1 if schema.get("exclusiveMaximum") else math.floor(high)
    return low, high


def _numbers(schema: Schema, value: float) -> Iterator[tuple[str, Any]]:
    low, high = _bounds(schema)
    step = schema.get("multipleOf") or 1
    # Less than nothing is no count, where nobody says that it is one.
    least = low if math.isfinite(low) else min(0, value)
    for other in (least, high, value - step, value + step):
        if least <= other <= high and other - value <= max(FARTHEST, step) and other % step == 0:
            yield ALLOWED, int(other) if other == int(other) else other
    if "minimum" in schema:
        yield REFUSED, math.floor(schema["minimum"]) - 1
    if "maximum" in schema:
        yield REFUSED, math.ceil(schema["maximum"]) + 1
    if "minimum" not in schema and "maximum" not in schema:
        yield REFUSED, ODD


def _texts(schema: Schema, value: str) -> Iterator[tuple[str, Any]]:
    shortest, longest = schema.get("minLength") or 0, schema.get("maxLength", math.inf)
    formed = "pattern" in schema or "format" in schema
    if len(value) < longest:
        yield OPEN, f"{value}x"
    if not shortest:
        yield ALLOWED if "minLength" in schema and not formed else OPEN, ""
    elif len(value) > shortest:
        yield OPEN, value[:shortest]
    if longest <= LONGEST_TEXT:
        if not formed:
            yield ALLOWED, value.ljust(int(longest), "x")
        yield REFUSED, value.ljust(int(longest) + 1, "x")
    if shortest:
        yield REFUSED, value[: shortest - 1]
    elif longest > LONGEST_TEXT:
        yield REFUSED, 0


def _lists(schema: Schema, value: list[Any]) -> Iterator[tuple[str, Any]]:
    fewest, most = schema.get("minItems") or 0, schema.get("maxItems", math.inf)
    if value:
        yield REFUSED if fewest else ALLOWED, []
    if len(value) > max(fewest, 1):
        yield ALLOWED, value[:-1]
    if value and len(value) < most and (one_more := _another(schema, value)) is not None:
        yield OPEN, [*value, one_more]


def _another(schema: Schema, value: list[Any]) -> Any:
    """An element that a list has not yet; None: nobody knows one."""
    last, items = value[-1], schema.get("items") or {}
    if isinstance(last, str) or items.get("enum"):
        return _other_than(items, last, value)
    if not isinstance(last, dict):
        return None
    for key in schema.get("x-kubernetes-list-map-keys") or ("name",):
        if isinstance(last.get(key), str):
            taken = [each.get(key) for each in value if isinstance(each, dict)]
            other = _other_than((items.get("properties") or {}).get(key) or {}, last[key], taken)
            return None if other is None else {**copy.deepcopy(last), key: other}
    return None


def _other_than(schema: Schema, text: Any, taken: Sequence[Any]) -> Any:
    """A text, or a choice of an enum, that is not among others; None: nobody knows one."""
    if choices := schema.get("enum"):
        return next((each for each in choices if each not in taken), None)
    while text in taken:
        text += "x"
    return text if len(text) <= schema.get("maxLength", math.inf) else None


def _fresh(schema: Schema) -> Iterator[tuple[str, Any]]:
    """Values of a field that is not there."""
    if choices := schema.get("enum"):
        yield from ((ALLOWED, each) for each in choices if each is not None)
    elif schema.get("type") == "boolean":
        yield ALLOWED, True
    elif (sample := _sample(schema)) is not _MISSING:
        yield ALLOWED if schema.get("type") == "integer" else OPEN, sample


def _sample(schema: Schema) -> Any:
    """A small value; _MISSING: nobody knows one."""
    if "default" in schema:
        return copy.deepcopy(schema["default"])
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            low, high = _bounds(schema)
            one = int(max(min(1, high), low))
            step = schema.get("multipleOf") or 1
            return one if one % step == 0 and one <= FARTHEST else _MISSING
        case "string" if "pattern" not in schema and "format" not in schema:
            shortest = schema.get("minLength") or 0
            fits = shortest <= LONGEST_TEXT and len(ODD) <= schema.get("maxLength", math.inf)
            return ODD.ljust(shortest, "x") if fits else _MISSING
        case "array":
            one = _sample(schema.get("items") or {})
            return [one] if one is not _MISSING and (schema.get("minItems") or 0) <= 1 else _MISSING
        case "object":
            return _sample_map(schema)
    return _MISSING


def _sample_map(schema: Schema) -> Any:
    properties = schema.get("properties") or {}
    found = {name: _sample(properties.get(name) or {}) for name in schema.get("required") or ()}
    if not found and isinstance(others := schema.get("additionalProperties"), Mapping):
        found = {ODD: _sample(others)}
    return found if found and _MISSING not in found.values() else _MISSING


def together(found: Sequence[Variation]) -> Iterator[tuple[Variation, ...]]:
    """Several fields at once: of each that is there its first value, and its last one."""
    by_field: dict[str, list[Variation]] = {}
    for each in found:
        if each.how == ALLOWED and not each.fresh:
            by_field.setdefault(each.pointer, []).append(each)
    # What lies in a field that goes, goes with it.
    inner = [each for pointer, each in by_field.items() if not any(p.startswith(f"{pointer}/") for p in by_field)]
    if len(inner) > 1:
        yield tuple(each[0] for each in inner)
        yield tuple(each[-1] for each in inner)


def varied(obj: Mapping[str, Any], changes: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """An object with other values, as JSON, at some pointers; "" takes a field away. What has no place is left out."""
    changed = copy.deepcopy(dict(obj))
    for pointer, value in changes:
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        holder: Any = changed
        for name in path:
            holder = _inner(holder, name)
        if isinstance(holder, list) and last.isdecimal() and int(last) < len(holder) and value:
            holder[int(last)] = json.loads(value)
        elif isinstance(holder, dict) and value:
            holder[last] = json.loads(value)
        elif isinstance(holder, dict):
            holder.pop(last, None)
    return changed


def _inner(holder: Any, name: str) -> Any:
    if isinstance(holder, list) and name.isdecimal() and int(name) < len(holder):
        return holder[int(name)]
    return holder.get(name) if isinstance(holder, dict) else None


def contents_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What people decide about: the spec, and whatever else there is beside metadata and status."""
    return {name: value for name, value in obj.items() if name not in _OWN}


def field_name(pointer: str) -> str:
    """A JSON pointer as people write it: "spec.items[0].count"."""
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]
    return "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in parts).lstrip(".")


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
