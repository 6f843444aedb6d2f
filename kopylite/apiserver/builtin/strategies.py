"""The strategies of the built-in kinds, and the list of all built-in resources. Pure, given an StrategyContext."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from kopylite.apiserver.builtin import data, defaults_core, defaults_groups
from kopylite.apiserver.builtin.codec import Codecs, TypeCodec
from kopylite.apiserver.builtin.conversion import CONVERSIONS, without_notes
from kopylite.apiserver.builtin.empties import has_empties, told_apart
from kopylite.apiserver.builtin.fields import FIELDS
from kopylite.apiserver.builtin.rules import KindRules
from kopylite.apiserver.builtin.rules_core import CORE_RULES
from kopylite.apiserver.builtin.rules_groups import GROUP_RULES
from kopylite.apiserver.builtin.scalars import Reading, Undecodable
from kopylite.apiserver.builtin.warnings import DEPRECATED
from kopylite.apiserver.patching.apply.field_manager import EMPTY
from kopylite.apiserver.patching.copying import copied
from kopylite.apiserver.resources.registry import Resource, ScalePaths, Subresource
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.node import SchemaNode
from kopylite.errors import BadRequest

Object = dict[str, Any]

RULES = {**CORE_RULES, **GROUP_RULES}
CODECS = Codecs({**defaults_core.DEFAULTS, **defaults_groups.DEFAULTS})


@dataclass(frozen=True)
class BuiltinStrategy:
    """Implements Strategy for one built-in kind in one version, by its schema and its Rules."""

    api_version: str
    kind: str
    has_status: bool
    context: StrategyContext

    @cached_property
    def _rules(self) -> KindRules:
        group = self.api_version.rpartition("/")[0]
        return RULES.get((group, self.kind), KindRules())

    @cached_property
    def _codec(self) -> TypeCodec:
        return CODECS[data.kinds_of(self.api_version)[self.kind]]

    @cached_property
    def schema(self) -> SchemaNode:
        raw = data.SCHEMAS[data.kinds_of(self.api_version)[self.kind]]
        return SchemaNode({**raw, EMPTY: self._codec.zero}, data.DEFINITIONS)

    @property
    def generation(self) -> bool:
        return self._rules.generation

    @property
    def unconditional_update(self) -> bool:
        return self._rules.unconditional_update

    @property
    def create_on_update(self) -> bool:
        return self._rules.create_on_update

    @property
    def grace(self) -> bool:
        return self._rules.grace

    def reset_fields(self, subresource: str) -> tuple[str, ...]:
        """The dotted paths of what an endpoint does not take from clients."""
        if subresource in self._rules.reset_fields:
            return self._rules.reset_fields[subresource]
        if subresource == "status":
            return ("spec",)
        return ("status",) if self.has_status and not subresource else ()

    def decode(self, obj: Object) -> list[str]:
        reading, part = Reading(), self._rules.counts_empties
        counted = bool(part) and has_empties(obj.get(part))
        try:
            self._codec.decode(obj, "", reading)
        except Undecodable as problem:
            version = self.api_version.rpartition("/")[2]
            raise BadRequest(
                f'{self.kind} in version "{version}" cannot be handled as a {self.kind}: {problem}'
            ) from problem
        if self._rules.decode is not None:
            self._rules.decode(obj)
        if counted and part in obj:
            obj[part] = told_apart(obj[part])
        return sorted(reading.unknown)

    def from_stored(self, obj: Object, encoding_version: str) -> Object:
        convert = CONVERSIONS.get((self.kind, encoding_version, self.api_version), dict)
        try:
            return self._codec.decode({**convert(obj), "apiVersion": self.api_version}, "", Reading())
        except Undecodable:  # of what stands in annotations, where anybody may write anything
            return self._codec.decode({**convert(without_notes(obj)), "apiVersion": self.api_version}, "", Reading())

    def default(self, obj: Object) -> None:
        self._codec.default(obj)

    def prepare_create(self, obj: Object) -> None:
        if self.has_status and not self._rules.keeps_status:
            zero = self._codec.zero
            if "status" in zero:
                obj["status"] = zero["status"]
            else:
                obj.pop("status", None)
        if self._rules.create is not None:
            self._rules.create(obj, self.context)
        self._codec.forget_empty_lists(obj)

    def prepare_update(self, obj: Object, old: Object, subresource: str) -> None:
        if not subresource and self.has_status:
            _copy(obj, old, "status")
        if subresource == "status":
            for field in obj.keys() | old.keys():
                if field not in ("apiVersion", "kind", "metadata", "status"):
                    _copy(obj, old, field)
            if self._rules.status_keeps_metadata:
                owners = obj["metadata"].get("managedFields")
                obj["metadata"] = {k: copied(v) for k, v in old["metadata"].items() if k != "managedFields"}
                if owners is not None:
                    obj["metadata"]["managedFields"] = owners
        prepare = self._rules.update.get(subresource)
        if prepare is not None:
            prepare(obj, old, self.context)
        self._codec.forget_empty_lists(obj)

    def validate_create(self, obj: Object) -> list[FieldError]:
        found = [e for validate in self._rules.validate_there for e in validate(obj, self.context)]
        return found + [e for validate in (*self._rules.validate_new, *self._rules.validate) for e in validate(obj)]

    def validate_update(self, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return [e for validate in self._rules.validate_status for e in validate(obj, old)]
        if subresource:
            return []
        state = [e for validate in self._rules.validate for e in validate(obj)]
        change = [e for validate in self._rules.validate_update for e in validate(obj, old)]
        return change + state if self._rules.changes_first else state + change

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return [] if self._rules.warnings is None else self._rules.warnings(obj, old)

    def name_errors(self, name: str, prefix: bool) -> list[str]:
        return self._rules.name_errors(name, prefix)


def _copy(obj: Object, old: Object, field: str) -> None:
    """Give a field the old value, absence included."""
    if field in old:
        obj[field] = copied(old[field])
    else:
        obj.pop(field, None)


# The selector of a built-in kind is a LabelSelector, or a plain map (ReplicationController).
_SCALE = ScalePaths(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


def builtin_resources(context: StrategyContext) -> list[Resource]:
    """Everything that a kube-apiserver serves by default, in the order of its discovery.

    Cheap: schemas are parsed when a resource's strategy is first used.
    """
    return [
        _resource(group["group"], group["version"], entry, context)
        for group in data.served()
        for entry in group["resources"]
    ]


def _resource(group: str, version: str, entry: Object, context: StrategyContext) -> Resource:
    kind, plural = entry["kind"], entry["plural"]
    subresources = {
        name: Subresource(name, sub["kind"], tuple(sub["verbs"]), sub.get("group", ""), sub.get("version", ""))
        for name, sub in entry["subresources"].items()
    }
    api_version = f"{group}/{version}" if group else version
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=entry["namespaced"],
        load=partial(BuiltinStrategy, api_version, kind, "status" in subresources, context),
        singular=entry["singularName"],
        verbs=tuple(entry["verbs"]),
        short_names=tuple(entry.get("shortNames", ())),
        categories=tuple(entry.get("categories", ())),
        subresources=subresources,
        scale=_SCALE if "scale" in subresources else None,
        fields=FIELDS.get((group, kind), {}),
        deprecation=DEPRECATED.get((group, kind), ""),
        storage="events" if kind == "Event" else "",
        storage_version_hash=entry.get("storageVersionHash", ""),
    )
