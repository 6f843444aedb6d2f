"""World: the state that all parts of the server share, and the seams where tests and controllers hook in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kopylite.apiserver.request.request import HttpRequest, Response, Target
from kopylite.apiserver.resources.registry import Registry, Resource
from kopylite.apiserver.storage.history import StoredChange, StoredObject
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import Cause, InternalError, NotFound

# The Kubernetes minor whose behaviour is the default.
NEWEST_MINOR = 37


class Disconnect(Exception):
    """Raised by a hook: the connection is cut, with no (further) answer."""


@dataclass(slots=True)
class Call:
    """One request to a resource, resolved."""

    request: HttpRequest
    target: Target
    resource: Resource
    warnings: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The store key of the object that the path names."""
        return store_key(self.resource, self.target.namespace, self.target.name)

    def not_found(self) -> NotFound:
        return not_found(self.resource, self.target.name)


@dataclass(slots=True)
class Hooks:
    """Where faults and latency come in. All lists are empty by default; hooks run in order.

    Attributes:
        before: with each request; a Response answers it, None lets it pass. May raise ApiError or Disconnect.
        after: with each request and its finished answer (of a stream: before its first chunk); returns the
            answer to send. May raise Disconnect: the work is done, the client does not hear of it.
        read, write: with each Call, before objects are read or stored. May raise ApiError.
        watch: with each Call and encoded event; returns what to send, b"" for nothing, None to end the stream.
    """

    before: list[Callable[[HttpRequest], Awaitable[Response | None]]] = field(default_factory=list)
    after: list[Callable[[HttpRequest, Response], Awaitable[Response]]] = field(default_factory=list)
    read: list[Callable[[Call], Awaitable[None]]] = field(default_factory=list)
    write: list[Callable[[Call], Awaitable[None]]] = field(default_factory=list)
    watch: list[Callable[[Call, bytes], Awaitable[bytes | None]]] = field(default_factory=list)


@dataclass(slots=True)
class Reinvocation:
    """Who has to look at an object once more, because others changed it after them.

    Attributes:
        round: 0, and 1 when mutating plug-ins are asked for the second and last time.
        wanted: a second round is needed.
        previous: those asked so far that want to see later changes.
        required: those that have to see one.
        seen: the object as the last of them left it.
    """

    round: int = 0
    wanted: bool = False
    previous: set[tuple[str, str]] = field(default_factory=set)
    required: set[tuple[str, str]] = field(default_factory=set)
    seen: bytes | None = None

    def require_previous(self) -> None:
        self.required |= self.previous
        self.previous.clear()


@dataclass(slots=True)
class Admission:
    """What an admission plug-in is asked about: `obj` is None on delete, `old` is None on create."""

    call: Call
    operation: str
    obj: dict[str, Any] | None
    old: dict[str, Any] | None
    dry_run: bool
    reinvocation: Reinvocation = field(default_factory=Reinvocation)


# From objects and a resource: the same objects in its version.
Convert = Callable[[Sequence[dict[str, Any]], Resource], Awaitable[list[dict[str, Any]]]]
_MAX_CONVERTED = 10_000
# Of those that cannot be shown, so many are named.
_MOST_CORRUPT = 100


