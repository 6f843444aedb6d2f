"""NamespacePublisher: gives every namespace what pods in it expect, the default ServiceAccount and the CA."""

from __future__ import annotations

from typing import Any, NamedTuple

from kopylite.apiserver.admission.service_accounts import ServiceAccountAdmission
from kopylite.apiserver.controllers.actor import MERGE, Actor
from kopylite.apiserver.controllers.ownership import ownership_of
from kopylite.apiserver.controllers.worklist import WorkList
from kopylite.apiserver.core import Core
from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.errors import AlreadyExists, NotFound

NAME = "root-ca-cert-publisher"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class Published(NamedTuple):
    """One object that every namespace has."""

    storage: str
    namespace: str


class NamespacePublisher:
    """Creates them in each new namespace, and again when they are deleted.

    Args:
        certificate: of the CA, PEM; b"" where the server has none.
    """

    def __init__(self, core: Core, certificate: bytes) -> None:
        self._world = core.world
        self._store = core.world.store
        self._actor = Actor(core, NAME)
        self._work: WorkList[Published] = WorkList("namespace publisher", self._attempt)
        annotations = {"kubernetes.io/description": _DESCRIPTION}
        self._objects: dict[str, dict[str, Any]] = {
            "serviceaccounts": {"metadata": {"name": "default"}},
            "configmaps": {
                "metadata": {"name": "kube-root-ca.crt", "annotations": annotations},
                "data": {"ca.crt": certificate.decode()},
            },
        }

    def begin(self) -> None:
        # Where accounts are created, pods get theirs.
        self._world.mutating.insert(0, ServiceAccountAdmission(self._world))
        for record in list(self._store.collection("namespaces").records.values()):
            self._note(record)

    async def run(self) -> None:
        await self._work.run()

    def observe(self, storage: str, change: StoredChange) -> None:
        if storage == "namespaces":
            if change.type != DELETED:
                self._note(change.record)
        elif storage in self._objects and change.record.name == self._objects[storage]["metadata"]["name"]:
            self._work.add(Published(storage, change.record.namespace))

    def _note(self, namespace: StoredObject) -> None:
        for storage in self._objects:
            self._work.add(Published(storage, namespace.name))

    async def _attempt(self, wanted: Published) -> None:
        """Make one object be there and hold what it should. Raises ApiError: it is tried again."""
        namespace = self._store.get("namespaces", wanted.namespace)
        if namespace is None or ownership_of(namespace).deletion_timestamp is not None:
            return
        obj = self._objects[wanted.storage]
        path = f"/api/v1/namespaces/{wanted.namespace}/{wanted.storage}"
        present = self._store.get(wanted.storage, f"{wanted.namespace}/{obj['metadata']['name']}")
        try:
            if present is None:
                await self._actor.send("POST", path, obj)
            elif present.decode().get("data") != obj.get("data"):
                await self._actor.send("PATCH", f"{path}/{present.name}", {"data": obj["data"]}, content_type=MERGE)
        except (AlreadyExists, NotFound):
            return  # somebody was faster; whatever it is now comes as a change
