"""What a new version of a CustomResourceDefinition means for the objects that are stored already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kopylite.crds.jsonschema import PRESERVE_UNKNOWN

Crd = Mapping[str, Any]
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CrdChange:
    """One difference between two CRDs.

    Attributes:
        path: what differs, e.g. "v1 .spec.replicas".
        text: how.
        dangerous: stored objects can become invalid or lose data, or clients can lose their way to them.
    """

    path: str
    text: str
    dangerous: bool

    def __str__(self) -> str:
        return f"{'DANGEROUS: ' if self.dangerous else ''}{self.path}: {self.text}"


def compare_crds(old: Crd, new: Crd) -> list[CrdChange]:
    """The differences that matter to stored objects and their clients; descriptions do not."""
    return list(_compare(old["spec"], new["spec"]))


def _compare(old: Schema, new: Schema) -> Iterator[CrdChange]:
    for field in ("group", "scope"):
        if old.get(field) != new.get(field):
            yield CrdChange(field, f"changed from {old.get(field)} to {new.get(field)}; it cannot be changed", True)
    for field in ("kind", "plural"):
        before, after = old["names"].get(field), new["names"].get(field)
        if before != after:
            yield CrdChange(f"names.{field}", f"changed from {before} to {after}; it cannot be changed", True)
    before_versions = {version["name"]: version for version in old["versions"]}
    after_versions = {version["name"]: version for version in new["versions"]}
    for name, version in before_versions.items():
        if name not in after_versions:
            yield CrdChange(name, "the version is removed; objects may be stored in it", True)
        else:
            yield from _compare_version(name, version, after_versions[name])
    for name in after_versions:
        if name not in before_versions:
            yield CrdChange(name, "the version is new", False)


def _compare_version(name: str, old: Schema, new: Schema) -> Iterator[CrdChange]:
    if old["served"] and not new["served"]:
        yield CrdChange(name, "the version is no longer served", True)
    if old["storage"] != new["storage"]:
        text = "objects are stored in this version" if new["storage"] else "objects are stored in another version"
        yield CrdChange(name, f"{text} from their next write on", False)
    for subresource in ("status", "scale"):
        had, has = (subresource in version.get("subresources", {}) for version in (old, new))
        if had != has:
            yield CrdChange(
                name, f"the {subresource} sub-resource is {'new' if has else 'removed'}", had or subresource == "status"
            )
    paths_before, paths_after = ({f["jsonPath"] for f in version.get("selectableFields", ())} for version in (old, new))
    for path in sorted(paths_before - paths_after):
        yield CrdChange(f"{name} {path}", "can no longer be selected by", True)
    schemas = [version.get("schema", {}).get("openAPIV3Schema", {}) for version in (old, new)]
    yield from _compare_schema(f"{name} ", schemas[0], schemas[1])


def _compare_schema(path: str, old: Schema, new: Schema, *, optional: bool = False) -> Iterator[CrdChange]:
    shown = path if not path.endswith(" ") else f"{path}object"
    if _type(old) != _type(new):
        loosened = _type(new) == "anything" or (_type(old), _type(new)) in (
            ("integer", "number"),
            ("integer", "int-or-string"),
            ("string", "int-or-string"),
        )
        yield CrdChange(shown, f"the type changes from {_type(old)} to {_type(new)}", not loosened)
        return
    if old.get("nullable") and not new.get("nullable"):
        # The server drops the nulls of optional fields.
        yield CrdChange(shown, "null is dropped" if optional else "null is no longer allowed", not optional)
    yield from (CrdChange(shown, text, dangerous) for text, dangerous in _compare_values(old, new))
    yield from _compare_properties(path, old, new)
    for inner, step in (("items", "[]"), ("additionalProperties", "[*]")):
        if isinstance(old.get(inner), Mapping) and isinstance(new.get(inner), Mapping):
            yield from _compare_schema(f"{path}{step}", old[inner], new[inner])


def _compare_values(old: Schema, new: Schema) -> Iterator[tuple[str, bool]]:
    if old.get("enum") != new.get("enum"):
        yield from _compare_enums(old.get("enum"), new.get("enum"))
    for limit, tighter in _LIMITS.items():
        before, after = old.get(limit), new.get(limit)
        if before != after:
            tightened = after is not None and (before is None or tighter * (after - before) > 0)
            yield f"{limit} changes from {_shown(before)} to {_shown(after)}", tightened
    for key in _CONDITIONS:
        before, after = _condition(old, key), _condition(new, key)
        if before != after:
            yield f"{key} changes from {_shown(before)} to {_shown(after)}", after is not None
    if old.get(PRESERVE_UNKNOWN) and not new.get(PRESERVE_UNKNOWN):
        yield "unknown fields are no longer kept", True
    if old.get("default") != new.get("default"):
        yield f"the default changes from {_shown(old.get('default'))} to {_shown(new.get('default'))}", False


# Bounds, and the direction in which they get tighter.
_LIMITS = {
    "minimum": 1, "minLength": 1, "minItems": 1, "minProperties": 1,
    "maximum": -1, "maxLength": -1, "maxItems": -1, "maxProperties": -1,
}  # fmt: skip
# Conditions that cannot be compared: any new one may refuse what is stored.
_CONDITIONS = (
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "allOf", "anyOf", "oneOf", "not",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-embedded-resource",
    "x-kubernetes-validations",
)  # fmt: skip


# How int-or-string is written by tools that put types into anyOf.
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _compare_enums(old: list[Any] | None, new: list[Any] | None) -> Iterator[tuple[str, bool]]:
    if new is None:
        yield "any value is allowed now", False
        return
    if old is None:
        yield f"only {_shown(new)} are allowed now", True
        return
    if removed := [value for value in old if value not in new]:
        yield f"the enum no longer has {_shown(removed)}", True
    if added := [value for value in new if value not in old]:
        yield f"the enum also has {_shown(added)}", False


def _compare_properties(path: str, old: Schema, new: Schema) -> Iterator[CrdChange]:
    before, after = old.get("properties", {}), new.get("properties", {})
    required_before, required_after = set(old.get("required", ())), set(new.get("required", ()))
    for name in after:
        if name in required_after and name not in required_before:
            safe = "default" in after[name]
            yield CrdChange(f"{path}.{name}", "is required now" + (", with a default" if safe else ""), not safe)
        elif name in required_before and name not in required_after:
            yield CrdChange(f"{path}.{name}", "is optional now", False)
        if name in before:
            optional = name not in required_after
            yield from _compare_schema(f"{path}.{name}", before[name], after[name], optional=optional)
        elif name not in required_after:
            yield CrdChange(f"{path}.{name}", "is new", False)
    for name in before:
        if name not in after:
            # Of metadata a schema can only narrow the name; its fields are the server's own.
            kept = bool(new.get(PRESERVE_UNKNOWN)) or "additionalProperties" in new or path.endswith(" .metadata")
            yield CrdChange(
                f"{path}.{name}", "is removed" + ("" if kept else "; the server drops stored values"), not kept
            )


def _condition(schema: Schema, key: str) -> Any:
    """A condition, or None where it says no more than the type."""
    value = schema.get(key)
    if key == "format" and (value in ("int64", "double") or schema.get("x-kubernetes-int-or-string")):
        return None
    return None if value == _INT_OR_STRING else value


def _type(schema: Schema) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    kind = str(schema.get("type") or "anything")
    if kind == "object" and "additionalProperties" in schema:
        return "map"
    return kind


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
