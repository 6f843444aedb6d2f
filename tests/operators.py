"""An operator as a user runs it: a process of its own, watched through its log and its HTTP endpoints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


async def eventually(condition: Callable[[], object], what: str, limit: float = 20) -> None:
    """Poll a condition, sync or async, with a limit; the failure says what never came true."""
    with anyio.move_on_after(limit):
        while True:
            found = condition()
            if hasattr(found, "__await__"):
                found = await found
            if found:
                return
            await anyio.sleep(0.05)
    raise AssertionError(f"within {limit:g} s it never happened that {what}")


def children_of(pid: int) -> list[int]:
    """The process ids of those that a process has begun and that it has not buried yet."""
    try:
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except OSError:
        return []


class OperatorProcess:
    """A running `python -m kopylite run`."""

    def __init__(self, process: anyio.abc.Process, log: Path) -> None:
        self.process = process
        self.log_file = log

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    @property
    def address(self) -> str:
        """host:port of the endpoints, "" until it is logged."""
        found = re.search(r"http://(127\.0\.0\.1:\d+)", self.log)
        return found[1] if found else ""

    async def get(self, path: str) -> tuple[int, str]:
        def fetch() -> tuple[int, str]:
            try:
                with urllib.request.urlopen(f"http://{self.address}{path}", timeout=5) as reply:
                    return reply.status, reply.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()
            except OSError:
                return 0, ""

        return await anyio.to_thread.run_sync(fetch)

    async def ready(self) -> bool:
        return bool(self.address) and (await self.get("/readyz"))[0] == 200

    async def sum_of(self, metric: str, **labels: str) -> float:
        """The sum of a metric over the series whose labels match (full match of regular expressions)."""
        total = 0.0
        for name, text, value in re.findall(r"^(\w+)(?:\{(.*?)\})? (\S+)$", (await self.get("/metrics"))[1], re.M):
            have = dict(re.findall(r'(\w+)="(.*?)"', text))
            if name == metric and all(re.fullmatch(pattern, have.get(key, "")) for key, pattern in labels.items()):
                total += float(value)
        return total

    async def writes(self) -> float:
        return await self.sum_of("rest_client_requests_total", method="|".join(WRITES))

    async def runs(self) -> float:
        return await self.sum_of("controller_runtime_reconcile_total")

    async def idle(self) -> bool:
        """Nothing is queued, waiting or running."""
        depth = await self.sum_of("workqueue_depth")
        busy = await self.sum_of("controller_runtime_active_workers")
        return depth == 0 and busy == 0

    async def stop(self, limit: float = 40) -> int:
        """SIGTERM; returns the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        with anyio.fail_after(limit):
            return await self.process.wait()


@asynccontextmanager
async def operator(
    target: str, kubeconfig: Path, folder: Path, *arguments: str, wait: bool = True, python: Sequence[str] = ()
) -> AsyncIterator[OperatorProcess]:
    """Run an operator until the block ends; with `wait`, entered when it is ready."""
    log = folder / f"{target.replace(':', '-').replace('/', '-')}-{len(list(folder.iterdir()))}.log"
    command = [
        *(python or [sys.executable]), "-m", "kopylite", "run", target, "--kubeconfig", str(kubeconfig),
        "--metrics-address", "127.0.0.1:0", "--health-address", "127.0.0.1:0", *arguments,
    ]  # fmt: skip
    with log.open("w") as output:
        process = await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=Path(__file__).parent.parent,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    running = OperatorProcess(process, log)
    try:
        if wait:
            await eventually(lambda: _ready_or_ended(running), f"{target} became ready; see its log:\n{log}", limit=40)
        yield running
    except BaseException:
        sys.stderr.write(f"--- log of {target}\n{running.log[-6000:]}\n")
        raise
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()


async def _ready_or_ended(running: OperatorProcess) -> bool:
    if running.process.returncode is not None:
        raise AssertionError(f"the operator ended with {running.process.returncode}:\n{running.log[-4000:]}")
    return await running.ready()
