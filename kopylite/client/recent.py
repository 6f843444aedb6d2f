"""RecentWrites: what this client wrote and its caches have not seen yet. The reason why a read is never older."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from weakref import ref

import anyio
import msgspec

from kopylite.client.caches import CacheReader, StoreReader
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KopyliteError
from kopylite.objects import GroupKind, Kind, ObjectKey, compare_versions

# A watch event follows its write within milliseconds. A reader waits this long for it, once per write, and then
# asks the server.
MAX_WAIT = 2.0
# What no cache has confirmed after this time never will: the server's history was replaced (a restored backup),
# or its watch was re-listed long ago.
MAX_AGE = 600.0
# A write whose answer was lost may still be carried out for a moment: kube-apiserver ends a request with its
# connection, but not what etcd is at. Until then the server's version tells nothing about it.
LATE = 2.0
# Readers ask the server for its version at most this often for one doubt; meanwhile others read from it.
ASK_PAUSE = 1.0
# Of so many doubts about single objects, a reader of all has each one cleared by a request; of more by one for all.
MAX_LOOKS = 16
# Unconfirmed writes that are kept one by one.
MAX_PENDING = 10_000
# Namespaces of a kind whose writes are kept apart for caches that begin later.
MAX_FLOORS = 1_000
_FIRST_SWEEP = 1_000

EVERYTHING = ObjectKey("", "")
Ask = Callable[[Kind, ObjectKey], Awaitable[str]]


class Doubt(msgspec.Struct):
    """What the caches have to show before they may be asked about an object, a namespace or a kind.

    Attributes:
        at: when the write was answered, on the monotonic clock.
        version: the resourceVersion that a cache must have reached.
        deleted_uid: the object that must be gone; "" when it was not a deletion.
        written_uid: the object whose version it is; "" when that is not known.
        unsure: nobody knows the version of what was written, or whether it was: the server is to be asked.
        asks_from: before this moment it is not worth asking.
        missing: the server was asked for the object and has none: only the version of its collection can tell.
        tried: a reader has waited in vain; the next one does not.
        heard: set when the answer of the server is there that a reader asked for just now; None: nobody asks.
    """

    at: float
    version: str = ""
    deleted_uid: str = ""
    written_uid: str = ""
    unsure: bool = False
    asks_from: float = 0.0
    missing: bool = False
    tried: bool = False
    heard: anyio.Event | None = None

    def solve(self, version: str) -> None:
        """The server was seen at a version, after the write."""
        self.version = newer(self.version, version)
        self.unsure, self.deleted_uid = False, ""

    def add(self, other: Doubt) -> None:
        """Stand for another one too."""
        self.at = max(self.at, other.at)
        self.version = newer(self.version, other.version)
        self.unsure = self.unsure or other.unsure or bool(other.deleted_uid)
        self.asks_from = max(self.asks_from, other.asks_from)


class RecentWrites:
    """Remembers writes until the caches show them; tells readers whether a cache may be asked.

    A client is its listener. A write with a known answer concerns its object. One without (the answer was lost, or
    does not say what was written, as that of an eviction) concerns its object, or, where it has no name, its whole
    namespace; then the server is asked for its present version, and a cache that has reached it shows the write.

    A cache may begin, or begin again, after a write, and with an older state: it is trusted when it has reached what
    was written in the last 10 minutes.

    An entry goes when all caches have confirmed it. Beyond 10,000 unconfirmed ones, the oldest are merged into one for
    their kind; what is not confirmed after 10 minutes is forgotten.

    Args:
        cache: the caches.
        clock: of the ages.
        ask: the present version of an object on the server, "" if it is not there; of a key without a name, that of
            all objects of the kind in its namespace ("": in all).
    """

    __slots__ = ("_ask", "_cache", "_clock", "_floors", "_latest", "_pending", "_sweep_at", "_trusted")

    def __init__(self, cache: CacheReader, clock: Clock = SYSTEM_CLOCK, ask: Ask | None = None) -> None:
        self._cache = cache
        self._clock = clock
        self._ask = ask
        # What was written to an object; under the name "", to a namespace, and under EVERYTHING, to a kind.
        self._pending: dict[GroupKind, dict[ObjectKey, Doubt]] = {}
        # What was written to each namespace at all: what a cache must have reached that begins later.
        self._floors: dict[GroupKind, dict[str, Doubt]] = {}
        # The caches, by namespace, that have reached the floors of the time when they were met first.
        self._trusted: dict[GroupKind, dict[str, ref[StoreReader]]] = {}
        # The versions of the last writes, also of kinds that no cache has.
        self._latest: OrderedDict[tuple[GroupKind, ObjectKey], str] = OrderedDict()
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        """How many writes are unconfirmed."""
        return sum(map(len, self._pending.values()))

    # For the client that writes

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        before = self._latest.pop((kind.group_kind, key), "")
        self._latest[kind.group_kind, key] = newer(version, before) if before else version
        if len(self._latest) > MAX_PENDING:
            self._latest.popitem(last=False)
        known = self._pending.get(kind.group_kind, {}).get(key)
        now = self._clock.monotonic()
        entry = Doubt(now, version, written_uid=uid)
        stores = self._meet(kind, key, entry)
        # Answers may overtake each other, and a uid that is gone does not come back.
        if known is not None and (known.deleted_uid == uid or _is_newer(known, version)):
            return
        if known is not None and known.unsure and now < known.asks_from:
            known.version = version  # the write before, whose answer was lost, may yet come after this one
        elif any(compare_versions(store.newest(), version) < 0 for store in stores):
            self._note(kind, key, entry)
        elif known is not None:
            del self._pending[kind.group_kind][key]

    def deleted(self, kind: Kind, key: ObjectKey, uid: str, version: str = "") -> None:
        entry = Doubt(self._clock.monotonic(), version, deleted_uid=uid)
        known = self._pending.get(kind.group_kind, {}).get(key)
        stores = self._meet(kind, key, entry)
        if known is not None:
            entry.version = newer(entry.version, known.version)
            # A cache that has reached a version of another object of the name may still show that one.
            known_of = version or uid in (known.deleted_uid, known.written_uid)
            entry.unsure, entry.asks_from = known.unsure or not known_of, known.asks_from
        for store in stores:
            stored = store.get(key)
            if stored is not None and stored.uid == uid:
                entry.version = newer(entry.version, stored.resource_version)
        if stores:
            self._note(kind, key, entry)

    def doubted(self, kind: Kind, key: ObjectKey, *, late: bool) -> None:
        now = self._clock.monotonic()
        entry = Doubt(now, unsure=True, asks_from=now + LATE if late else now)
        if self._meet(kind, key, entry):
            self._note(kind, key, entry)

    # For the client that reads

    def knows_newer(self, kind: Kind, key: ObjectKey, version: str) -> bool:
        """Whether a cache shows a newer version of an object, or one of the last 10,000 writes gave it one."""
        store = self._cache.store_for(kind, key.namespace)
        shown = store.get(key) if store is not None else None
        versions = self._latest.get((kind.group_kind, key), ""), shown.resource_version if shown is not None else ""
        return any(found and compare_versions(found, version) > 0 for found in versions)

    def shown(self, kind: Kind, key: ObjectKey) -> bytes | None:
        """An object from its cache, if that has it and nothing is in doubt: what nearly every read finds, so it awaits
        nothing. None: see `settled`.
        """
        store = self._cache.store_for(kind, key.namespace)
        if store is None:
            return None
        if kind.group_kind in self._floors:  # else nothing was ever written to the kind
            of_kind = self._pending.get(kind.group_kind)
            if of_kind and ((key.namespace, "") in of_kind or EVERYTHING in of_kind):
                return None
            if not self._trusts(kind, key.namespace, store):
                return None
            entry = of_kind.get(key) if of_kind else None
            if entry is not None and not self._shows_now(kind, key, entry, store):
                return None
        stored = store.get(key)
        return None if stored is None else stored.body

    async def settled(self, kind: Kind, key: ObjectKey, store: StoreReader) -> bool:
        """Whether the store shows all that was written to an object. Waits for it, 2 s at most."""
        if not (self._trusts(kind, key.namespace, store) or await self._becomes_trusted(kind, key.namespace, store)):
            return False
        of_kind = self._pending.get(kind.group_kind)
        if not of_kind:
            return True
        for scope in (key, ObjectKey(key.namespace, ""), EVERYTHING):
            entry = of_kind.get(scope)
            if entry is None:
                continue
            # The next read of the object tells its version, without another request.
            asks = scope is not key or entry.missing
            if not await self._shows(kind, scope, entry, store, key.namespace, asks=asks):
                return False
        return True

    async def all_settled(self, kind: Kind, namespace: str, store: StoreReader) -> bool:
        """Whether the store shows all that was written in a namespace, or ("") in all of them."""
        if not (self._trusts(kind, namespace, store) or await self._becomes_trusted(kind, namespace, store)):
            return False
        of_kind = self._pending.get(kind.group_kind, {})
        scopes = [scope for scope in of_kind if not namespace or scope.namespace == namespace or scope == EVERYTHING]
        unsure = [of_kind[scope] for scope in scopes if of_kind[scope].unsure]
        if len(unsure) > MAX_LOOKS:
            await self._solve(kind, namespace, unsure)
        for scope in scopes:
            entry = of_kind.get(scope)
            if entry is not None and not await self._shows(kind, scope, entry, store, namespace, asks=True):
                return False
        return True

    def doubt(self, kind: Kind, key: ObjectKey) -> Doubt | None:
        """What the server's answer to a read of this object, sent from now on, will solve; None: nothing."""
        entry = self._pending.get(kind.group_kind, {}).get(key)
        ripe = entry is not None and entry.unsure and self._clock.monotonic() >= entry.asks_from
        return entry if ripe else None

    # What is in doubt

    async def _shows(
        self, kind: Kind, scope: ObjectKey, entry: Doubt, store: StoreReader, namespace: str, *, asks: bool
    ) -> bool:
        """Whether a store shows a write; waits for it, or asks the server."""
        usable = self._shows_now(kind, scope, entry, store)
        if not usable and not entry.version:
            entry.unsure = True  # the store shows another object than was deleted: an older one, or the next
        if not usable and entry.unsure and asks:
            if scope.name and not entry.missing:
                await self._look(kind, scope, entry)
            else:
                await self._solve(kind, namespace, [entry])
            usable = self._shows_now(kind, scope, entry, store)
        if not usable and not entry.unsure and entry.version and not entry.tried:
            await store.wait_newer(scope, entry.version, MAX_WAIT)
            usable = self._shows_now(kind, scope, entry, store)
            entry.tried = not usable
        return usable

    def _shows_now(self, kind: Kind, scope: ObjectKey, entry: Doubt, store: StoreReader) -> bool:
        """Whether a store shows a write by now; drops the entry when all of them do."""
        usable, confirmed = self._state(entry, scope, store)
        if confirmed and self._confirmed_everywhere(kind, scope, entry, store):
            of_kind = self._pending.get(kind.group_kind, {})
            if of_kind.get(scope) is entry:
                del of_kind[scope]
        return usable

    def _state(self, entry: Doubt, scope: ObjectKey, store: StoreReader) -> tuple[bool, bool]:
        """Whether the store may be asked, and whether the entry has served its purpose with it."""
        if self._clock.monotonic() - entry.at > MAX_AGE:
            return True, True
        if entry.unsure:
            return False, False
        reached = bool(entry.version) and compare_versions(store.newest(), entry.version) >= 0
        if not entry.deleted_uid:
            return reached, reached
        stored = store.get(scope)
        gone = stored is None or stored.uid != entry.deleted_uid
        # Not there is not gone for ever: the store may be so far behind that it has yet to see the creation.
        return gone and (stored is None or reached), gone and reached

    async def _look(self, kind: Kind, key: ObjectKey, entry: Doubt) -> None:
        """Ask the server for the version of an object, one reader at a time; those who come meanwhile wait for that."""
        if entry.heard is not None:
            await entry.heard.wait()
            return
        now = self._clock.monotonic()
        if self._ask is None or entry.asks_from > now:
            return
        entry.asks_from, entry.heard = now + ASK_PAUSE, anyio.Event()
        try:
            version = await self._ask(kind, key)
            if version:
                entry.solve(version)
            else:
                entry.missing, entry.asks_from = True, now  # the version of all is asked for next
        except KopyliteError:
            pass  # the read itself, which goes to the server now, says what is wrong
        finally:
            entry.heard.set()
            entry.heard = None

    async def _solve(self, kind: Kind, namespace: str, entries: list[Doubt]) -> None:
        """Ask the server for the version of all, one reader at a time.

        The events of a kind may never reach it, since every write to the server counts; a bookmark does, in a minute.
        So nobody waits for the caches.
        """
        now = self._clock.monotonic()
        ripe = [entry for entry in entries if entry.asks_from <= now]
        if self._ask is None or not ripe:
            return
        for entry in ripe:
            entry.asks_from = now + ASK_PAUSE
        try:
            version = await self._ask(kind, ObjectKey(namespace, ""))
        except KopyliteError:
            return  # the read itself, which goes to the server now, says what is wrong
        for entry in ripe:
            entry.solve(version)
            entry.tried = True

    def _confirmed_everywhere(self, kind: Kind, scope: ObjectKey, entry: Doubt, by: StoreReader | None = None) -> bool:
        """Whether all stores have confirmed an entry; `by`: one that has."""
        stores = self._stores(kind, scope.namespace)
        return all(store is by or self._state(entry, scope, store)[1] for store in stores)

    def _note(self, kind: Kind, key: ObjectKey, entry: Doubt) -> None:
        of_kind = self._pending.setdefault(kind.group_kind, {})
        of_kind.pop(key, None)  # to the end: a dict is also the order of age
        of_kind[key] = entry
        if len(of_kind) >= self._sweep_at:
            self._sweep(kind, of_kind)

    def _sweep(self, kind: Kind, of_kind: dict[ObjectKey, Doubt]) -> None:
        for scope, entry in list(of_kind.items()):
            if self._confirmed_everywhere(kind, scope, entry):
                del of_kind[scope]
        for scope in list(of_kind)[: max(0, len(of_kind) - MAX_PENDING)]:
            if scope != EVERYTHING:
                of_kind.setdefault(EVERYTHING, Doubt(0.0)).add(of_kind.pop(scope))
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(of_kind))

    # Which caches are trusted

    def _stores(self, kind: Kind, namespace: str) -> list[StoreReader]:
        """The stores that reads of a namespace may meet: its own, and that of all namespaces."""
        return _present(self._cache.store_for(kind, namespace), self._cache.store_for(kind, ""))

    def _meet(self, kind: Kind, key: ObjectKey, entry: Doubt) -> list[StoreReader]:
        """The stores that will show a write. Those that are met later, or come back, have to reach it first."""
        own, whole = self._cache.store_for(kind, key.namespace), self._cache.store_for(kind, "")
        trusted = self._trusted.get(kind.group_kind, {})
        if key.namespace and own is whole:
            trusted.pop(key.namespace, None)
        if whole is None:
            trusted.pop("", None)
        stores = _present(own, whole)
        for store in stores:
            self._trusts(kind, key.namespace, store)
        floors = self._floors.setdefault(kind.group_kind, {})
        floor = floors.get(key.namespace)
        if floor is None:
            floor = floors[key.namespace] = Doubt(0.0)
        floor.add(entry)
        if len(floors) > MAX_FLOORS:
            everywhere = Doubt(0.0)
            for floor in floors.values():
                everywhere.add(floor)
            self._floors[kind.group_kind] = {"": everywhere}
        return stores

    def _trusts(self, kind: Kind, namespace: str, store: StoreReader) -> bool:
        """Whether a store has reached, now or before, what was written before it was met first."""
        trusted = self._trusted.setdefault(kind.group_kind, {})
        whole, own = trusted.get(""), trusted.get(namespace)
        if (whole is not None and whole() is store) or (own is not None and own() is store):
            return True
        for floor in self._floors_under(kind, namespace, store):
            if floor.unsure or compare_versions(store.newest(), floor.version) < 0:
                return False
        trusted["" if store is self._cache.store_for(kind, "") else namespace] = ref(store)
        return True

    async def _becomes_trusted(self, kind: Kind, namespace: str, store: StoreReader) -> bool:
        await self._solve(kind, namespace, [f for f in self._floors_under(kind, namespace, store) if f.unsure])
        return self._trusts(kind, namespace, store)

    def _floors_under(self, kind: Kind, namespace: str, store: StoreReader) -> list[Doubt]:
        """What a store has to reach."""
        floors = self._floors.get(kind.group_kind, {})
        whole = store is self._cache.store_for(kind, "")
        oldest = self._clock.monotonic() - MAX_AGE
        under = floors.values() if whole else (floors[name] for name in {namespace, ""} if name in floors)
        return [floor for floor in under if floor.at >= oldest]


def _present(own: StoreReader | None, whole: StoreReader | None) -> list[StoreReader]:
    return [store for store in ((own,) if own is whole else (own, whole)) if store is not None]


def _is_newer(known: Doubt, version: str) -> bool:
    return not known.unsure and compare_versions(known.version, version) > 0


def newer(a: str, b: str) -> str:
    return a if compare_versions(a, b) > 0 else b
