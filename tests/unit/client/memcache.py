"""MemoryCache: a CacheReader that lags as far behind a MemoryServer as a test wants."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio.lowlevel

from kopylite.objects import Kind, ObjectKey, compare_versions


@dataclass(frozen=True)
class StoredObject:
    key: ObjectKey
    uid: str
    resource_version: str
    body: bytes


class MemoryStore:
    """One store for everything.

    Attributes:
        on_wait: what happens while a reader waits; by default nothing, so that it waits in vain.
        waits: the versions that were waited for.
    """

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, StoredObject] = {}
        self.partial = False
        self.version = "0"
        self.waits: list[str] = []
        self.on_wait: Callable[[], None] = lambda: None

    def see(self, obj: Mapping[str, Any]) -> None:
        """Apply the event of an object."""
        metadata = obj["metadata"]
        key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
        stored = StoredObject(key, metadata["uid"], metadata["resourceVersion"], json.dumps(obj).encode())
        self.objects[key] = stored
        self.version = stored.resource_version

    def see_gone(self, key: ObjectKey, version: str) -> None:
        del self.objects[key]
        self.version = version

    def get(self, key: ObjectKey) -> StoredObject | None:
        return self.objects.get(key)

    def list(
        self, namespace: str = "", labels: str | None = None, index: Mapping[str, str] | None = None
    ) -> Iterable[StoredObject]:
        return [stored for key, stored in self.objects.items() if not namespace or key.namespace == namespace]

    def find_in(self, kind: Kind, bodies: Iterable[bytes], index: Mapping[str, str]) -> builtins.list[bytes]:
        """As an index of dotted paths of two names does."""
        wanted = [(path.split("."), value) for path, value in index.items()]
        return [body for body in bodies if all(json.loads(body)[a].get(b) == value for (a, b), value in wanted)]

    def newest(self) -> str:
        return self.version

    async def wait_newer(self, key: ObjectKey, version: str, timeout: float) -> bool:
        self.waits.append(version)
        await anyio.lowlevel.checkpoint()
        self.on_wait()
        return compare_versions(self.version, version) >= 0


class MemoryCache:
    """Holds the kinds in `kinds`.

    Attributes:
        gone: the kinds are not served at the moment.
        only: the one namespace that is cached; "" for all.
    """

    def __init__(self, *kinds: Kind) -> None:
        self.kinds = {kind.group_kind for kind in kinds}
        self.store = MemoryStore()
        self.gone = False
        self.only = ""

    def follows(self, kind: Kind, namespace: str) -> bool:
        return kind.group_kind in self.kinds and self.only in ("", namespace)

    def store_for(self, kind: Kind, namespace: str) -> MemoryStore | None:
        return self.store if self.follows(kind, namespace) and not self.gone else None
