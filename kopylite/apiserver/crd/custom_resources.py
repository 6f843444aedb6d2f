"""CustomResourceStrategy: the rules of the objects of one CRD in one version. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kopylite.apiserver.resources.registry import ScalePaths
from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.default import copy_json, default
from kopylite.apiserver.schema.field_errors import NO_PATH, FieldError
from kopylite.apiserver.schema.listtypes import duplicates
from kopylite.apiserver.schema.names import label_key_errors, subdomain_errors
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.apiserver.schema.objectmeta import MetadataError, coerce_embedded, decode_metadata, embedded_errors
from kopylite.apiserver.schema.prune import drop_nulls, prune
from kopylite.apiserver.schema.ratchet import Correlation
from kopylite.apiserver.schema.rules import CelRules
from kopylite.apiserver.schema.validate import Validator
from kopylite.apiserver.writes.metadata import annotations_too_long
from kopylite.errors import BadRequest

# Errors after which the server does not evaluate CEL rules: they may hit values of the wrong type.
_BLOCKING = frozenset({errors.NOT_SUPPORTED, errors.REQUIRED, errors.TOO_LONG, errors.TOO_MANY, errors.TYPE_INVALID})
_BLOCKED = FieldError(
    errors.INVALID,
    NO_PATH,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
    None,
)
_STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid")
_MAX_INT32 = 2**31 - 1


class CustomResourceStrategy:
    """Implements `Strategy` for custom resources.

    Args:
        api_version: "group/version".
        kind: the Kind.
        schema: `openAPIV3Schema` of the version.
        has_status: the status sub-resource is declared.
        scale: the paths of the scale sub-resource, if declared.
        versions: the schemas of all versions by apiVersion.
        storage: the apiVersion of the storage version; "" for this one. What is written and read in another
            version passes through it, and loses what its schema does not know, as with strategy None everywhere.
        stored: the apiVersions that are or were storage versions: there may be objects in their form.
    """

    generation = True
    strategic = False
    unconditional_update = False
    create_on_update = False
    grace = False

    def __init__(
        self,
        api_version: str,
        kind: str,
        schema: dict[str, Any],
        *,
        has_status: bool,
        scale: ScalePaths | None = None,
        versions: Mapping[str, dict[str, Any]] | None = None,
        storage: str = "",
        stored: Collection[str] = (),
    ) -> None:
        self.api_version = api_version
        self.kind = kind
        self.has_status = has_status
        self.schema = SchemaNode(published(schema))
        self._structural = SchemaNode(schema)
        self._scale = scale
        self._versions = {name: SchemaNode(raw) for name, raw in (versions or {}).items()}
        self._storage = self._versions.get(storage) if storage != api_version else None
        self._stored = frozenset(stored)
        self._validator = Validator(schema)
        self._status_validator = Validator((schema.get("properties") or {}).get("status") or {}, "status")
        self._rules = CelRules(schema)
        # They walk the whole schema when they are first asked for, which is better done here than on the event loop.
        _ = self._structural.has_embedded, self._structural.has_unique

    def reset_fields(self, subresource: str) -> tuple[str, ...]:
        if subresource == "status":
            return ("metadata", "spec")
        return ("status",) if self.has_status else ()

    def decode(self, obj: dict[str, Any]) -> list[str]:
        try:
            unknown = decode_metadata(obj["metadata"]) if "metadata" in obj else []
            unknown += prune(obj, self._structural)
            drop_nulls(obj, self._structural)
            unknown += coerce_embedded(obj, self._structural)
        except MetadataError as error:
            version = self.api_version.rpartition("/")[2]
            text = f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {error}'
            raise BadRequest(text) from error
        return unknown

    def from_stored(self, obj: dict[str, Any], encoding_version: str) -> dict[str, Any]:
        stored = self._structural if self._storage is None else self._storage
        if obj["apiVersion"] in self._stored:
            stored = self._versions.get(obj["apiVersion"], self._structural)
        # As in the real server, which reads by the schema of the version that it has stored and then only prunes: a
        # default of another version does not appear.
        _clean(obj, stored)
        default(obj, stored)
        _clean(obj, self._structural)
        obj["apiVersion"] = self.api_version
        return obj

    def default(self, obj: dict[str, Any]) -> None:
        default(obj, self._structural)

    def _pass_through_storage(self, obj: dict[str, Any]) -> None:
        if self._storage is not None:
            _clean(obj, self._storage)

    def prepare_create(self, obj: dict[str, Any]) -> None:
        if self.has_status:
            obj.pop("status", None)
        self._pass_through_storage(obj)

    def prepare_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> None:
        if subresource == "status":
            self._keep_all_but_status(obj, old)
        elif self.has_status:
            if "status" in old:
                obj["status"] = copy_json(old["status"])
            else:
                obj.pop("status", None)
        self._pass_through_storage(obj)

    def _keep_all_but_status(self, obj: dict[str, Any], old: dict[str, Any]) -> None:
        managed = (obj.get("metadata") or {}).get("managedFields")
        status = obj.get("status")
        has_status = "status" in obj
        obj.clear()
        obj.update(copy_json(old))
        obj["metadata"].pop("managedFields", None)
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
        obj.pop("status", None)
        if has_status:
            obj["status"] = status

    def validate_create(self, obj: dict[str, Any]) -> list[FieldError]:
        found = self._validator.validate(obj)
        found += self._scale_errors(obj, status_only=False)
        found += embedded_errors(obj, self._structural)
        found += duplicates(obj, self._structural)
        return found + self._rule_errors(found, obj, None, None)

    def validate_update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str) -> list[FieldError]:
        correlation = Correlation(obj, old, self._structural)
        if subresource == "status":
            found: list[FieldError] = []
            if "status" in obj:
                found += self._status_validator.validate(obj["status"], correlation.key("status"))
            found += self._scale_errors(obj, status_only=True)
        else:
            found = self._validator.validate(obj, correlation)
            found += self._scale_errors(obj, status_only=False)
            found += embedded_errors(obj, self._structural)
        repeated = duplicates(obj, self._structural)
        if repeated and not duplicates(old, self._structural):
            found += repeated
        return found + self._rule_errors(found, obj, old, correlation)

    def _rule_errors(
        self, found: list[FieldError], obj: dict[str, Any], old: dict[str, Any] | None, correlation: Correlation | None
    ) -> list[FieldError]:
        if not self._rules:
            return []
        if _metadata_blocks(obj["metadata"]) or any(error.reason in _BLOCKING for error in found):
            return [_BLOCKED]
        return self._rules.validate(obj, old, correlation)

    def _scale_errors(self, obj: dict[str, Any], *, status_only: bool) -> list[FieldError]:
        if self._scale is None:
            return []
        found = [] if status_only else _replicas_errors(obj, self._scale.spec_replicas)
        found += _replicas_errors(obj, self._scale.status_replicas)
        if self._scale.selector is not None:
            _, problem = _read(obj, self._scale.selector, str)
            if problem:
                found.append(errors.invalid(f".{'.'.join(self._scale.selector)}", "", problem))
        return found

    def warnings(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
        before = set((old or {}).get("metadata", {}).get("finalizers") or ())
        added = set((obj.get("metadata") or {}).get("finalizers") or ()) - before
        found = [text for finalizer in sorted(added) for text in finalizer_warnings(finalizer)]
        if old is not None and self._rules:
            # Rules that an unchanged part breaks do not stop an update, but are told.
            self._rules.validate(obj, old, Correlation(obj, old, self._structural), ratcheted=found)
        return found

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        # A generateName may end with a hyphen: the server checks it without the last one.
        return subdomain_errors(name[:-1] + "a" if prefix and name.endswith("-") else name)


def _metadata_blocks(metadata: dict[str, Any]) -> bool:
    """Whether the metadata has errors, found by others, that block the rules too."""
    owners = metadata.get("ownerReferences", ())
    lacking = not metadata.get("name") or not all(owner.get(key) for owner in owners for key in _OWNER_FIELDS)
    return lacking or annotations_too_long(metadata.get("annotations", {}))


def _clean(obj: dict[str, Any], schema: SchemaNode) -> None:
    prune(obj, schema)
    drop_nulls(obj, schema)


def finalizer_warnings(finalizer: str) -> list[str]:
    """What the server warns of in the name of a new finalizer."""
    where = f"metadata.finalizers: {errors.go_quote(finalizer)}: "
    found = [where + text for text in label_key_errors(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        form = " including a path (/)" if "." in finalizer else ""
        found.append(
            f"{where}prefer a domain-qualified finalizer name{form} "
            "to avoid accidental conflicts with other finalizer writers"
        )
    return found


def _replicas_errors(obj: dict[str, Any], path: tuple[str, ...]) -> list[FieldError]:
    field = f".{'.'.join(path)}"
    value, problem = _read(obj, path, int)
    if problem:
        return [errors.invalid(field, 0, problem)]
    if value is None:
        return []
    if value < 0:
        return [errors.invalid(field, value, "should be a non-negative integer")]
    if value > _MAX_INT32:
        return [errors.invalid(field, value, f"should be less than or equal to {_MAX_INT32}")]
    return []


_GO_TYPES: dict[type, str] = {
    int: "int64", float: "float64", str: "string", bool: "bool", dict: "map[string]interface {}",
    list: "[]interface {}", type(None): "<nil>",
}  # fmt: skip
_GO_VALUES = {int: "int64", str: "string"}


def _read(obj: dict[str, Any], path: tuple[str, ...], wanted: type) -> tuple[Any, str]:
    """The value at a path (None if absent), and why it is not of the type wanted ("" if it is)."""
    value: Any = obj
    for depth, name in enumerate(path):
        if not isinstance(value, dict):
            if value is None:
                return None, ""
            where = ".".join(("", *path[: depth + 1]))
            text = f"{_go_print(value)} is of the type {_GO_TYPES[type(value)]}, expected map[string]interface{{}}"
            return None, f"{where} accessor error: {text}"
        if name not in value:
            return None, ""
        value = value[name]
    if type(value) is not wanted:
        text = f"{_go_print(value)} is of the type {_GO_TYPES[type(value)]}, expected {_GO_VALUES[wanted]}"
        return None, f".{'.'.join(path)} accessor error: {text}"
    return value, ""


def _go_print(value: Any) -> str:
    """Go's `%v` of decoded JSON."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{k}:{_go_print(v)}' for k, v in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_print, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return errors.go_float(value)
    return "<nil>" if value is None else str(value)


_TEXTS = ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion",
          "creationTimestamp", "deletionTimestamp")  # fmt: skip
_NUMBERS = ("generation", "deletionGracePeriodSeconds")
_PLAIN_METADATA = {key: {"type": "string"} for key in _TEXTS} | {key: {"type": "integer"} for key in _NUMBERS}


def published(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with the topology of apiVersion, kind and metadata, which CRDs leave out."""
    metadata = {
        "type": "object",
        "properties": {
            **_PLAIN_METADATA,
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "ownerReferences": {
                "type": "array",
                "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
            },
        },
    }
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **(schema.get("properties") or {})}
    return {**schema, "properties": {**properties, "metadata": metadata}}
