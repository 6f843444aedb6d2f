"""Resource: one kind in one version as the server offers it. Registry: all that it offers now, in order."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.resources.strategy import Strategy
from kopylite.apiserver.schema.node import SchemaNode

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")
_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A declared sub-resource. Group, version and kind are those of its body ("" group/version: the parent's)."""

    name: str
    kind: str
    verbs: tuple[str, ...] = STATUS_VERBS
    group: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what `/scale` shows, as field names: ("spec", "replicas"); selector None: not declared."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a Table. `cell` reads the value from a decoded object; None: an empty cell."""

    name: str
    type: str
    cell: Callable[[dict[str, Any]], Any]
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(slots=True)
class Resource:
    """One kind in one version.

    Attributes:
        storage: the name of the stored collection, shared by all versions (and by both event APIs):
            plural + "." + group, or the plural alone for the core group.
        encoding_version: what form stored bytes have when written here, as upstream's StorageVersion calls it; a
            record of the same one is served as it is, any other goes through `strategy.from_stored`. A CRD changes it
            with each new schema.
        load: makes the strategy, at its first use: starting up must not cost all built-ins.
        custom: a custom resource: list items carry kind and apiVersion, strategic merge is refused.
        columns: for Tables; empty: Name and Created At, as for built-ins without a printer.
        fields: selectable field labels besides metadata.name and metadata.namespace, each with its reader.
        deprecation: the text of the Warning that each request gets; "" for none.
        terminating: the CRD is being deleted: no create, update or patch.
        conversion: of a CRD whose versions a webhook converts: its `spec.conversion.webhook`.
        stored_as: the same kind in the version in which it is stored, where that takes a webhook.
        converted: what the webhook made of stored objects, by their keys and versions.
        definition: of a custom resource: the schema as its CRD has it.
        schema_in: of a custom resource: its schema in another version, by apiVersion; None: no such version.
        size: of the schemas that the strategy is made from, in bytes of JSON; 0: little.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    load: Callable[[], Strategy]
    singular: str = ""
    list_kind: str = ""
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    scale: ScalePaths | None = None
    columns: tuple[Column, ...] = ()
    fields: Mapping[str, Callable[[dict[str, Any]], str]] = field(default_factory=dict)
    storage: str = ""
    encoding_version: str = ""
    storage_version_hash: str = ""
    custom: bool = False
    deprecation: str = ""
    terminating: bool = False
    conversion: Mapping[str, Any] | None = None
    stored_as: Resource | None = None
    converted: dict[tuple[str, int], bytes] = field(default_factory=dict)
    definition: dict[str, Any] = field(default_factory=dict)
    schema_in: Callable[[str], SchemaNode | None] | None = None
    size: int = 0
    _strategy: Strategy | None = None

    def __post_init__(self) -> None:
        self.singular = self.singular or self.kind.lower()
        self.list_kind = self.list_kind or f"{self.kind}List"
        self.storage = self.storage or self.qualified
        self.encoding_version = self.encoding_version or self.api_version
        if not self.storage_version_hash:
            self.storage_version_hash = version_hash(f"{self.group}/{self.version}", self.kind)

    @property
    def loaded(self) -> bool:
        """Whether the strategy is at hand; else it is made when it is first asked for."""
        return self._strategy is not None

    @property
    def strategy(self) -> Strategy:
        if self._strategy is None:
            self._strategy = self.load()
        return self._strategy

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name in messages: `widgets.example.com`, or `configmaps` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Registry:
    """The resources being served. Lookups see each change at once; `generation` counts the changes."""

    def __init__(self) -> None:
        self._by_version: dict[tuple[str, str], dict[str, Resource]] = {}
        self.generation = 0

    def add(self, resource: Resource) -> None:
        """Serve a resource, in place of an earlier one of the same group, version and plural."""
        self._by_version.setdefault((resource.group, resource.version), {})[resource.plural] = resource
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> Resource | None:
        """Stop serving a resource; its group and version go with their last one."""
        served = self._by_version.get((group, version), {})
        gone = served.pop(plural, None)
        if gone is not None:
            if not served:
                del self._by_version[group, version]
            self.generation += 1
        return gone

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_version.get((group, version), {}).get(plural)

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of an apiVersion and kind, as an ownerReference names it."""
        group, _, version = api_version.rpartition("/")
        return next((r for r in self._by_version.get((group, version), {}).values() if r.kind == kind), None)

    def groups(self) -> list[str]:
        """All groups in discovery order: built-in ones as they were registered, then those of CRDs by name."""
        groups = dict.fromkeys(group for group, _ in self._by_version)
        builtin = [group for group in groups if self.has_builtin(group)]
        return [*builtin, *sorted(groups.keys() - set(builtin))]

    def versions(self, group: str) -> list[str]:
        """The versions of a group, the preferred one first."""
        return sorted((v for g, v in self._by_version if g == group), key=version_priority)

    def resources(self, group: str, version: str) -> list[Resource]:
        """The resources of one group version, by plural."""
        return [r for _, r in sorted(self._by_version.get((group, version), {}).items())]

    def storages(self) -> dict[str, Resource]:
        """One resource for each storage name: the one of the preferred version."""
        found: dict[str, Resource] = {}
        for group in self.groups():
            for version in self.versions(group):
                for resource in self.resources(group, version):
                    found.setdefault(resource.storage, resource)
        return found

    def has_builtin(self, group: str) -> bool:
        """Whether a group has resources that no CRD defines."""
        return any(not resource.custom for resource in self if resource.group == group)

    def __iter__(self) -> Iterator[Resource]:
        for served in self._by_version.values():
            yield from served.values()


def version_hash(group_version: str, kind: str) -> str:
    """What discovery shows of the version that a kind is stored in ("/v1" for the core group)."""
    return base64.b64encode(hashlib.sha256(f"{group_version}/{kind}".encode()).digest()[:8]).decode()


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Sort key of version names, the best first: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return 3, 0, 0, version
    major, stage, minor = match.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version
