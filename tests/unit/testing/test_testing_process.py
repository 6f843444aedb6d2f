"""Servers of a test control plane end with whoever started them."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from kopylite.testing.process import ServerFailed, ServerProcess
from tests.operators import eventually

SLEEP = ["/bin/sleep", "1000"]

CRASHING_TEST = """
import os, signal, sys
from pathlib import Path
import anyio
from kopylite.testing.process import ServerProcess

async def main():
    server = ServerProcess("sleep", ["/bin/sleep", "1000"], Path(sys.argv[1]))
    await server.start()
    print(server.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


def lives(pid: int) -> bool:
    try:
        return "(sleep)" in Path(f"/proc/{pid}/stat").read_text() and " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at processes through /proc")


async def test_a_server_runs_until_it_is_stopped(tmp_path: Path) -> None:
    server = ServerProcess("sleep", SLEEP, tmp_path / "log")
    await server.start()
    assert server.running
    assert lives(server.pid)
    await server.stop()
    assert not server.running
    assert not lives(server.pid)
    await server.stop()


async def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    stubborn = [
        sys.executable,
        "-c",
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(1); time.sleep(99)",
    ]
    server = ServerProcess("stubborn", stubborn, tmp_path / "log", stop_timeout=0.2)
    await server.start()
    with anyio.fail_after(20):
        await server.stop()
    assert not Path(f"/proc/{server.pid}").exists()


async def test_a_test_process_that_is_killed_leaves_no_server_behind(tmp_path: Path) -> None:
    crashed = await anyio.run_process([sys.executable, "-c", CRASHING_TEST, str(tmp_path / "log")], check=False)
    assert crashed.returncode == -signal.SIGKILL
    pid = int(crashed.stdout)
    await eventually(lambda: not lives(pid), "the server ended")


async def test_a_supervisor_that_is_ended_takes_its_server_along(tmp_path: Path) -> None:
    server = ServerProcess("sleep", SLEEP, tmp_path / "log")
    await server.start()
    supervisor = int(Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(supervisor, signal.SIGTERM)
    await eventually(lambda: not lives(server.pid), "the server ended")
    await server.stop()


async def test_a_server_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = ServerProcess("etcd", ["/bin/sh", "-c", "echo no space left >&2; exit 3"], tmp_path / "log")
    await server.start()
    with pytest.raises(ServerFailed, match=r"etcd ended by itself; its last lines[\s\S]*no space left"):
        await server.wait_healthy(1, "/health", context=None, timeout=20)
    await server.stop()


async def test_a_binary_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    server = ServerProcess("etcd", [str(tmp_path / "none")], tmp_path / "log")
    with pytest.raises(ServerFailed, match="etcd could not be started"):
        await server.start()
    await server.stop()
