"""Several operator processes on one API server, and the history that tells whether two of them worked at once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import Signals
from typing import Any

import anyio
import anyio.abc

from kopylite.client import Client, LineSplitter, ListWatch, Selection, decode_event
from kopylite.devcluster.cluster import Cluster
from kopylite.leaderelection import LEASE, Lease
from kopylite.objects import Kind, Unstructured
from tests.elections.proxy import TcpProxy, tcp_proxy
from tests.elections.writer import CONFIG_MAP
from tests.operators import OperatorProcess

ROOT = Path(__file__).parent.parent.parent
# Short enough for a test, long enough for a loaded machine.
TIMES = ("--lease-duration", "6s", "--renew-deadline", "4s", "--retry-period", "1s")
LEASE_SECONDS = 6.0


@dataclass
class Replica:
    """One process, and its network."""

    name: str
    running: OperatorProcess
    proxy: TcpProxy

    def signal(self, number: Signals) -> None:
        self.running.process.send_signal(number)

    async def end(self, number: Signals, limit: float = 30) -> int:
        self.signal(number)
        with anyio.fail_after(limit):
            return await self.running.process.wait()

    async def leads(self) -> bool:
        return await self.running.sum_of("leader_election_master_status") == 1


@dataclass
class History:
    """Every state of the ConfigMap and of the Lease, in the order of the server's versions."""

    writers: list[tuple[int, str]] = field(default_factory=list)
    leases: list[tuple[int, Lease | None]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def writer(self) -> str:
        return self.writers[-1][1] if self.writers else ""

    def has(self, writes: int) -> bool:
        return len(self.writers) >= writes

    def terms(self) -> list[str]:
        """Who wrote, without repeats. Of n processes that each lead once it has n entries."""
        return [name for i, (_, name) in enumerate(self.writers) if i == 0 or self.writers[i - 1][1] != name]

    async def written_by(self, *names: str, other_than: str = "", limit: float = 40) -> str:
        """Wait until one of these has written, or anybody but one; returns who."""
        with anyio.fail_after(limit):
            while not (self.writer and (self.writer in names or not names) and self.writer != other_than):
                self.changed.clear()
                await self.changed.wait()
        return self.writer

    def note(self, word: str, body: bytes, kind: Any) -> None:
        obj = json.loads(body)
        version = int(obj["metadata"]["resourceVersion"])
        if kind == LEASE:
            self.leases.append((version, None if word == "DELETED" else Lease.of(body)))
        elif writer := (obj.get("data") or {}).get("writer"):
            self.writers.append((version, writer))
        self.changed.set()


class Replicas:
    """Starts processes of tests/elections/writer.py."""

    def __init__(self, cluster: Cluster, client: Client, namespace: str, folder: Path) -> None:
        self.cluster, self.client, self.namespace, self.folder = cluster, client, namespace, folder
        self.history = History()

    async def prepare(self, *, lease: bool = True) -> None:
        """The object that is written, and the Lease as manifests would bring it."""
        for name in ("job", "everywhere"):
            metadata = {"name": name, "namespace": self.namespace, "labels": {"elections": name}}
            await self.client.create(Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata))
        if lease:
            metadata = {"name": "writer", "namespace": self.namespace}
            await self.client.create(Unstructured(apiVersion=LEASE.api_version, kind="Lease", metadata=metadata))

    async def follow(self, kind: Any, name: str) -> None:
        """Note every state of an object, until cancelled."""
        api = self.client.live.api
        resource = await api.resources.find(kind)
        watch = ListWatch(api.transport, resource, self.namespace, Selection(fields=f"metadata.name={name}"))
        lines = LineSplitter()
        async with watch.watch(resource_version="") as stream:
            async for chunk in stream.chunks():
                for word, body in map(decode_event, lines.feed(chunk)):
                    if word in ("ADDED", "MODIFIED", "DELETED"):
                        self.history.note(word, body, kind)

    @asynccontextmanager
    async def replica(
        self,
        name: str,
        *arguments: str,
        target: str = "tests/elections/writer.py",
        times: tuple[str, ...] = TIMES,
        **environment: str,
    ) -> AsyncIterator[Replica]:
        """A process of its own, with a network of its own."""
        kubeconfig = Path(self.cluster.kubeconfig).read_text()
        port = int(re.findall(r'server"?: *"?https?://[^\s"]*:(\d+)', kubeconfig)[0])
        async with tcp_proxy(port) as proxy:
            text = kubeconfig.replace(f":{port}", f":{proxy.port}")
            through = self.folder / f"kubeconfig-{name}"
            through.write_text(text)
            log = self.folder / f"{name}.log"
            command = [
                sys.executable, "-m", "tests.elections.skewed", "run", target, "--kubeconfig", str(through),
                "-n", self.namespace, "--lease-namespace", self.namespace, *times,
                "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", *arguments,
            ]  # fmt: skip
            with log.open("w") as output:
                process = await anyio.open_process(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=ROOT,
                    env=os.environ | {"WRITER": name, "PYTHONUNBUFFERED": "1"} | environment,
                )  # fmt: skip
            try:
                yield Replica(name, OperatorProcess(process, log), proxy)
            except BaseException:
                sys.stderr.write(f"--- log of {name}\n{log.read_text()[-5000:]}\n")
                raise
            finally:
                with anyio.CancelScope(shield=True):
                    if process.returncode is None:
                        process.kill()
                        await process.wait()
                    await process.aclose()


@asynccontextmanager
async def playing(cluster: Cluster, folder: Path, *, lease: bool = True) -> AsyncIterator[Replicas]:
    """A namespace of its own with what the replicas work on, and its history."""
    async with cluster.client() as client:
        name = Unstructured(apiVersion="v1", kind="Namespace", metadata={"generateName": "elections-"})
        namespace = (await client.create(name)).name
        replicas = Replicas(cluster, client, namespace, folder)
        await replicas.prepare(lease=lease)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(replicas.follow, CONFIG_MAP, "job")
            tasks.start_soon(replicas.follow, LEASE, "writer")
            yield replicas
            tasks.cancel_scope.cancel()
        await client.delete(Kind("v1", "Namespace"), namespace)
