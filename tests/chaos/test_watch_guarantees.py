"""The embedded server's history beside what informers deliver of it, while watches break in every way; by seed."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import anyio
import pytest

from kopylite import Kind, Unstructured
from kopylite.apiserver.request.request import HttpRequest, Response
from kopylite.apiserver.storage.history import StoredChange
from kopylite.apiserver.world import Call, Disconnect
from kopylite.cache import SharedCache
from kopylite.client import Client, load_config
from kopylite.client.resources import Resources
from kopylite.client.transport import HttpTransport
from kopylite.errors import ApiError, Expired, InternalError, TooManyRequests
from kopylite.testing import EmbeddedCluster, VirtualClock
from tests.chaos.watchguarantees import Witness

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
CHANGES = 60


class Chaos:
    """What goes wrong, by a seed."""

    def __init__(self, seed: int, cluster: EmbeddedCluster) -> None:
        self.random = Random(seed)
        self.cluster = cluster
        self.on = True
        cluster.hooks.before.append(self.refuse)
        cluster.hooks.watch.append(self.cut)

    def happens(self, chance: float) -> bool:
        return self.on and self.random.random() < chance

    async def refuse(self, request: HttpRequest) -> Response | None:
        """A list or the opening of a watch is refused, or gets no answer."""
        if request.agent.startswith("watcher") and "configmaps" in request.path and self.happens(0.15):
            error = self.random.choice([Disconnect, Expired, InternalError, TooManyRequests])
            raise error() if error is Disconnect else error("not now")
        return None

    async def cut(self, call: Call, frame: bytes) -> bytes | None:
        """An open watch ends well, or in the middle of a line, or with an error; or it is late."""
        if call.resource.plural != "configmaps" or not self.happens(0.35):
            return frame
        match self.random.randrange(5):
            case 0:
                return None
            case 1:
                raise Disconnect
            case 2:
                await anyio.sleep(self.random.uniform(0, 40))
                return frame
            case 3:
                return frame[: self.random.randrange(1, len(frame))] + b"\n"
            case _:
                return b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n'

    async def change(self, user: Client) -> None:
        """One write to one of a few objects, or the end of all history so far."""
        name = self.random.choice("abcd")
        key = {"namespace": "default"}
        try:
            match self.random.randrange(10):
                case 0 | 1 | 2:
                    await user.delete(CONFIG_MAP, name, namespace="default")
                case 3:
                    self.cluster.compact()
                case _:
                    label, data = self.random.choice(["yes", "no"]), {"n": str(self.random.random())}
                    metadata = {"name": name, "labels": {"watched": label}, **key}
                    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
                    await user.apply(Unstructured(obj), force=True)
        except ApiError:
            pass


@pytest.mark.parametrize("seed", range(4))
def test_an_informer_keeps_the_nine_guarantees_whatever_its_watches_come_to(seed: int) -> None:
    clock = VirtualClock()

    async def main() -> tuple[list[Witness], list[StoredChange]]:
        history: list[StoredChange] = []
        async with EmbeddedCluster(controllers=False, tls=False, clock=clock) as cluster, cluster.client() as user:

            def observe(storage: str, change: StoredChange) -> None:
                if storage.endswith("configmaps") and change.record.namespace == "default":
                    history.append(change)

            cluster.server.world.store.observers.append(observe)
            chaos, config = Chaos(seed, cluster), replace(load_config(str(cluster.kubeconfig)), user_agent="watcher")
            async with HttpTransport(config, clock=clock) as transport, anyio.create_task_group() as tasks:
                cache = SharedCache(transport, Resources(transport, clock), clock=clock)
                witnesses = [
                    Witness(cache.acquire(CONFIG_MAP, namespace="default")),
                    Witness(cache.acquire(CONFIG_MAP, namespace="default", labels="watched=yes"), "yes"),
                ]
                tasks.start_soon(cache.run)
                for _ in range(CHANGES):
                    await chaos.change(user)
                    await clock.sleep(chaos.random.choice([0.0, 0.0, 0.1, 3.0, 70.0]))
                chaos.on = False
                await clock.sleep(400.0)  # longer than the longest back-off, and two bookmarks
                tasks.cancel_scope.cancel()
        return witnesses, history

    witnesses, history = clock.run(main)
    assert len(history) > CHANGES / 3
    for witness in witnesses:
        witness.check(history)
        assert witness.segments[-1].end >= history[-1].version, "in the end all was told"
    assert max(len(witness.segments) for witness in witnesses) > 1, "nothing went wrong enough"
    next(segment for segment in witnesses[0].segments if segment.streamed).streamed.pop()
    with pytest.raises(AssertionError):  # one change less is noticed
        witnesses[0].check(history)


def test_watches_that_only_break_are_resumed_without_another_list() -> None:
    clock = VirtualClock()

    async def main() -> Witness:
        async with (
            EmbeddedCluster(controllers=False, tls=False, clock=clock) as cluster,
            cluster.client() as user,
            HttpTransport(load_config(str(cluster.kubeconfig)), clock=clock) as transport,
            anyio.create_task_group() as tasks,
        ):
            cache = SharedCache(transport, Resources(transport, clock), clock=clock)
            witness = Witness(cache.acquire(CONFIG_MAP, namespace="default"))
            tasks.start_soon(cache.run)
            await clock.sleep(5.0)
            for number in range(10):
                metadata = {"name": "a", "namespace": "default", "labels": {"n": str(number)}}
                await user.apply(Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
                await clock.sleep(1.0)
                cluster.server.cut_connections()
                await clock.sleep(3.0)
            tasks.cancel_scope.cancel()
        return witness

    witness = clock.run(main)
    assert len(witness.segments) == 1, "resumable"
    assert [told.delta.new is not None and told.delta.new.labels for told in witness.segments[0].streamed] == [
        {"n": str(number)} for number in range(10)
    ]
