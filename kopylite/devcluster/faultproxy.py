"""FaultProxy: another cluster, a real one too, with faults in between."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kopylite.clock import SYSTEM_CLOCK
from kopylite.devcluster.cluster import Cluster
from kopylite.devcluster.faults import Faults
from kopylite.devcluster.requestlog import RequestLog
from kopylite.wholefiles import write_private

if TYPE_CHECKING:
    from kopylite.apiserver.world import Hooks


class FaultProxy(Cluster):
    """Stands between clients and the API server of another cluster, and does to their requests what a test says.

        async with EnvTest(crds=[MyApp]) as cluster, FaultProxy(cluster.kubeconfig) as proxy, proxy.running(app):
            proxy.faults.lose_response(verb="create", resource="deployments")

    Whoever uses `proxy.kubeconfig` (an operator, in whatever language; kubectl) is concerned, and nobody else: the
    cluster is as it was. It listens on loopback, with TLS, and lets in who has the token of its kubeconfig; what
    comes through has the rights of the other cluster's kubeconfig. Answers are JSON.

    Args:
        upstream: a kubeconfig of the other cluster.
        context: in it; None: its current one.

    Attributes:
        faults: what may go wrong; see Faults. `serve_stale` shows what the proxy has last heard of, and `compact`
            makes watches expire, without a compaction of anybody's data.
        requests: what was asked through it and answered, newest last.
        hooks: what happens with each request: `before`, `after` and `watch`.

    Raises:
        KubeconfigError: the kubeconfig cannot be used (at start).
    """

    def __init__(self, upstream: str | Path, context: str | None = None) -> None:
        from kopylite.apiserver.world import Hooks

        self._upstream, self._context = str(upstream), context
        self._running = AsyncExitStack()
        self.hooks: Hooks = Hooks()
        self.requests = RequestLog(SYSTEM_CLOCK)
        self.hooks.after.append(self.requests.note)

    async def start(self) -> None:
        from kopylite.apiserver.access.kubeconfig import kubeconfig
        from kopylite.apiserver.gateway import gateway
        from kopylite.client import load_config
        from kopylite.client.transport import HttpTransport
        from kopylite.devcluster.relay import Relay, RelayPast
        from kopylite.serving.authority import CertificateAuthority

        async with AsyncExitStack() as stack:
            transport = await stack.enter_async_context(HttpTransport(load_config(self._upstream, self._context)))
            relay = Relay(transport, self.hooks)
            self.faults = Faults(self.hooks, SYSTEM_CLOCK, lambda: RelayPast(relay), relay.compact)
            authority, token = CertificateAuthority("kopylite faults"), SYSTEM_CLOCK.uuid()
            url = await stack.enter_async_context(gateway(relay.handle, token, authority, SYSTEM_CLOCK))
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kopylite-faults-")))
            self.kubeconfig = home / "kubeconfig"
            write_private(self.kubeconfig, kubeconfig(url, {"token": token}, authority.certificate))
            self._running = stack.pop_all()

    async def stop(self) -> None:
        await self._running.aclose()
