"""RealWorld: a sweep's world whose API server is a real one, in a time that only passes faster than the real one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import anyio

from kopylite.apiserver.core import Core
from kopylite.client import ApiRequest, load_config
from kopylite.client.transport import HttpTransport
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import KopyliteError, UsageError
from kopylite.sweep.plans import FaultPlan
from kopylite.sweep.realserver import RealCore
from kopylite.sweep.runs import Prepared, SweepRun, play
from kopylite.sweep.trace import SERVER
from kopylite.sweep.world import ACTOR, SweepWorld

# Of our seconds in a real one. Faults last for some of ours, and requests take nearly none: with more, they would.
FASTER = 8.0
# Our seconds without a write after which the cluster counts as at rest, and for how long that is awaited.
WINDOW = 24.0
LONGEST = 240.0
LOOK_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class RealPlace:
    """Where on a real server a sweep is.

    Attributes:
        kubeconfig, context: lead to the server.
        prefix: what the names of its namespaces begin with.
    """

    kubeconfig: str | None
    context: str
    prefix: str

    def transport(self) -> HttpTransport:
        """Raises KubeconfigError."""
        return HttpTransport(replace(load_config(self.kubeconfig, self.context), user_agent="kopylite-sweep"))


class FastClock:
    """The real time, FASTER times as fast. `run` gives an event loop that obeys it."""

    def __init__(self) -> None:
        self._began = SYSTEM_CLOCK.monotonic()

    def monotonic(self) -> float:
        return (SYSTEM_CLOCK.monotonic() - self._began) * FASTER

    elapsed = monotonic

    def now(self) -> datetime:
        return SYSTEM_CLOCK.now()

    def random(self) -> float:
        return SYSTEM_CLOCK.random()

    def uuid(self) -> str:
        return SYSTEM_CLOCK.uuid()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(0.0, seconds))

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run an async function to its end."""

        async def awaited() -> None:
            await main()

        with asyncio.Runner(loop_factory=lambda: _FastLoop(self)) as runner:
            runner.run(awaited())


class _FastLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: FastClock) -> None:
        super().__init__(_HastySelector())
        self._clock = clock

    def time(self) -> float:
        return self._clock.monotonic()


class _HastySelector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout / FASTER if timeout else timeout)


class RealWorld(SweepWorld):
    """Enter it, then `start_operator`. Needs a namespace of its own."""

    def __init__(self, prepared: Prepared, clock: FastClock, place: RealPlace, namespace: str) -> None:
        super().__init__(prepared.store.fork(), clock, prepared.source, simulate=False, controllers=())
        self._place = place
        self._namespace = namespace

    @contextlib.asynccontextmanager
    async def lived(self) -> AsyncIterator[None]:
        async with self._place.transport() as transport, super().lived():
            assert self.tasks is not None
            core = RealCore(transport, self.server.world, self._namespace)
            self.server.core = cast("Core", core)
            self.tasks.start_soon(self._follow, core)
            yield

    async def _follow(self, core: RealCore) -> None:
        ACTOR.set(SERVER)
        while True:
            await self.clock.sleep(LOOK_SECONDS)
            with contextlib.suppress(KopyliteError):
                await core.look()


def run_on_real(prepared: Prepared, place: RealPlace, plan: FaultPlan) -> SweepRun:
    """Play the scenario with the faults of a plan, in a namespace that is made for it. Only in a process of its own."""
    clock, run = FastClock(), SweepRun(plan)
    namespace = f"{place.prefix}-{clock.uuid()[:8]}"

    async def main() -> None:
        async with place.transport() as transport:
            obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            await send(transport, "POST", "/api/v1/namespaces", obj)
            world = RealWorld(prepared, clock, place, namespace)
            try:
                await play(world, prepared.scenario, run, (WINDOW, LONGEST, prepared.version))
            finally:
                with anyio.CancelScope(shield=True):
                    core = cast("RealCore", world.server.core)
                    paths = [core.collection(resource) for resource in core.followed.values()]
                    await remove_namespace(transport, namespace, paths)

    clock.run(main)
    return run


async def remove_namespace(transport: HttpTransport, namespace: str, collections: Sequence[str]) -> None:
    """Delete a namespace of a sweep, and all in it in some collections: nobody else takes their finalizers away."""
    for path in collections:
        await _empty(transport, path)
    await send(transport, "DELETE", f"/api/v1/namespaces/{namespace}")


async def _empty(transport: HttpTransport, path: str) -> None:
    for obj in json.loads((await send(transport, "GET", path)) or b"{}").get("items", ()):
        name = obj["metadata"]["name"]
        if obj["metadata"].get("finalizers"):
            await send(transport, "PATCH", f"{path}/{name}", {"metadata": {"finalizers": None}})
        await send(transport, "DELETE", f"{path}/{name}")


async def send(transport: HttpTransport, method: str, path: str, body: Any = None) -> bytes:
    """The answer's body, b"" where there is nothing. Raises UsageError: the server refuses it."""
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    data = json.dumps(body).encode() if body is not None else None
    request = ApiRequest(method, path, body=data, content_type=kind if data else None)
    answer = await transport.request(request, timeout=300)
    if answer.status == 404:
        return b""
    if answer.status >= 300:
        raise UsageError(f"--real: {method} {path}: HTTP {answer.status}: {answer.body[:300].decode(errors='replace')}")
    return answer.body
