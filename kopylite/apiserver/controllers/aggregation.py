"""ClusterRoleAggregator: keeps the rules of each aggregated ClusterRole at those of the roles that it selects."""

from __future__ import annotations

from typing import Any

from kopylite.apiserver.controllers.actor import Actor
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.request.selectors import parse_label_selector, selector_text
from kopylite.apiserver.storage.history import StoredChange

NAME = "clusterrole-aggregation-controller"
STORAGE = "clusterroles.rbac.authorization.k8s.io"
_API_VERSION = "rbac.authorization.k8s.io/v1"


class ClusterRoleAggregator:
    """Without it an aggregated role grants nothing, as on a bare kube-apiserver."""

    def __init__(self, core: Core) -> None:
        self._collection = core.world.store.collection
        self._actor = Actor(core, NAME)
        self._work: WorkList[str] = WorkList("cluster role aggregation", self._attempt)

    def begin(self) -> None:
        self._note_all()

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        if storage == STORAGE:
            self._note_all()

    def _note_all(self) -> None:
        """Any role may be selected by any other; there are few that select."""
        for name, record in self._collection(STORAGE).records.items():
            if b'"aggregationRule"' in record.body:
                self._work.add(name)

    async def _attempt(self, name: str) -> None:
        """Raises ApiError: it is tried again."""
        record = self._collection(STORAGE).records.get(name)
        role = record.decode() if record is not None else {}
        if not role.get("aggregationRule"):
            return
        rules = self._aggregated(name, role["aggregationRule"])
        if rules == (role.get("rules") or []):
            return
        path = f"/apis/{_API_VERSION}/clusterroles/{name}?fieldManager={NAME}&force=true"
        body = {"apiVersion": _API_VERSION, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
        await self._actor.send("PATCH", path, body, content_type="application/apply-patch+yaml")

    def _aggregated(self, name: str, aggregation: dict[str, Any]) -> list[dict[str, Any]]:
        """The rules of all selected roles, in the order of their names within each selector, each rule once."""
        rules: list[dict[str, Any]] = []
        roles = {key: record.labels for key, record in sorted(self._collection(STORAGE).records.items())}
        for selector in aggregation.get("clusterRoleSelectors") or ():
            wanted = parse_label_selector(selector_text(selector))
            for key, labels in roles.items():
                if key != name and wanted.matches(labels):
                    found = self._collection(STORAGE).records[key].decode().get("rules") or []
                    rules += [rule for rule in found if rule not in rules]
        return rules
