"""QuotaController: keeps the status of each ResourceQuota at what its namespace uses."""

from __future__ import annotations

import bisect

from kopylite.apiserver.admission.quota_usage import quantities
from kopylite.apiserver.admission.quotas import STORAGE, Quotas
from kopylite.apiserver.controllers.actor import Actor
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.storage.history import MODIFIED, StoredChange
from kopylite.errors import NotFound

NAME = "resourcequota-controller"
# What others write into the status of a quota stands until then. Upstream looks at all quotas each five minutes.
RESYNC_SECONDS = 10.0


class QuotaController:
    """Where it runs, what is stored counts for admission, and not what quotas say."""

    def __init__(self, core: Core) -> None:
        self._world = core.world
        self._collection = core.world.store.collection
        self._quotas = Quotas(core.world)
        self._actor = Actor(core, NAME)
        self._work: WorkList[str] = WorkList("resource quotas", self._attempt)

    def begin(self) -> None:
        self._world.counts_quotas = True
        for key in self._collection(STORAGE).keys:
            self._work.add(key.partition("/")[0])

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        namespace = change.record.namespace
        if storage == STORAGE and change.type == MODIFIED and _same_spec(change):
            self._work.add_later(namespace, RESYNC_SECONDS)
        elif namespace and self._limited(namespace):
            self._work.add(namespace)

    def _limited(self, namespace: str) -> bool:
        keys = self._collection(STORAGE).keys
        place = bisect.bisect_left(keys, f"{namespace}/")
        return place < len(keys) and keys[place].startswith(f"{namespace}/")

    async def _attempt(self, namespace: str) -> None:
        """Raises ApiError: it is tried again."""
        for quota in self._quotas.of(namespace):
            hard = quota["spec"].get("hard") or {}
            used = self._quotas.used(quota, quantities(hard))
            status = {"hard": hard, "used": {name: quantity.text() for name, quantity in used.items()}}
            if status == quota.get("status"):
                continue
            path = f"/api/v1/namespaces/{namespace}/{STORAGE}/{quota['metadata']['name']}/status"
            try:
                await self._actor.send("PUT", path, {**quota, "status": status})
            except NotFound:
                continue  # it went meanwhile


def _same_spec(change: StoredChange) -> bool:
    return change.previous is not None and change.previous.decode()["spec"] == change.record.decode()["spec"]
