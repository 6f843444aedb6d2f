"""A parent and its processes, which are small programs here: begun, answered for, begun again, ended."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import pytest

from kopylite.errors import UsageError
from kopylite.supervision import ProcessPlace, Supervisor, SupervisorSettings, restarts
from kopylite.supervision.process import end_of
from tests.operators import eventually

# Serves, and does what a file of its number says: "exit 3" at once, "sick", "deaf" to its parent.
PROGRAM = r"""
import os, socket, sys, threading
folder, place = sys.argv[1:]
number, of, descriptor = place.split("/")
open(f"{folder}/begun-{number}", "a").write("x")
word = ""
if os.path.exists(f"{folder}/{number}"):
    word = open(f"{folder}/{number}").read()
if word.startswith("exit"):
    sys.exit(int(word.split()[1]))
parent, server = socket.socket(fileno=int(descriptor)), socket.create_server(("127.0.0.1", 0))
TEXT = f"# HELP pid Its pid\n# TYPE pid gauge\npid {os.getpid()}\n"
def serve():
    while True:
        connection = server.accept()[0]
        path = connection.recv(4096).decode().split()[1]
        status, text = "200 OK", TEXT if path == "/metrics" else "ok"
        if word == "sick" and path.startswith("/readyz"):
            status, text = "500 Bad", "broken: no database" if path.count("/") > 1 else "[-]database failed: withheld\n"
        connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        connection.close()
threading.Thread(target=serve, daemon=True).start()
if word != "mute":
    parent.sendall(b"listens 127.0.0.1:%d\n" % server.getsockname()[1])
while data := parent.recv(100):
    if b"stop" in data and word != "deaf":
        break
