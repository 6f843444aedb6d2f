"""Create and update: the one pipeline that every write but deletion goes through.

Its order is that of apiserver's registry/rest/create.go and update.go, called from endpoints/handlers/create.go and
update.go: clients see it by which of two errors they get.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from kopylite.apiserver.aside import aside, size_of
from kopylite.apiserver.patching.apply import keep_times, update_managed_fields
from kopylite.apiserver.request.options import WriteQuery
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.field_errors import FieldError, invalid_error
from kopylite.apiserver.schema.numbers import same_in_go, to_go_numbers
from kopylite.apiserver.storage.history import StoredObject
from kopylite.apiserver.storage.store import AlreadyStored, Moved, TooLarge
from kopylite.apiserver.world import (
    Admission,
    Call,
    World,
    body_in,
    object_in,
    qualified_details,
    selectable_fields,
    store_key,
)
from kopylite.apiserver.writes import metadata as meta
from kopylite.apiserver.writes.decoding import canonical
from kopylite.apiserver.writes.lifecycle import check_namespace
from kopylite.errors import AlreadyExists, ApiError, BadRequest, Conflict, InternalError

GENERATE_NAME_TRIES = 8
# How often a patch is computed anew when somebody else writes in between, as upstream (which does a PUT for ever).
PATCH_RETRIES = 5

# From the stored object (None: it does not exist) to the wanted one. May raise ApiError.
UpdateFunc = Callable[[dict[str, Any] | None], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Written:
    """The object as the reply shows it, in the version of the endpoint."""

    body: bytes
    created: bool = False


@dataclass(frozen=True, slots=True)
class UpdatePolicy:
    """How an update differs from a plain PUT.

    Attributes:
        retries: how often to begin anew when the stored object moved meanwhile.
        managed: managedFields were already computed by the change itself (server-side apply).
        create: whether a missing object is created.
    """

    retries: int = 0
    managed: bool = False
    create: bool = False
    patch: bool = False


class Writer:
    """Creates and updates objects of any resource."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def create(self, call: Call, obj: dict[str, Any], options: WriteQuery, *, managed: bool = False) -> Written:
        """Store a new object that `decoding.decode_object` has prepared."""
        resource, world = call.resource, self._world
        metadata = obj["metadata"]
        namespace = call.target.namespace if resource.namespaced else ""
        check_namespace(world, resource, namespace, str(metadata.get("name", "")))
        for hook in world.hooks.write:
            await hook(call)
        generated = bool(metadata.get("generateName")) and not metadata.get("name")
        for attempt in range(GENERATE_NAME_TRIES if generated else 1):
            try:
                return await self._create(call, copy.deepcopy(obj) if generated else obj, options, managed)
            except AlreadyStored as taken:
                if not generated or attempt == GENERATE_NAME_TRIES - 1:
                    raise already_exists(call, taken.record, generated=generated) from None
            except TooLarge:
                raise too_large() from None
        raise AssertionError("unreachable: the last try raises")

    async def _create(self, call: Call, obj: dict[str, Any], options: WriteQuery, managed: bool) -> Written:
        resource, world, strategy = call.resource, self._world, call.resource.strategy
        metadata = obj["metadata"]
        namespace = call.target.namespace if resource.namespaced else ""
        # Checked last upstream, but no plug-in can tell; the text of an existing name must win.
        version_given = str(metadata.pop("resourceVersion", ""))
        generation = world.first_generation if strategy.generation else 0
        meta.fill_created(metadata, namespace=namespace, generation=generation, clock=world.clock)
        size = size_of(obj)
        if not managed:
            await aside(lambda: self._own_fields(call, obj, None, options), size)
        await self._mutate(Admission(call, "CREATE", obj, None, options.dry_run))
        if metadata.get("generateName") and not metadata.get("name"):
            metadata["name"] = meta.generated_name(metadata["generateName"], world.clock)
        call.warnings.extend(meta.drop_duplicate_owners(metadata))
        with world.unfinished.holding(resource.storage, obj):
            strategy.prepare_create(obj)

            def judge() -> list[str]:
                errors = meta.create_errors(
                    metadata, strategy.name_errors, plain_finalizers=_plain_finalizers(resource)
                )
                _refuse(call, obj, errors + strategy.validate_create(obj))
                return strategy.warnings(obj, None)

            call.warnings.extend(await aside(judge, size))
            await self._validate(Admission(call, "CREATE", obj, None, options.dry_run))
            key = store_key(resource, namespace, metadata["name"])
            present = world.store.get(resource.storage, key)
            if present is not None:
                raise AlreadyStored(present)
            if _is_version(version_given) and not options.dry_run:
                raise InternalError("resourceVersion should not be set on objects to be created", reason="")
            if options.dry_run:
                # Nothing is stored that would have a version, so the one that was sent stays.
                metadata.update({"resourceVersion": version_given} if version_given else {})
                return Written(msgspec.json.encode(_finished(call, obj)), created=True)
            shape, obj = await self._as_stored(resource, _finished(call, obj))
            fields = selectable_fields(shape, obj)
            record = world.store.create(
                resource.storage, key, obj, encoding_version=shape.encoding_version, fields=fields
            )
            return Written(await self._shown(resource, shape, record), created=True)

    async def _as_stored(self, resource: Resource, obj: dict[str, Any]) -> tuple[Resource, dict[str, Any]]:
        """An object in the version in which it is stored, where that takes a webhook. Raises InternalError."""
        shape = resource.stored_as
        if shape is None or shape.api_version == resource.api_version or self._world.convert is None:
            return resource, obj
        return shape, canonical((await self._world.convert([obj], shape))[0])

    async def _shown(self, resource: Resource, shape: Resource, record: StoredObject) -> bytes:
        """What was written, as the endpoint shows it. Raises InternalError."""
        if shape is resource:
            return record.body
        await self._world.prepare(resource, [record])
        return body_in(resource, record)

    async def update(self, call: Call, change: UpdateFunc, options: WriteQuery, policy: UpdatePolicy) -> Written:
        """Replace the object that the path names by `change(stored)`.

        Raises:
            NotFound: there is none, and the policy does not create.
            Conflict: it is not the one that the change was made for, or it moved more often than the policy retries.
            Invalid, Forbidden, ...: the result is refused.
        """
        for hook in self._world.hooks.write:
            await hook(call)
        for _ in range(policy.retries + 1):
            record = self._world.store.get(call.resource.storage, call.key)
            if record is None:
                if not policy.create:
                    raise call.not_found()
                obj = await aside(lambda: change(None), len(call.request.body))
                _check_version(obj["metadata"].get("resourceVersion", ""))
                # Only POST minds one: here it said which object to change, and there is none.
                obj["metadata"].pop("resourceVersion", None)
                return await self.create(call, obj, options, managed=policy.managed)
            try:
                return await self._update(call, record, change, options, policy)
            except Moved:
                continue
            except TooLarge:
                raise too_large() from None
        raise modified(call)

    async def _update(
        self, call: Call, record: StoredObject, change: UpdateFunc, options: WriteQuery, policy: UpdatePolicy
    ) -> Written:
        resource, strategy = call.resource, call.resource.strategy
        await self._world.prepare(resource, [record])
        live = object_in(resource, record)
        obj = await aside(lambda: change(live), len(record.body) + len(call.request.body))
        size = len(record.body) + size_of(obj)
        metadata, old = obj["metadata"], live["metadata"]
        self._check_uid(call, metadata, record, policy)
        given_version = metadata.get("resourceVersion", "")
        meta.keep_on_update(metadata, old)
        call.warnings.extend(meta.drop_duplicate_owners(metadata))
        # It shows and sets a single field of the object: for the strategy that is the main endpoint.
        part = "" if call.target.subresource == "scale" else call.target.subresource
        if not policy.managed:
            # Ownership is of what the client sent, before the strategy takes back what it may not change.
            await aside(lambda: self._own_fields(call, obj, live, options), size)
        with self._world.unfinished.holding(resource.storage, obj):
            strategy.prepare_update(obj, live, part)
            metadata = obj["metadata"]
            metadata["resourceVersion"] = str(record.version)
            await self._mutate(Admission(call, "UPDATE", obj, live, options.dry_run))
            # As upstream: who may not make a change learns that before he learns that he comes too late.
            self._check_version(call, given_version, record)

            def judge() -> list[str]:
                if strategy.generation and part != "binding" and _changed(obj, live, strategy.has_status):
                    metadata["generation"] = old.get("generation", 0) + 1
                plain = _plain_finalizers(resource)
                errors = meta.update_errors(metadata, old, custom=resource.custom, plain_finalizers=plain)
                _refuse(call, obj, errors + strategy.validate_update(obj, live, part))
                return strategy.warnings(obj, live)

            call.warnings.extend(await aside(judge, size))
            await self._validate(Admission(call, "UPDATE", obj, live, options.dry_run))
            return await self._store(call, record, _finished(call, obj), live, options)

    async def _store(
        self, call: Call, record: StoredObject, obj: dict[str, Any], live: dict[str, Any], options: WriteQuery
    ) -> Written:
        resource, store = call.resource, self._world.store
        if is_finished(obj):
            # The update itself is not stored: watchers see only the deletion of the last stored state.
            if not options.dry_run:
                store.delete(resource.storage, call.key, record)
            return Written(msgspec.json.encode(obj))
        keep_times(obj, live)
        if options.dry_run or obj == live:
            return Written(msgspec.json.encode(obj))
        shape, obj = await self._as_stored(resource, obj)
        fields = selectable_fields(shape, obj)
        written = store.update(
            resource.storage, call.key, obj, record, encoding_version=shape.encoding_version, fields=fields
        )
        return Written(await self._shown(resource, shape, written))

    def _check_uid(self, call: Call, metadata: dict[str, Any], record: StoredObject, policy: UpdatePolicy) -> None:
        uid = metadata.get("uid", "")
        if uid and uid != record.uid and not policy.patch:
            text = (
                f"StorageError: invalid object, Code: 4, Key: {_registry_key(call)}, ResourceVersion: 0, "
                f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {record.uid}"
            )
            raise conflict(call, text)

    def _check_version(self, call: Call, version: str, record: StoredObject) -> None:
        """Raises InternalError, Conflict, Invalid."""
        _check_version(version)
        if version and int(version) == record.version:
            return
        if version and version != "0":
            raise modified(call)
        if not call.resource.strategy.unconditional_update:
            # The one Invalid that names the plural.
            resource = call.resource
            errors = [meta.missing_version_error()]
            raise invalid_error(resource.plural, resource.group, call.target.name, errors)

    def _own_fields(self, call: Call, obj: dict[str, Any], live: dict[str, Any] | None, options: WriteQuery) -> None:
        subresource = call.target.subresource
        update_managed_fields(
            obj,
            live,
            schema=call.resource.strategy.schema,
            manager=options.field_manager,
            api_version=call.resource.api_version,
            subresource=subresource,
            now=meta.timestamp(self._world.clock.now()),
            reset=call.resource.strategy.reset_fields(subresource),
            schema_in=call.resource.schema_in,
        )

    async def _mutate(self, admission: Admission) -> None:
        """Ask the mutating plug-ins; all of them once more where one changed what another had seen."""
        for plugin in self._world.mutating:
            await plugin(admission)
        if admission.reinvocation.wanted:
            admission.reinvocation.round = 1
            for plugin in self._world.mutating:
                await plugin(admission)

    async def _validate(self, admission: Admission) -> None:
        for plugin in self._world.validating:
            await plugin(admission)


