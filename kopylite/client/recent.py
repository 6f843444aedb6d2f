"""RecentWrites: what this client wrote and its caches have not seen yet. The reason why a read is never older."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KopyliteError, RequestTimeout, UsageError
from kopylite.objects import GroupKind, Kind, ObjectKey, compare_versions

# A watch event follows its write within milliseconds. A reader waits this long for it, once per write, and then
# asks the server.
MAX_WAIT = 2.0
# What no cache has confirmed after this time never will: the server's history was replaced (a restored backup),
# or its watch was re-listed long ago.
MAX_AGE = 600.0
# How long a deleted uid is remembered that may not even have reached the cache.
DELETED_AGE = 60.0
# Unconfirmed writes that are kept one by one.
MAX_PENDING = 10_000
_FIRST_SWEEP = 1_000


class Stored(Protocol):
    """An object in a cache."""

    @property
    def key(self) -> ObjectKey: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...
    @property
    def body(self) -> bytes: ...


class StoreReader(Protocol):
    """The cached objects of one kind, in one namespace or all."""

    def get(self, key: ObjectKey) -> Stored | None: ...

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> Iterable[Stored]: ...

    def newest(self) -> str:
        """The newest resourceVersion seen, bookmarks included: everything up to it has been applied."""

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        """Wait until `newest` has reached a version; False after `timeout` seconds."""


class CacheReader(Protocol):
    """The caches of a process."""

    def store_for(self, kind: Kind, namespace: str) -> StoreReader | None:
        """The store with all objects of a kind in a namespace, or ("") in all; None: these are not cached (yet)."""

    def follows(self, kind: Kind, namespace: str) -> bool:
        """Whether there is, or will be, such a store."""


class NoCache:
    """A CacheReader without caches: every read goes to the server."""

    __slots__ = ()

    def store_for(self, kind: Kind, namespace: str) -> StoreReader | None:
        return None

    def follows(self, kind: Kind, namespace: str) -> bool:
        return False


@dataclass(slots=True)
class _Pending:
    """A write that the cache has to show yet.

    Attributes:
        version: the resourceVersion that the cache must reach; "" when it is not known.
        deleted_uid: the object that must be gone; "" when it was not a deletion.
        at: when it was written, on the monotonic clock.
        waited: a reader has waited in vain; the next one does not.
    """

    version: str
    deleted_uid: str
    at: float
    waited: bool = False


class RecentWrites:
    """Remembers writes until the cache shows them; tells readers whether the cache may be asked.

    A client is its listener. Only writes to cached kinds are remembered. An entry goes when a reader or a sweep
    finds it confirmed. Beyond 10,000 unconfirmed ones, the oldest are merged into one version per kind that the
    cache must reach before it is asked again.
    """

    __slots__ = ("_cache", "_clock", "_floors", "_pending", "_sweep_at")

    def __init__(self, cache: CacheReader, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cache = cache
        self._clock = clock
        self._pending: dict[GroupKind, dict[ObjectKey, _Pending]] = {}
        self._floors: dict[GroupKind, str] = {}
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        """How many writes are unconfirmed."""
        return sum(map(len, self._pending.values()))

    @property
    def idle(self) -> bool:
        """Nothing is unconfirmed: every cache may be asked."""
        return not self._floors and not any(self._pending.values())

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        store = self._cache.store_for(kind, key.namespace)
        if store is None or compare_versions(store.newest(), version) >= 0:
            return
        known = self._pending.get(kind.group_kind, {}).get(key)
        if known is not None and compare_versions(known.version, version) > 0:
            return  # answers may overtake each other
        self._note(kind, key, _Pending(version, "", self._clock.monotonic()))

    def deleted(self, kind: Kind, key: ObjectKey, uid: str) -> None:
        store = self._cache.store_for(kind, key.namespace)
        if store is None:
            return
        known, stored = self._pending.get(kind.group_kind, {}).get(key), store.get(key)
        version = known.version if known is not None else ""
        if not version and stored is not None and stored.uid == uid:
            version = stored.resource_version
        self._note(kind, key, _Pending(version, uid, self._clock.monotonic()))

    async def settled(self, kind: Kind, key: ObjectKey, store: StoreReader) -> bool:
        """Whether the store shows all that was written to an object. Waits for it, 2 s at most."""
        group_kind = kind.group_kind
        if self._floors and not self._reached_floor(group_kind, store):
            return False
        of_kind = self._pending.get(group_kind)
        entry = of_kind.get(key) if of_kind else None
        if of_kind is None or entry is None:
            return True
        usable, confirmed = self._state(entry, key, store)
        if not usable and entry.version and not entry.waited:
            await store.wait_newer(key, entry.version, MAX_WAIT)
            usable, confirmed = self._state(entry, key, store)
            entry.waited = not usable
        if confirmed and of_kind.get(key) is entry:
            del of_kind[key]
        return usable

    async def all_settled(self, kind: Kind, namespace: str, store: StoreReader) -> bool:
        """Whether the store shows all that was written in a namespace, or ("") in all of them."""
        of_kind = self._pending.get(kind.group_kind, {})
        keys = [key for key in of_kind if not namespace or key.namespace == namespace]
        for key in keys:
            if not await self.settled(kind, key, store):
                return False
        return not self._floors or self._reached_floor(kind.group_kind, store)

    def _state(self, entry: _Pending, key: ObjectKey, store: StoreReader) -> tuple[bool, bool]:
        """Whether the store may be asked for the object, and whether the entry has served its purpose."""
        age = self._clock.monotonic() - entry.at
        reached = bool(entry.version) and compare_versions(store.newest(), entry.version) >= 0
        if not entry.deleted_uid:
            return (reached or age > MAX_AGE,) * 2
        stored = store.get(key)
        gone = stored is None or stored.uid != entry.deleted_uid
        # Not there is not gone for ever: the store may be so far behind that it has yet to see the creation.
        return (
            gone and (stored is None or reached or not entry.version),
            gone and (reached or age > DELETED_AGE),
        )

    def _reached_floor(self, group_kind: GroupKind, store: StoreReader) -> bool:
        floor = self._floors.get(group_kind)
        if floor is None:
            return True
        if compare_versions(store.newest(), floor) < 0:
            return False
        del self._floors[group_kind]
        return True

    def _note(self, kind: Kind, key: ObjectKey, entry: _Pending) -> None:
        of_kind = self._pending.setdefault(kind.group_kind, {})
        of_kind.pop(key, None)  # to the end: a dict is also the order of age
        of_kind[key] = entry
        if len(of_kind) >= self._sweep_at:
            self._sweep(kind, of_kind)

    def _sweep(self, kind: Kind, of_kind: dict[ObjectKey, _Pending]) -> None:
        for key, entry in list(of_kind.items()):
            store = self._cache.store_for(kind, key.namespace)
            if store is None or self._state(entry, key, store)[1]:
                del of_kind[key]
        floor = self._floors.get(kind.group_kind, "")
        for key in list(of_kind)[: max(0, len(of_kind) - MAX_PENDING)]:
            version = of_kind.pop(key).version
            floor = version if compare_versions(floor, version) < 0 else floor
        if floor:
            self._floors[kind.group_kind] = floor
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(of_kind))


def no_index(kind: Kind, namespace: str, *, followed: bool) -> KopyliteError:
    """Why a list by an index cannot be answered: it was not declared, or (`followed`) its cache is not complete."""
    if followed:
        where = f" in namespace {namespace}" if namespace else ""
        return RequestTimeout(f"the cache of {kind}{where} is not in sync yet, and only it has the index")
    return UsageError(
        f"list of {kind} by an index: name the kind with app.cache(...) or watch it, and leave out field selectors"
    )