os._exit(0)
"""


SETTINGS = SupervisorSettings(count=2, metrics_address="127.0.0.1:0", health_address="127.0.0.1:0", overtime=30)


def supervisor(folder: Path, count: int = 2, *, overtime: float = 30, hopeless: Sequence[int] = (3,)) -> Supervisor:
    program = folder / "program.py"
    program.write_text(PROGRAM)

    def command(place: ProcessPlace) -> Sequence[str]:
        return [sys.executable, "-I", "-S", str(program), str(folder), str(place)]

    return Supervisor(command, replace(SETTINGS, count=count, overtime=overtime, hopeless=frozenset(hopeless)))


def begun(folder: Path, number: int) -> int:
    """How often a process was begun."""
    path = folder / f"begun-{number}"
    return len(path.read_text()) if path.exists() else 0


@asynccontextmanager
async def running(kept: Supervisor) -> AsyncIterator[list[int]]:
    """Run it until the block ends; its code is in the list then."""
    codes: list[int] = []

    async def run() -> None:
        codes.append(await kept.run())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await eventually(lambda: kept.address or codes, "it listens")
        yield codes
        kept.stop()


def all_listen(kept: Supervisor) -> Callable[[], bool]:
    return lambda: all(process.address for process in kept.processes)


async def get(kept: Supervisor, path: str) -> tuple[int, str]:
    assert kept.address is not None
    async with await anyio.connect_tcp(*kept.address) as stream:
        await stream.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join([part async for part in stream]).decode()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


def pid_of(kept: Supervisor, number: int) -> int:
    process = kept.processes[number - 1]._process
    assert process is not None
    return process.pid


async def test_all_are_begun_answered_for_and_ended(tmp_path: Path) -> None:
    kept = supervisor(tmp_path, 3)
    async with running(kept) as codes:
        await eventually(all_listen(kept), "all listen")
        assert await get(kept, "/healthz") == (200, "ok")
        assert await get(kept, "/readyz") == (200, "ok")
        metrics = (await get(kept, "/metrics"))[1]
        assert metrics.count("# TYPE pid gauge") == 1
        for number in (1, 2, 3):
            assert f'pid{{process="{number}"}} {pid_of(kept, number)}\n' in metrics
            assert f'kopylite_child_up{{child="{number}",process="parent"}} 1.0\n' in metrics
        assert 'process_resident_memory_bytes{process="parent"}' in metrics
    assert codes == [0]


async def test_one_that_is_not_ready_is_named_and_asked_for_its_own_reason(tmp_path: Path) -> None:
    (tmp_path / "2").write_text("sick")
    kept = supervisor(tmp_path)
    async with running(kept):
        await eventually(all_listen(kept), "all listen")
        assert (await get(kept, "/healthz"))[0] == 200
        status, text = await get(kept, "/readyz")
        assert status == 500
        assert "[+]process-1 ok\n[-]process-2 failed" in text
        problem = "process-2 failed: database; see /readyz/process-2/NAME"
        assert await get(kept, "/readyz/process-2") == (500, problem)
        assert await get(kept, "/readyz/process-2/database") == (500, "broken: no database")
        assert (await get(kept, "/readyz/process-9"))[0] == 404


async def test_one_that_dies_is_begun_again_with_a_voice_and_a_number_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE", 0.2)
    kept = supervisor(tmp_path)
    async with running(kept):
        await eventually(all_listen(kept), "all listen")
        first, second = pid_of(kept, 1), pid_of(kept, 2)
        os.kill(second, signal.SIGKILL)
        await eventually(lambda: not kept.processes[1].address, "its end is noticed")
        assert (await get(kept, "/healthz"))[0] == 200, "the kubelet is not to end the others"
        await eventually(all_listen(kept), "it is back")
        assert pid_of(kept, 1) == first
        assert pid_of(kept, 2) != second
        assert 'kopylite_child_restarts_total{child="2",process="parent"} 1.0\n' in (await get(kept, "/metrics"))[1]
    assert "process 2 has ended by SIGKILL after" in caplog.text


async def test_one_that_cannot_be_begun_again_is_waited_for_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(restarts, "LONGEST_PAUSE", 0.01)
    kept = supervisor(tmp_path)
    async with running(kept):
        await eventually(all_listen(kept), "all listen")
        first = pid_of(kept, 1)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            os.kill(pid_of(kept, 2), signal.SIGKILL)
            await eventually(lambda: caplog.text.count("process 2 cannot be begun") > restarts.GIVE_UP, "it is tried")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await eventually(all_listen(kept), "it is back")
        assert pid_of(kept, 1) == first
    assert "tried again in 0 s: Too many open files" in caplog.text


async def test_where_none_runs_and_none_can_be_begun_the_parent_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Supervisor(lambda place: [str(tmp_path / "missing")], SETTINGS)
    assert await kept.run() == os.EX_OSERR
    assert "process 1 cannot be begun, and none runs: stopping: No such file or directory" in caplog.text


async def test_what_is_wrong_with_the_command_ends_the_first_and_nobody_else_is_begun(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("exit 3")
    async with running(supervisor(tmp_path)) as codes:
        await eventually(lambda: codes == [3], "it ends with the code of the first")
    assert (begun(tmp_path, 1), begun(tmp_path, 2)) == (1, 0)


async def test_one_that_never_works_for_long_ends_all_with_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(restarts, "FIRST_PAUSE", 0.01)
    (tmp_path / "2").write_text("exit 9")
    async with running(supervisor(tmp_path)) as codes:
        await eventually(lambda: codes == [9], "it ends with the code of the one that fails")
    assert (begun(tmp_path, 1), begun(tmp_path, 2)) == (1, restarts.GIVE_UP)
    assert caplog.text.count("stopping all") == 1


async def test_one_that_does_not_end_is_killed_in_the_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "2").write_text("deaf")
    kept = supervisor(tmp_path, overtime=0.3)
    async with running(kept) as codes:
        await eventually(all_listen(kept), "all listen")
    assert codes == [-signal.SIGKILL]
    assert "process 2 has not ended within 0 s, and is killed" in caplog.text


async def test_a_parent_that_is_cancelled_leaves_nobody_behind(tmp_path: Path) -> None:
    kept = supervisor(tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kept.run)
        await eventually(all_listen(kept), "all listen")
        pids = [pid_of(kept, 1), pid_of(kept, 2)]
        tasks.cancel_scope.cancel()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_stop_that_comes_before_the_first_listens_is_heard(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("mute")
    kept = supervisor(tmp_path)
    async with running(kept) as codes:
        kept.stop()
    assert codes == [0]
    assert begun(tmp_path, 2) == 0


async def test_an_address_that_is_taken_is_an_error_before_anything_is_begun(tmp_path: Path) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    settings = SupervisorSettings(count=2, metrics_address=f":{port}", health_address="off", overtime=1)
    async with listener:
        with pytest.raises(UsageError, match="the port is taken"):
            await Supervisor(lambda place: ["/nowhere"], settings).run()


def test_how_a_process_has_ended_is_told_in_words() -> None:
    assert [end_of(code) for code in (0, 3, -9, -63)] == [
        "with exit code 0", "with exit code 3", "by SIGKILL", "by signal 63",
    ]  # fmt: skip