def _refuse(call: Call, obj: dict[str, Any], errors: list[FieldError]) -> None:
    """Raises Invalid, if there are errors."""
    if errors:
        name = str(obj["metadata"].get("name", ""))
        # Events of both groups are validated in the form of the core group.
        group = "" if call.resource.storage == "events" else call.resource.group
        raise invalid_error(call.resource.kind, group, name, errors)


def _check_version(version: str) -> None:
    """Raises InternalError."""
    if version and not (version.isascii() and version.isdigit()):
        raise InternalError(f'strconv.ParseUint: parsing "{version}": invalid syntax', reason="")


def _plain_finalizers(resource: Resource) -> bool:
    """Whether finalizers need no domain: upstream minds them in the kinds of its own packages only."""
    return resource.custom or resource.group == "apiextensions.k8s.io"


def _is_version(text: str) -> bool:
    """Whether it is the version of a stored object, as Go reads it."""
    return text.isascii() and text.isdigit() and len(text) <= 20 and 0 < int(text) < 2**64


def _finished(call: Call, obj: dict[str, Any]) -> dict[str, Any]:
    """The valid object as it is stored and shown."""
    if call.resource.custom:
        to_go_numbers(obj)
    return canonical(obj)


def is_finished(obj: dict[str, Any]) -> bool:
    """Whether a deletion that has begun has nothing more to wait for."""
    metadata = obj["metadata"]
    return (
        "deletionTimestamp" in metadata
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not (obj.get("kind") == "Namespace" and obj.get("spec", {}).get("finalizers"))
    )


