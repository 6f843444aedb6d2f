"""`kopylite run --processes N`: one command, one parent, N processes that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from tests.operators import OperatorProcess, children_of, eventually
from tests.tinyserver import TinyServer, tiny_server

OPERATOR = """
import anyio
from kopylite import App, Context, Kind, Request

Thing = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
app, led = App("shop"), App("led")

@app.reconciler(Thing, leader=False, timeout=None)
async def reconcile(ctx: Context, request: Request) -> None:
    ctx.log.info("begins")
    await anyio.sleep(600 if request.name == "endless" else 1)
    ctx.log.info("is done")

@led.reconciler(Thing)
async def work(ctx: Context, request: Request) -> None: ...
"""


@asynccontextmanager
async def several(server: TinyServer, folder: Path, *arguments: str) -> AsyncIterator[OperatorProcess]:
    """A `kopylite run --processes 2`; nothing of it is left in the end."""
    (folder / "shop.py").write_text(OPERATOR)
    log = folder / "log"
    command = [
        sys.executable, "-m", "kopylite", "run", *arguments, "--processes", "2", "--kubeconfig",
        str(server.write_kubeconfig(folder)), "--metrics-address", ":0", "--health-address", ":0",
    ]  # fmt: skip
    with log.open("w") as output:
        process = await anyio.open_process(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, start_new_session=True
        )
    running = OperatorProcess(process, log)
    children: list[int] = []
    try:
        yield running
        children = children_of(process.pid)
    except BaseException:
        sys.stderr.write(f"--- log\n{running.log}\n")
        raise
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()
            for child in children:
                await eventually(partial(has_ended, child), f"{child} has ended")


def has_ended(pid: int) -> bool:
    """Nobody may be there to hear of an orphan's end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


async def both_at_work(running: OperatorProcess) -> list[int]:
    """Wait until both processes run the reconcile: their process ids."""
    await eventually(lambda: all(f"begins  process={n}" in running.log for n in (1, 2)), "both work", limit=60)
    return children_of(running.process.pid)


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="asks /proc which children there are")


@needs_proc
async def test_a_signal_to_all_of_them_is_counted_once_and_every_run_ends_in_order(tmp_path: Path) -> None:
    """As systemd ends a service: each of its processes gets the signal, and the parent passes its own on."""
    async with tiny_server() as server, several(server, tmp_path, "shop.py") as running:
        server.put("one")
        children = await both_at_work(running)
        assert len(children) == 2
        await eventually(running.ready, "the parent says that both are ready")
        for pid in (running.process.pid, *children):
            os.kill(pid, signal.SIGTERM)
        with anyio.fail_after(40):
            assert await running.process.wait() == Exit.STOPPED
        assert running.log.count("is done") == 2
        assert all(map(has_ended, children))


@needs_proc
async def test_a_killed_parent_leaves_nobody_behind_and_each_ends_in_order(tmp_path: Path) -> None:
    async with tiny_server() as server, several(server, tmp_path, "shop.py") as running:
        server.put("one")
        children = await both_at_work(running)
        running.process.kill()
        for child in children:
            await eventually(partial(has_ended, child), f"{child} has ended", limit=40)
        assert running.log.count("the parent of this process is gone") == running.log.count("is done") == 2


@needs_proc
async def test_a_second_signal_ends_all_at_once(tmp_path: Path) -> None:
    async with tiny_server() as server, several(server, tmp_path, "shop.py") as running:
        server.put("endless")
        children = await both_at_work(running)
        os.killpg(running.process.pid, signal.SIGINT)  # as a terminal does
        await eventually(
            lambda: all(f"have up to 30 s to end  process={n}" in running.log for n in (1, 2)), "they stop"
        )
        os.killpg(running.process.pid, signal.SIGINT)
        with anyio.fail_after(20):
            assert await running.process.wait() == Exit.FORCED
        for child in children:
            await eventually(partial(has_ended, child), f"{child} has ended")


async def test_what_is_wrong_with_the_command_is_said_once(tmp_path: Path) -> None:
    async with tiny_server() as server, several(server, tmp_path, "shop.py:led") as running:
        with anyio.fail_after(60):
            assert await running.process.wait() == Exit.USAGE
        words = "--processes 2: each of them would do all the work of app 'led'. Split it, by --shards 4 or App(shards="
        assert running.log.count(words) == 1
        assert "process=2" not in running.log


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dev"], "`kopylite apiserver` in another terminal"),
        (["--record-rbac", "calls.json"], "name a folder that exists"),
        (["--metrics-address", "203.0.113.1:1"], "--metrics-address: cannot listen on 203.0.113.1:1"),
    ],
)
def test_what_does_not_go_with_several_processes_is_refused_with_the_way_out(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "shop.py", "--processes", "2", "--health-address", "off", *arguments]) == Exit.USAGE
    assert words in capsys.readouterr().err


def test_more_processes_than_can_share_the_work_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "shop.py", "--processes", "257"])
    assert "--processes: '257' is more than 256, the most that can share the work" in capsys.readouterr().err


def test_a_place_that_nobody_gave_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "shop.py", "--place", "first"])
    assert "only their parent gives one" in capsys.readouterr().err
    assert main(["run", "shop.py", "--place", "1/2/999"]) == Exit.USAGE
    assert "only the parent of several processes gives them a place" in capsys.readouterr().err
