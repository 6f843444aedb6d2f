"""CacheReader: what a client asks of the caches of its process."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping
from typing import Protocol

from kopylite.errors import KopyliteError, RequestTimeout, UsageError
from kopylite.objects import Kind, ObjectKey


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
    """The cached objects of one kind, in one namespace or all; `partial`: some of them only."""

    @property
    def partial(self) -> bool: ...

    def get(self, key: ObjectKey) -> Stored | None: ...

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> Iterable[Stored]: ...

    def find_in(self, kind: Kind, bodies: Iterable[bytes], index: Mapping[str, str]) -> builtins.list[bytes]:
        """Of objects as the server lists them, those that the same index functions find."""

    def newest(self) -> str:
        """The newest resourceVersion seen, bookmarks included: everything up to it has been applied."""

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        """Wait until `newest` has reached a version; False after `timeout` seconds."""


class CacheReader(Protocol):
    """The caches of a process."""

    def store_for(self, kind: Kind, namespace: str) -> StoreReader | None:
        """The store with all objects of a kind in a namespace, or ("") in all; of a shard, with its own, if there is no
        other. None: these are not cached (yet).
        """

    def follows(self, kind: Kind, namespace: str) -> bool:
        """Whether there is, or will be, such a store."""


def whole(store: StoreReader | None) -> StoreReader | None:
    """A store that holds all objects; None: there is none."""
    return None if store is None or store.partial else store


class NoCache:
    """A CacheReader without caches: every read goes to the server."""

    __slots__ = ()

    def store_for(self, kind: Kind, namespace: str) -> StoreReader | None:
        return None

    def follows(self, kind: Kind, namespace: str) -> bool:
        return False


def no_index(kind: Kind, namespace: str, *, followed: bool) -> KopyliteError:
    """Why a list by an index cannot be answered: it was not declared, or (`followed`) its cache is not complete."""
    if followed:
        where = f" in namespace {namespace}" if namespace else ""
        return RequestTimeout(f"the cache of {kind}{where} is not in sync yet, and only it has the index")
    return UsageError(
        f"list of {kind} by an index: name the kind with app.cache(...) or watch it, and leave out field selectors"
    )