def already_exists(call: Call, record: StoredObject, *, generated: bool = False) -> ApiError:
    """409; `generated`: all tries of a generateName were taken."""
    resource = call.resource
    text = f'{resource.qualified} "{record.name}" already exists'
    if generated:
        text += ", the server was not able to generate a unique name for the object"
    elif b'"deletionTimestamp"' in record.body and "deletionTimestamp" in record.decode()["metadata"]:
        text = f"object is being deleted: {text}"
    return AlreadyExists(text, details=qualified_details(resource, record.name), retry_after=1 if generated else None)


def too_large() -> InternalError:
    return InternalError("etcdserver: request is too large", reason="")


def conflict(call: Call, text: str, *, kind: str = "") -> Conflict:
    """Args: kind: what `details.kind` and the message name, if not the plural."""
    named = kind or call.resource.plural
    group = call.resource.group
    details = {key: value for key, value in (("name", call.target.name), ("group", group), ("kind", named)) if value}
    qualified = f"{named}.{group}" if group else named
    return Conflict(f'Operation cannot be fulfilled on {qualified} "{call.target.name}": {text}', details=details)


def modified(call: Call) -> Conflict:
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(call, text)


def check_name(call: Call, obj: dict[str, Any]) -> None:
    """The name in the body must be that of the URL. Raises BadRequest."""
    name = obj["metadata"].get("name", "")
    if not name:
        raise BadRequest(
            f"the name of the object ({call.target.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call.target.name})")


def _registry_key(call: Call) -> str:
    group = f"{call.resource.group}/" if call.resource.custom else ""
    return f"/registry/{group}{call.resource.plural}/{call.key}"


def _changed(obj: dict[str, Any], old: dict[str, Any], has_status: bool) -> bool:
    """Whether anything differs that generation counts."""
    aside = ("metadata", "status") if has_status else ("metadata",)
    return any(not same_in_go(obj.get(key), old.get(key)) for key in obj.keys() | old.keys() if key not in aside)
