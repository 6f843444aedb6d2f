"""OperatorRunner: an operator at work on a cluster of its own, for tests that are no async functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from kopylite.errors import UsageError

if TYPE_CHECKING:
    from kopylite.app import App
    from kopylite.client import Client
    from kopylite.devcluster.cluster import Cluster

P = ParamSpec("P")
T = TypeVar("T")

# Between two looks at a condition.
LOOK_SECONDS = 0.02


class OperatorRunner:
    """Runs an app on a cluster, both in the event loop of a thread, as long as its `with` block.

        def test_a_myapp_gets_its_deployment():
            with OperatorRunner(app, crds=[MyApp], simulator=True) as operator:
                operator.call(operator.client.create, MyApp.model_validate({...}))
                operator.wait(lambda: operator.client.find(Deployment, "a", namespace="default"))

    Args:
        app: has the reconcilers; None: only the cluster runs.
        cluster: where, not yet entered: an EnvTest, say; None: an EmbeddedCluster.
        namespaces: to which the app is limited, names or globs; none: all.
        timeout: seconds for its start, and for reconciles that still run at the end.
        options: of the EmbeddedCluster: `crds`, `simulator`, ...

    Raises:
        UsageError: options beside a cluster; what the cluster raises; what `Cluster.running` raises (at the start).
    """

    def __init__(
        self,
        app: App | None = None,
        *,
        cluster: Cluster | None = None,
        namespaces: Sequence[str] = (),
        timeout: float = 10,
        **options: Any,
    ) -> None:
        from kopylite.devcluster.embedded import EmbeddedCluster

        if cluster is not None and options:
            raise UsageError(f"OperatorRunner: {', '.join(options)} are for the cluster; give them to it")
        self.cluster: Cluster = cluster or EmbeddedCluster(**options)
        self._app = app
        self._namespaces = namespaces
        self._timeout = timeout
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """A client with every right; its methods are async, so have them called by `call`."""
        if self._client is None:
            raise UsageError("the OperatorRunner does not run: enter its `with` block first")
        return self._client

    @property
    def kubeconfig(self) -> Path:
        """For kubectl and other programs."""
        return self.cluster.kubeconfig

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = self._portal = stack.enter_context(start_blocking_portal())
            stack.enter_context(portal.wrap_async_context_manager(self.cluster))
            self._client = stack.enter_context(portal.wrap_async_context_manager(self.cluster.client()))
            if self._app is not None:
                running = self.cluster.running(self._app, namespaces=self._namespaces, timeout=self._timeout)
                stack.enter_context(portal.wrap_async_context_manager(running))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client = self._portal = None
        self._stack.close()

    def call(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await an async function in the operator's event loop, and return its result."""
        if self._portal is None:
            raise UsageError("the OperatorRunner does not run: enter its `with` block first")
        return self._portal.call(partial(function, *args, **kwargs))

    def wait(self, condition: Callable[[], Awaitable[T | None]], timeout: float = 10) -> T:
        """Ask again and again until the answer is true, and return it.

        Raises:
            TimeoutError: that took longer than `timeout` seconds.
        """

        async def ask() -> T:
            found = None
            with anyio.move_on_after(timeout):
                while True:
                    if found := await condition():
                        return found
                    await anyio.sleep(LOOK_SECONDS)
            raise TimeoutError(f"what was waited for did not come within {timeout:g} s; the last answer was {found!r}")

        return self.call(ask)
