"""Client: what user code holds. Reads come from the caches where there are any, writes go to the server."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack, cast, overload

from kopylite.client.api import Api, WriteListener, told
from kopylite.client.caches import CacheReader, NoCache, no_index, whole
from kopylite.client.changes import Edit, StatusLike, as_read, status_change
from kopylite.client.codec import decode_identity
from kopylite.client.live import FIELD_MANAGER, LiveClient, WriteParams, object_key, wire_and_adapter
from kopylite.client.misfits import Misfits, OnInvalid
from kopylite.client.patches import add_finalizer, remove_finalizer
from kopylite.client.recent import RecentWrites
from kopylite.client.recreating import chosen
from kopylite.client.resources import Resources
from kopylite.client.selecting import IndexValues, SelectorLike, index_values, selection_of
from kopylite.client.stale import look_again
from kopylite.client.status import through_status
from kopylite.client.transport import Transport
from kopylite.client.upsert import Outcome, UpsertParams, Upserts
from kopylite.client.verbs import WriteOptions, check_scope
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import Conflict, DecodeError, NotFound, UsageError
from kopylite.objects import HasKey, Kind, ObjectKey, Unstructured, adapter_like, adapter_of, key_of, kind_of, set_owner
from kopylite.objects.reading import bytes_of

T = TypeVar("T")

# The API server takes names of field managers up to 128 characters.
_MAX_MANAGER = 128 - len("-upsert")
# Tries to remove a finalizer while others move beside it.
REMOVALS = 5


class Client(LiveClient):
    """A LiveClient that reads from caches, and writes only what would change something.

    Kinds that the app watches, or names with `app.cache(...)`, are read from the cache without a request; all
    others from the server. A read never starts a cache. Each read gives an object of your own. Where the cache holds
    one shard only, what is not in it is read from the server, and so are lists.

    A read is never older than this client's own writes: when a write has returned, reads of its object show
    that version or a newer one, and a deleted object is not seen again (a new one of its name is). Where the
    cache is behind, the read waits for it, 2 s at most, and then asks the server.

    Attributes:
        live: always reads from the server.
        on_recreate: told of each object that an upsert deleted to make it anew: its owner, or itself; and why.

    Args:
        transport: brings requests to the server.
        cache: the caches; None: everything is read from the server.
        resources: finds plural and scope of kinds; shared by the clients of one server.
        field_manager: the owner of the fields that this client writes.
        namespaces: where a list that names no namespace looks, or what is asked for that each time; (): in all.
        on_misfit: told, once per change, of each object that a list left out because it does not fit its class.
        listener: told of every write.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        cache: CacheReader | None = None,
        resources: Resources | None = None,
        field_manager: str = FIELD_MANAGER,
        namespaces: Sequence[str] | Callable[[], Awaitable[Sequence[str]]] = (),
        clock: Clock = SYSTEM_CLOCK,
        on_misfit: Callable[[DecodeError], None] | None = None,
        listener: WriteListener | None = None,
    ) -> None:
        self._cache = cache or NoCache()
        self._recent = RecentWrites(self._cache, clock, lambda kind, key: self.api.newest(kind, key))
        self._shown = self._recent.shown
        api, misfits = Api(transport, resources, told(self._recent, listener)), Misfits(on_misfit)
        super().__init__(api, field_manager=field_manager, misfits=misfits)
        self.live = LiveClient(api, field_manager=field_manager, misfits=misfits)
        self._upserts = Upserts(self.api, self._read, clock)
        self.on_recreate: Callable[[Any, str], None] = lambda obj, why: None
        self._namespaces = namespaces

    @overload
    async def get(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured: ...
    @overload
    async def get(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T: ...
    async def get(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        """Read an object.

        Raises:
            NotFound: there is none.
        """
        found = await self.find(kind, key, namespace=namespace)
        if found is None:
            where = object_key(key, namespace)
            raise NotFound(f"{kind_of(kind)} {where} not found", details={"name": where.name})
        return found

    @overload
    async def find(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured | None: ...
    @overload
    async def find(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T | None: ...
    async def find(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        """Read an object; None when there is none. A kind that is not served is an error all the same."""
        adapter, where = adapter_of(kind), object_key(key, namespace)
        body = self._shown(adapter.kind, where) or await self._read_otherwise(adapter.kind, where)
        return None if body is None else adapter.decode(body)

    @overload
    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        index: IndexValues | None = None,
        invalid: OnInvalid = "skip",
    ) -> builtins.list[Unstructured]: ...
    @overload
    async def list(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        index: IndexValues | None = None,
        invalid: OnInvalid = "skip",
    ) -> builtins.list[T]: ...
    async def list(
        self,
        kind: Kind | type[Any],
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        index: IndexValues | None = None,
        invalid: OnInvalid = "skip",
    ) -> builtins.list[Any]:
        """Read all objects of a namespace, or ("") of all that are in the operator's scope; from a cache in no order.

        A list is complete, or an error: also where one namespace in scope is refused, or they are not known yet.

        Args:
            labels, fields, invalid: see LiveClient.list; for `fields` the server is asked, since it knows them.
            index: path and value, e.g. {"spec.config": "a"}; needs a cache, and no request unless that is behind this
                client's writes: then the server's list is searched in the same way.

        Raises:
            UsageError: an index without a cache, beside a field selector, or of a field that the class does not have.
            RequestTimeout: the cache is not in sync yet, and only it has the index.
        """
        adapter, selection = adapter_of(kind), selection_of(labels, fields)
        wanted = index_values(kind, index) if index else None
        if self._namespaces and not namespace and await self.api.is_namespaced(adapter.kind):
            return [
                obj
                for each in await self._in_scope()
                for obj in await self.list(
                    kind, namespace=each, labels=labels, fields=fields, index=index, invalid=invalid
                )
            ]
        if namespace and not await self.api.is_namespaced(adapter.kind, namespace):
            raise UsageError(f"{adapter.kind} is cluster-scoped: it has no objects in namespace {namespace!r}")
        store = None if fields else whole(self._cache.store_for(adapter.kind, namespace))
        if index and store is None:
            followed = not fields and self._cache.follows(adapter.kind, namespace)
            raise no_index(adapter.kind, namespace, followed=followed)
        if store is not None and await self._recent.all_settled(adapter.kind, namespace, store):
            found = store.list(namespace, selection.labels or None, wanted)
            return self.misfits.decode_all(adapter, (stored.body for stored in found), invalid)
        if store is not None and wanted:
            bodies = await self.api.list_all(adapter.kind, namespace, selection)
            return self.misfits.decode_all(adapter, store.find_in(adapter.kind, bodies, wanted), invalid)
        return await self.live.list(kind, namespace=namespace, labels=labels, fields=fields, invalid=invalid)

    async def _in_scope(self) -> Sequence[str]:
        return await self._namespaces() if callable(self._namespaces) else self._namespaces

    @overload
    async def create_or_update(
        self, kind: Kind, key: str | HasKey, mutate: Callable[[Unstructured], None], **params: Unpack[UpsertParams]
    ) -> tuple[Unstructured, Outcome]: ...
    @overload
    async def create_or_update(
        self, kind: type[T], key: str | HasKey, mutate: Callable[[T], None], **params: Unpack[UpsertParams]
    ) -> tuple[T, Outcome]: ...
    async def create_or_update(
        self, kind: Kind | type[Any], key: str | HasKey, mutate: Callable[[Any], None], **params: Unpack[UpsertParams]
    ) -> tuple[Any, Outcome]:
        """Make the object of a key hold what `mutate` makes of it: create it, update it, or leave it alone.

        `mutate` gets a private copy of the stored object, or an empty one, and edits it. What it edits in place counts
        literally: what it takes out goes. A part that it puts in whole, `obj["spec"] = {...}`, names the fields that
        matter: what the server or others have added to it stays, and None takes a field out. A field that this
        operator named before and names no longer goes. Lists whose elements have keys (containers, variables,
        conditions, owners; in a custom resource those that its class or CRD marks) are merged by them; any other list
        is one value. A request is sent when that makes a difference to the server.

        What was named before is known over restarts too: upserts write as the field manager NAME-upsert, so that the
        object's managedFields say it. They are read once per object and process, when there is something to send, or
        fields that nobody desires and that are no known defaults.

        The update replaces the object as it was read. The status is not written: see `patch_status`.

        Args:
            owner, controller: see `create`.

        Returns:
            The object as stored, and what was done. UNCHANGED also when the server found nothing to change.

        Raises:
            Conflict: somebody changed the object since it was read; run again.
            AlreadyOwned: the object has another controller.
            UsageError: `mutate` changed name or namespace, or is async.
        """
        return await self._upsert(kind, key, mutate, params, by_patch=False)

    @overload
    async def create_or_patch(
        self, kind: Kind, key: str | HasKey, mutate: Callable[[Unstructured], None], **params: Unpack[UpsertParams]
    ) -> tuple[Unstructured, Outcome]: ...
    @overload
    async def create_or_patch(
        self, kind: type[T], key: str | HasKey, mutate: Callable[[T], None], **params: Unpack[UpsertParams]
    ) -> tuple[T, Outcome]: ...
    async def create_or_patch(
        self, kind: Kind | type[Any], key: str | HasKey, mutate: Callable[[Any], None], **params: Unpack[UpsertParams]
    ) -> tuple[Any, Outcome]:
        """As `create_or_update`, but by a patch of what differs: other fields may change since the read.

        Raises:
            Conflict: the object was made anew since the read, or a list without keys, or a map or list that is to go,
                was changed; run again.
        """
        return await self._upsert(kind, key, mutate, params, by_patch=True)

    async def apply(
        self, obj: T, *, owner: Any = None, controller: bool = True, force: bool = False, **params: Unpack[WriteParams]
    ) -> T:
        """Server-side apply: the object's fields become this manager's, and those it no longer names are dropped.

        Sends nothing when this process has applied the very same before and the stored object holds it. After a
        restart each object is applied once more, which the server answers without a write.

        Args:
            obj: only the fields that this manager cares for, with its apiVersion, kind and name. One that was read
                has them all, and is applied to that very version of that very object.
            owner, controller: see `create`.
            force: take fields over from other managers.

        Returns:
            The whole object as stored.

        Raises:
            Conflict: another manager owns a field; its causes name fields and managers.
        """
        adapter, wire = wire_and_adapter(obj)
        metadata = {**(wire.get("metadata") or {})}
        metadata.pop("managedFields", None)  # the server refuses an apply that carries them
        wire["metadata"] = metadata
        if owner is not None:
            set_owner(owner, wire, controller=controller)
        plain = self.options(**params)
        options = WriteOptions(plain.field_manager, plain.dry_run, force=force)
        return adapter.decode(await self._upserts.apply(adapter.kind, wire, options))

    async def patch_status(
        self, obj: T, status: StatusLike, *, exact: bool = False, **params: Unpack[WriteParams]
    ) -> T:
        """Set fields of an object's status, by a patch of what differs from what was read; none: nothing is sent.

        Where the kind has no status sub-resource, the object itself is patched. Each such write gives it a new
        generation, so an observedGeneration is always one behind, and `generation_changed` lets it pass.

        Args:
            obj: as it was read, or with its status edited.
            status: a map in wire form (camelCase) or a status model: what to set. None takes a field out, a field that
                is left out stays, a map in a model is the whole map. Or the object's own status: what user code took
                out of it goes. Elements of a list with keys (conditions, by type) are set one by one, and others
                stay. Any other list is one value.
            exact: the status is exactly this: what was read and is not in it goes.

        Returns:
            The object as stored; `obj` itself when it is the newest that is known, and has it all.

        Raises:
            Conflict: the object was made anew since it was read, or a list or map that is to be replaced was changed.
        """
        change, options = status_change(obj, status, exact=exact), self.options(**params)
        result: T = await through_status(
            self.api.resources, adapter_like(obj).kind, lambda where: self._change(obj, change, where, options)
        )
        return result

    async def add_finalizer(self, obj: T, name: str, **params: Unpack[WriteParams]) -> T:
        """Add a finalizer: the object stays, marked as deleted, until it is removed again.

        Returns:
            The object as stored; `obj` itself when it has the finalizer already.

        Raises:
            Conflict: the object was changed meanwhile.
        """
        return await self._patch_finalizers(obj, add_finalizer(as_read(obj)["metadata"], name), params)

    async def remove_finalizer(self, obj: T, *names: str, **params: Unpack[WriteParams]) -> T:
        """Remove finalizers, by a patch that tests that it removes these. When others moved meanwhile, it looks again.

        Returns:
            The object as it was stored; `obj` itself when it lacks the finalizers or is gone.

        Raises:
            Conflict: its finalizers were changed again and again.
        """
        metadata, uid = as_read(obj)["metadata"], as_read(obj)["metadata"].get("uid")
        for left in reversed(range(REMOVALS)):
            try:
                return await self._patch_finalizers(obj, remove_finalizer(metadata, *names), params)
            except NotFound:
                return obj
            except Conflict:
                if not left:
                    raise
            stored = await self.live.find(adapter_like(obj).kind, key_of(obj))
            if stored is None or stored.uid != uid:
                return obj
            metadata = stored["metadata"]
        return obj

    sends_all = False

    async def _change(self, obj: Any, change: Edit, subresource: str | None, options: WriteOptions) -> Any:
        if change.merged is change.stored or bytes_of(obj) is None:
            obj, change = await look_again(obj, change, self._recent, self._read)
        return await super()._change(obj, change, subresource, options)

    async def _patch_finalizers(self, obj: T, steps: builtins.list[dict[str, Any]], params: WriteParams) -> T:
        if not steps:
            return obj
        adapter = adapter_like(obj)
        body = await self.api.patch(adapter.kind, key_of(obj), steps, "json", None, self.options(**params))
        return cast("T", adapter.decode(body))

    async def _read(self, kind: Kind, key: ObjectKey) -> bytes | None:
        """An object from the cache, if that shows all that this client wrote, else from the server."""
        return self._shown(kind, key) or await self._read_otherwise(kind, key)

    async def _read_otherwise(self, kind: Kind, key: ObjectKey) -> bytes | None:
        """As `_read`, of what is not shown at once."""
        store = self._cache.store_for(kind, key.namespace)
        if store is not None and await self._recent.settled(kind, key, store):
            stored = store.get(key)
            if stored is not None:
                return stored.body
            if not store.partial:
                # The cache has no object of a key that none can have, and "none" would be taken for "deleted".
                check_scope(kind, await self.api.is_namespaced(kind, key.namespace), key)
                return None
        doubt = self._recent.doubt(kind, key)
        try:
            body = await self.api.get(kind, key)
        except NotFound:
            if doubt is not None:
                doubt.missing = True
            return None
        if doubt is not None:
            doubt.solve(decode_identity(body)[1].resource_version)
        return body

    async def _upsert(
        self,
        kind: Kind | type[Any],
        key: str | HasKey,
        mutate: Callable[[Any], object],
        params: UpsertParams,
        *,
        by_patch: bool,
    ) -> tuple[Any, Outcome]:
        where = object_key(key, params.get("namespace", ""))
        # A manager of its own: it says what upserts have named, and nothing that was patched beside them.
        options = WriteOptions(
            params.get("field_manager", f"{self.field_manager[:_MAX_MANAGER]}-upsert"), params.get("dry_run", False)
        )
        owner, controller = params.get("owner"), params.get("controller", True)
        own = None if owner is None else partial(set_owner, owner, controller=controller)
        recreate = chosen(params.get("recreate", False))

        def told(stored: Mapping[str, Any], why: str) -> None:
            self.on_recreate(Unstructured(stored) if owner is None else owner, why)

        return await self._upserts.create_or_update(
            kind, where, mutate, own=own, options=options, by_patch=by_patch, recreate=recreate, told=told
        )
