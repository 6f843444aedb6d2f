"""PolicyStatusController: writes into each ValidatingAdmissionPolicy what its expressions cannot mean."""

from __future__ import annotations

from contextlib import suppress

from kopylite.apiserver.admission.type_checking import expression_warnings
from kopylite.apiserver.controllers.actor import APPLY, Actor
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.storage.history import DELETED, StoredChange
from kopylite.errors import NotFound

NAME = "validatingadmissionpolicy-status-controller"
# Upstream's field manager.
MANAGER = "validatingadmissionpolicy-status"
STORAGE = "validatingadmissionpolicies.admissionregistration.k8s.io"
API_VERSION = "admissionregistration.k8s.io/v1"


class PolicyStatusController:
    """Looks at a policy when its generation is another one, and not when kinds come and go; so does upstream."""

    def __init__(self, core: Core) -> None:
        self._world = core.world
        self._actor = Actor(core, NAME)
        self._work: WorkList[str] = WorkList("admission policies", self._attempt)

    def begin(self) -> None:
        for key in self._world.store.collection(STORAGE).keys:
            self._work.add(key.rpartition("/")[2])

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        if storage == STORAGE and change.type != DELETED:
            self._work.add(change.record.name)

    async def _attempt(self, name: str) -> None:
        """Raises ApiError: it is tried again."""
        path = f"/apis/{API_VERSION}/validatingadmissionpolicies/{name}"
        with suppress(NotFound):
            policy = await self._actor.send("GET", path)
            generation = policy["metadata"].get("generation", 0)
            if generation <= (policy.get("status") or {}).get("observedGeneration", 0):
                return
            warnings = expression_warnings(policy["spec"], self._world.registry)
            checked = {"expressionWarnings": warnings} if warnings else {}
            status = {"observedGeneration": generation, "typeChecking": checked}
            body = {
                "apiVersion": API_VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
                "status": status,
            }  # fmt: skip
            await self._actor.send(
                "PATCH", f"{path}/status?fieldManager={MANAGER}&force=true", body, content_type=APPLY
            )