class Unfinished:
    """Objects whose writes are between the strategy and the store, where webhooks are waited for."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[int, dict[str, Any]]] = {}

    def of(self, storage: str) -> Iterable[dict[str, Any]]:
        return list(self._objects.get(storage, {}).values())

    @contextmanager
    def holding(self, storage: str, obj: dict[str, Any]) -> Iterator[None]:
        held = self._objects.setdefault(storage, {})
        held[id(obj)] = obj
        try:
            yield
        finally:
            del held[id(obj)]


@dataclass(slots=True)
class World:
    """Objects, kinds, time, hooks.

    Attributes:
        minor: the emulated Kubernetes minor.
        mutating: admission plug-ins that may change `obj` in place; before validation.
        validating: plug-ins that may only refuse (raise ApiError); after validation.
        convert: asks the conversion webhooks of CRDs.
        counts_quotas: somebody keeps the status of quotas at what their namespaces use.
        unfinished: what is being written, so that what the server assigns is assigned once.
        first_generation: of new objects; tests that look who copies it choose another one.
    """

    store: ObjectStore
    registry: Registry = field(default_factory=Registry)
    clock: Clock = SYSTEM_CLOCK
    hooks: Hooks = field(default_factory=Hooks)
    minor: int = NEWEST_MINOR
    mutating: list[Callable[[Admission], Awaitable[None]]] = field(default_factory=list)
    validating: list[Callable[[Admission], Awaitable[None]]] = field(default_factory=list)
    convert: Convert | None = None
    counts_quotas: bool = False
    unfinished: Unfinished = field(default_factory=Unfinished)
    first_generation: int = 1

    async def prepare(self, resource: Resource, records: Iterable[StoredObject]) -> None:
        """Have records converted that a webhook must convert: after that, `object_in` shows them.

        Raises:
            InternalError: the webhook fails.
        """
        if resource.conversion is None or self.convert is None:
            return
        pending = {}
        for record in records:
            if not _converts_itself(resource, record) and (record.key, record.version) not in resource.converted:
                pending[record.key, record.version] = record.decode()
        if not pending:
            return
        made = await self.convert(list(pending.values()), resource)
        kept = resource.converted
        kept.update(zip(pending, map(msgspec.json.encode, made), strict=True))
        while len(kept) > max(_MAX_CONVERTED, len(pending)):
            del kept[next(iter(kept))]

    async def prepare_one(self, resource: Resource, record: StoredObject) -> None:
        """The same for an object that is read by its name. Raises InternalError: as upstream's storage says it."""
        try:
            await self.prepare(resource, [record])
        except InternalError as error:
            text = _corrupt(f"/{resource.group}/{resource.plural}/{record.key}", record, error)
            raise InternalError(f"Internal error occurred: {text}", causes=[Cause("", text)]) from None

    async def prepare_list(self, resource: Resource, records: Sequence[StoredObject]) -> None:
        """The same for a list. Raises StorageReadError: names each that cannot be shown."""
        try:
            await self.prepare(resource, records)
        except InternalError:
            failed: list[Cause] = []
            for record in records:
                try:
                    await self.prepare(resource, [record])
                except InternalError as error:
                    key = f"/registry/{resource.group}/{resource.plural}/{record.key}"
                    failed.append(Cause("UnexpectedServerResponse", _corrupt(key, record, error), key))
                    if len(failed) == _MOST_CORRUPT:
                        break
            shown = "; ".join(cause.message for cause in failed)
            raise InternalError(
                f"failed to read one or more {resource.qualified} from the storage: {shown}", reason="StorageReadError",
                causes=failed, details={"name": "list", "group": resource.group, "kind": resource.plural},
            ) from None  # fmt: skip

    async def prepare_changes(self, resource: Resource, changes: Iterable[StoredChange]) -> None:
        """The same for what a watch shows. Raises InternalError."""
        if resource.conversion is None:
            return
        for change in changes:
            shown = [record for record in (change.record, change.previous) if record is not None]
            await self.prepare(resource, shown)
            for record in shown:  # the end of an object is shown with the version of its deletion
                body = resource.converted.get((record.key, record.version))
                if body is not None and record.version != change.version:
                    obj = msgspec.json.decode(body)
                    obj["metadata"]["resourceVersion"] = str(change.version)
                    resource.converted[record.key, change.version] = msgspec.json.encode(obj)

    def lookup(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The stored object in whatever version it was written; for the server's own parts."""
        storage = f"{plural}.{group}" if group else plural
        record = self.store.get(storage, f"{namespace}/{name}" if namespace else name)
        return record.decode() if record else None


def _corrupt(key: str, record: StoredObject, error: InternalError) -> str:
    told = f"object not decodable revision={record.version}: {error.message}"
    return f"StorageError: corrupt object, Code: 7, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {told}"


def store_key(resource: Resource, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if resource.namespaced else name


def object_in(resource: Resource, record: StoredObject) -> dict[str, Any]:
    """A fresh copy of the stored object as this resource's version shows it."""
    obj = record.decode()
    if record.encoding_version == resource.encoding_version:
        return obj
    if not _converts_itself(resource, record):
        converted = resource.converted.get((record.key, record.version))
        if converted is None:
            raise InternalError(f"{resource.qualified} {record.name} has not been converted to {resource.api_version}")
        made: dict[str, Any] = msgspec.json.decode(converted)
        return made
    return resource.strategy.from_stored(obj, record.encoding_version)


def _converts_itself(resource: Resource, record: StoredObject) -> bool:
    """Whether no webhook is needed to show a record in the version of a resource."""
    return resource.conversion is None or record.encoding_version.partition("#")[0] == resource.api_version


def body_in(resource: Resource, record: StoredObject) -> bytes:
    """The stored object's JSON as this resource's version shows it."""
    same = record.encoding_version == resource.encoding_version
    return record.body if same else msgspec.json.encode(object_in(resource, record))


def shown_in(resource: Resource, record: StoredObject) -> StoredObject:
    """The record as one that was written in this resource's version."""
    if record.encoding_version == resource.encoding_version:
        return record
    obj = object_in(resource, record)
    return msgspec.structs.replace(
        record,
        body=msgspec.json.encode(obj),
        encoding_version=resource.encoding_version,
        fields=selectable_fields(resource, obj),
    )


def selectable_fields(resource: Resource, obj: dict[str, Any]) -> dict[str, str] | None:
    if not resource.fields:
        return None
    return {label: read(obj) for label, read in resource.fields.items()}


def fields_in(resource: Resource, record: StoredObject) -> dict[str, str]:
    """All field labels of a stored object, for selectors."""
    own = record.fields
    if record.encoding_version != resource.encoding_version:
        own = selectable_fields(resource, object_in(resource, record))
    return {"metadata.name": record.name, "metadata.namespace": record.namespace, **(own or {})}


def qualified_details(resource: Resource, name: str) -> dict[str, str]:
    """The `details` of most errors about one object: its kind is the plural."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in details.items() if value}


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource.qualified} "{name}" not found', details=qualified_details(resource, name))
