"""Controllers: the chosen controllers of one server, from entering the context until leaving it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Protocol, Self

from kopylite.apiserver.controllers.aggregation import ClusterRoleAggregator
from kopylite.apiserver.controllers.garbage import GarbageCollector
from kopylite.apiserver.controllers.namespaces import NamespaceController
from kopylite.apiserver.controllers.policy_status import PolicyStatusController
from kopylite.apiserver.controllers.publisher import NamespacePublisher
from kopylite.apiserver.controllers.quotas import QuotaController
from kopylite.apiserver.core import Core
from kopylite.apiserver.depth import deep, deep_stack
from kopylite.apiserver.storage.history import StoredChange
from kopylite.errors import UsageError


class BackgroundController(Protocol):
    """Notes changes in the turn in which they happen, and works them off in `run`."""

    def observe(self, storage: str, change: StoredChange) -> None: ...
    def begin(self) -> None:
        """Look at everything that is stored already."""

    async def run(self) -> None: ...


# As kube-controller-manager names them, without "-controller"; namespace-publisher stands for its two publishers.
NAMES = (
    "clusterrole-aggregation", "garbage-collector", "namespace", "namespace-publisher", "resourcequota",
    "validatingadmissionpolicy-status",
)  # fmt: skip


class Controllers:
    """Runs controllers beside a Core.

    Args:
        names: which ones; of NAMES.
        certificate: of the CA that namespaces shall know, PEM; b"" for none.

    Raises:
        UsageError: there is no controller of that name.
    """

    def __init__(self, core: Core, names: Collection[str], certificate: bytes = b"") -> None:
        makers: dict[str, Callable[[], BackgroundController]] = {
            "clusterrole-aggregation": lambda: ClusterRoleAggregator(core),
            "garbage-collector": lambda: GarbageCollector(core),
            "namespace": lambda: NamespaceController(core),
            "namespace-publisher": lambda: NamespacePublisher(core, certificate),
            "resourcequota": lambda: QuotaController(core),
            "validatingadmissionpolicy-status": lambda: PolicyStatusController(core),
        }
        if unknown := sorted(set(names) - set(makers)):
            raise UsageError(f"there is no controller {unknown[0]!r}; there are {', '.join(NAMES)}")
        self._store = core.world.store
        self._controllers = [makers[name]() for name in names]
        # Of asyncio and not of anyio: a server may be stopped by another task than the one that started it, and
        # inside of other task groups, which cancel scopes do not allow.
        self._tasks = asyncio.TaskGroup()
        self._running: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        for controller in self._controllers:
            self._store.observers.append(controller.observe)
            with deep_stack():
                controller.begin()
            self._running.append(self._tasks.create_task(_run(controller)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for controller in self._controllers:
            self._store.observers.remove(controller.observe)
        for task in self._running:
            task.cancel()
        await self._tasks.__aexit__(None, None, None)


async def _run(controller: BackgroundController) -> None:
    await deep(controller.run())
