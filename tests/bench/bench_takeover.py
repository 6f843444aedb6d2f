"""How long nobody works when a leader ends: killed, or asked to; of kopylite and of another operator, in one run.

    python -m tests.bench.bench_takeover --peer 'controller-runtime=COMMAND'

The peer is started with KUBECONFIG, NAMESPACE, LEASE and WRITER; it elects by the Lease with Kubernetes' own times
(15 s, 10 s, 2 s), and its leader writes data.writer of the ConfigMap `job` all the time. With RELEASE set it gives the
Lease back when it is stopped. Needs KUBEBUILDER_ASSETS.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc

from kopylite.testing import EnvTest
from tests.elections.cluster import ROOT, Replicas, playing

OURS = [
    sys.executable, "-m", "kopylite", "run", "tests/elections/writer.py", "--leader-elect", "--log-level", "error",
    "--metrics-address", "off", "--health-address", "off",
]  # fmt: skip


@asynccontextmanager
async def process(command: list[str], replicas: Replicas, name: str, release: bool) -> AsyncIterator[anyio.abc.Process]:
    environment = os.environ | {
        "KUBECONFIG": str(replicas.cluster.kubeconfig), "NAMESPACE": replicas.namespace, "LEASE": "writer",
        "WRITER": name, "RELEASE": "yes" if release else "",
    }  # fmt: skip
    if command is OURS:
        command = [*OURS, "-n", replicas.namespace, "--lease-namespace", replicas.namespace]
    running = await anyio.open_process(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=sys.stderr
    )
    try:
        yield running
    finally:
        with anyio.CancelScope(shield=True):
            if running.returncode is None:
                running.kill()
            await running.aclose()


async def until_idle(pid: int) -> None:
    """Wait until a process has started, and then used next to no CPU for 3 s: it stands by."""
    used = 0.0
    while True:
        await anyio.sleep(3)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        before, used = used, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        if 0.03 < used < before + 0.15:
            return


async def take_over(cluster: EnvTest, command: list[str], number: signal.Signals, *, release: bool) -> float:
    """Seconds from the signal to the first write of the other one."""
    with tempfile.TemporaryDirectory() as folder:
        async with (
            playing(cluster, Path(folder), lease=command is OURS) as replicas,
            process(command, replicas, "a", release) as a,
        ):
            await replicas.history.written_by("a", limit=60)
            async with process(command, replicas, "b", release) as b:
                await until_idle(b.pid)
                a.send_signal(number)
                began = time.monotonic()
                await replicas.history.written_by("b", limit=60)
                return time.monotonic() - began


async def main(peer: str, rounds: int) -> None:
    name, _, command = peer.partition("=")
    runs = [("kopylite", OURS, True)]
    if command:
        runs += [(name, shlex.split(command), False), (f"{name}, release on cancel", shlex.split(command), True)]
    async with EnvTest() as cluster:
        for what, number in (("SIGTERM", signal.SIGTERM), ("SIGKILL", signal.SIGKILL)):
            for label, argv, release in runs:
                if number == signal.SIGKILL and label.endswith("cancel"):
                    continue
                times = [await take_over(cluster, argv, number, release=release) for _ in range(rounds)]
                shown = f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})"
                print(f"| {what} | {label} | {shown} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", metavar="NAME=COMMAND")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    anyio.run(main, arguments.peer, arguments.rounds)
