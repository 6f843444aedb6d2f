"""`kopylite run` as a process: its exit codes, its last words, its signals."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import anyio.abc
import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.cli.run import LOADING, _loading, add_parser, on_loop_error, options_of
from tests.operators import eventually
from tests.tinyserver import TinyServer, tiny_server

OPERATOR = """
import asyncio, signal, time
import anyio
from kopylite import App, Context, Kind, Request, run_in_thread

Thing = Kind("example.com/v1", "Thing", plural="things", namespaced=True)
app = App("shop")
empty = App("empty")
number = 3

@app.reconciler(Thing, timeout=None)
async def reconcile(ctx: Context, request: Request) -> None:
    ctx.log.info("at work on it")
    if request.name == "slow":
        await asyncio.sleep(0.5)
        ctx.log.info("slow is done")
    if request.name.startswith("endless"):
        await anyio.sleep_forever()
    if request.name == "thread":
        await run_in_thread(time.sleep, 600)
    if request.name == "blocking":
        time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop_operator.py").write_text(OPERATOR)
    return tmp_path


@pytest.fixture
async def server() -> AsyncIterator[TinyServer]:
    async with tiny_server() as server:
        yield server


class Process:
    """A `kopylite run` in a folder; its output goes to a file."""

    def __init__(self, process: anyio.abc.Process, output: Path) -> None:
        self._process = process
        self._output = output

    @property
    def output(self) -> str:
        return self._output.read_text()

    async def says(self, text: str) -> None:
        await eventually(lambda: text in self.output, f"the output held {text!r}:\n{self.output}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ends(self, limit: float = 20) -> int:
        with anyio.fail_after(limit):
            return await self._process.wait()


Start = Callable[..., Awaitable[Process]]


@pytest.fixture
async def start(folder: Path) -> AsyncIterator[Start]:
    started: list[anyio.abc.Process] = []

    async def start(server: TinyServer | None, *arguments: str, **environment: str) -> Process:
        output = folder / f"output-{len(started)}"
        command = [sys.executable, "-m", "kopylite", "run", *arguments]
        variables = {"KOPYLITE_METRICS_ADDRESS": "off", "KOPYLITE_HEALTH_ADDRESS": "off"}
        if server is not None:
            variables["KUBECONFIG"] = str(server.write_kubeconfig(folder))
        with output.open("w") as file:
            process = await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=folder,
                env=os.environ | variables | environment,
            )  # fmt: skip
        started.append(process)
        return Process(process, output)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.aclose()


@pytest.mark.parametrize(
    ("target", "code", "words"),
    [
        ("no_such_module:app", Exit.MODULE, "there is no module 'no_such_module'"),
        ("shop_operator:nothing", Exit.ATTRIBUTE, "has no attribute 'nothing'; it has the App app, empty"),
        ("shop_operator:number", Exit.ATTRIBUTE, "is a int and not a kopylite.App"),
        ("shop_operator:empty", Exit.REGISTRATION, "shop_operator:empty: app 'empty' has no controllers"),
        ("shop_operator:empty --dev", Exit.REGISTRATION, "shop_operator:empty: app 'empty' has no controllers"),
        ("shop_operator.py:app --kubeconfig /nowhere/kubeconfig", Exit.KUBECONFIG, "/nowhere/kubeconfig"),
        ("shop_operator:app --context other", Exit.KUBECONFIG, "other"),
    ],
)
async def test_each_wrong_start_is_one_line_and_a_code_of_its_own(
    start: Start, server: TinyServer, target: str, code: Exit, words: str
) -> None:
    process = await start(server, *target.split())
    assert await process.ends() == code
    assert words in process.output
    assert process.output.count("\n") == 1


async def test_a_server_that_cannot_be_reached_is_tried_and_then_given_up(start: Start, folder: Path) -> None:
    async with tiny_server() as gone:
        gone.write_kubeconfig(folder)
    process = await start(gone, "shop_operator", "--connect-timeout", "1")
    assert await process.ends() == Exit.UNREACHABLE
    *tries, last = process.output.splitlines()
    assert tries
    assert all("trying again in" in line for line in tries)
    assert "gave up after" in last
    assert "Connection refused" in last


async def test_a_taken_port_is_told_with_the_way_out(start: Start, server: TinyServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = await start(server, "shop_operator", "--health-address", f":{port}")
        assert await process.ends() == Exit.USAGE
    assert f"--health-address: cannot listen on 127.0.0.1:{port} for /healthz and /readyz: " in process.output
    assert "the port is taken" in process.output
    assert process.output.count("\n") == 1


async def test_a_module_that_fails_shows_its_traceback(start: Start, server: TinyServer, folder: Path) -> None:
    (folder / "broken.py").write_text("raise ZeroDivisionError('boom')\n")
    process = await start(server, "broken")
    assert await process.ends() == Exit.MODULE
    assert 'broken.py", line 1' in process.output


async def test_the_line_of_a_signal_has_no_fields_of_the_reconcile_that_it_interrupts(
    start: Start, server: TinyServer, folder: Path
) -> None:
    # The reconcile is at work, in Python, whenever the signal comes.
    (folder / "busy.py").write_text(
        OPERATOR + "\n@app.reconciler(Thing, name='busy')\n"
        "async def busy(ctx, request):\n"
        "    ctx.log.info('busy')\n"
        "    while not signal.getsignal(signal.SIGTERM).__self__.asked:\n"
        "        pass\n"
    )
    server.put("a")
    process = await start(server, "busy")
    await process.says(": busy")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.STOPPED
    [line] = [line for line in process.output.splitlines() if "SIGTERM: stopping" in line]
    assert "reconcile_id" not in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_signal_lets_running_reconciles_end_and_exits_with_zero(
    start: Start, server: TinyServer, number: signal.Signals, loop: str
) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    server.put("slow")
    process = await start(server, "shop_operator", "--loop", loop)
    await process.says("at work on it")
    process.signal(number)
    assert await process.ends() == Exit.STOPPED
    assert "slow is done" in process.output
    assert process.output.splitlines()[-1].endswith("stopped")


async def test_reconciles_that_outlast_the_grace_period_have_an_exit_code(start: Start, server: TinyServer) -> None:
    server.put("endless")
    process = await start(server, "shop_operator", KOPYLITE_GRACE_PERIOD="0.2s")
    await process.says("at work on it")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.UNFINISHED


async def test_a_thread_keeps_no_process_beyond_the_grace_period(start: Start, server: TinyServer) -> None:
    server.put("thread")
    process = await start(server, "shop_operator", "--grace-period", "0.2s")
    await process.says("at work on it")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.UNFINISHED
    assert "sleep runs on in a thread until the process ends" in process.output
    assert "has not ended within" not in process.output  # it ended by itself


async def test_the_end_says_how_many_keys_were_not_looked_at(start: Start, server: TinyServer) -> None:
    for name in ("endless", "endless-2", "endless-3"):
        server.put(name)
    process = await start(server, "shop_operator", "--workers", "1", "--grace-period", "0.2s")
    await process.says("at work on it")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.UNFINISHED
    assert "2 keys were left without a run: thing 2; the next start looks at all" in process.output


async def test_a_signal_while_a_cache_is_waited_for_ends_the_process_at_once(start: Start, server: TinyServer) -> None:
    server.served.remove("things")
    process = await start(server, "shop_operator")
    await process.says("is the CRD installed?")
    process.signal(signal.SIGTERM)
    assert await process.ends(5) == Exit.STOPPED


async def test_a_part_that_fails_ends_the_process_with_a_traceback_and_a_code(
    start: Start, server: TinyServer, folder: Path
) -> None:
    (folder / "defect.py").write_text(
        OPERATOR + "from kopylite.diagnostics import WaitingReport\n"
        "def look(self, now):\n    raise ZeroDivisionError('a defect')\n"
        "WaitingReport.look = look\n"
    )
    process = await start(server, "defect")
    assert await process.ends() == Exit.INTERNAL
    assert "a part that must not end has failed" in process.output
    assert "ZeroDivisionError: a defect" in process.output


@pytest.mark.parametrize("name", ["endless", "blocking"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_a_second_signal_ends_the_process_at_once_even_if_its_loop_is_blocked(
    start: Start, server: TinyServer, name: str, loop: str
) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    server.put(name)
    process = await start(server, "shop_operator", "--loop", loop)
    await process.says("at work on it")
    process.signal(signal.SIGTERM)
    if name == "endless":
        await process.says("another signal ends the process")
    else:
        await anyio.sleep(0.2)  # two signals that come at the same time may be delivered as one
    process.signal(signal.SIGTERM)
    assert await process.ends(5) == Exit.FORCED


async def test_json_lines_carry_the_fields_of_the_reconcile(start: Start, server: TinyServer) -> None:
    server.put("a")
    process = await start(server, "shop_operator", KOPYLITE_LOG_FORMAT="json")
    await process.says("at work on it")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.STOPPED
    entries = [json.loads(line) for line in process.output.splitlines()]
    [entry] = [entry for entry in entries if entry["msg"] == "at work on it"]
    assert (entry["logger"], entry["level"]) == ("shop", "info")
    assert (entry["controller"], entry["namespace"], entry["name"]) == ("thing", "default", "a")
    assert len(entry["reconcile_id"]) == 36
    assert entry["reasons"] == ["Thing created"]


def test_help_names_every_variable_and_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = capsys.readouterr().out
    for word in (
        "NAMESPACE", "KUBECONFIG", "CONTEXT", "CONNECT_TIMEOUT", "WORKERS", "GRACE_PERIOD", "LOOP",
        "METRICS_ADDRESS", "HEALTH_ADDRESS", "LOG_FORMAT", "LOG_LEVEL",
    ):  # fmt: skip
        assert f"KOPYLITE_{word}" in text
    assert Exit.table() in text


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["crd", "--help"], ["apiserver", "--help"]])
def test_help_proposes_no_file_that_only_the_repository_has(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert "samples" not in capsys.readouterr().out


async def test_several_apps_run_side_by_side_each_under_its_own_name(
    start: Start, server: TinyServer, folder: Path
) -> None:
    (folder / "billing.py").write_text(OPERATOR.replace('"shop"', '"billing"').replace("timeout=None", 'name="bill"'))
    server.put("a")
    process = await start(server, "shop_operator", "billing.py", KOPYLITE_LOG_FORMAT="json", KOPYLITE_WORKRES="3")
    await eventually(lambda: process.output.count("at work on it") == 2, "both had it")
    process.signal(signal.SIGTERM)
    assert await process.ends() == Exit.STOPPED
    entries = [json.loads(line) for line in process.output.splitlines()]
    assert {(entry["logger"], entry["controller"]) for entry in entries if entry["msg"] == "at work on it"} == {
        ("shop", "thing"),
        ("billing", "bill"),
    }
    assert "did you mean KOPYLITE_WORKERS?" in process.output


async def test_two_apps_with_a_controller_of_one_name_are_refused(
    start: Start, server: TinyServer, folder: Path
) -> None:
    (folder / "billing.py").write_text(OPERATOR.replace('"shop"', '"billing"'))
    process = await start(server, "shop_operator", "billing")
    assert await process.ends() == Exit.REGISTRATION
    assert "the apps 'shop' and 'billing' both have a controller 'thing'" in process.output


async def test_a_wrong_registration_is_one_line_with_its_place(start: Start, server: TinyServer, folder: Path) -> None:
    (folder / "wrong.py").write_text(OPERATOR.replace("timeout=None", 'workers="4"'))
    process = await start(server, "wrong")
    assert await process.ends() == Exit.REGISTRATION
    assert "wrong.py:11: controller 'thing': workers" in process.output
    assert process.output.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        [], ["run"], ["run", "x", "--workers", "0"], ["run", "x", "--metrics-address", "8080"], ["fly"],
        ["run", "x", "--work", "2"], ["apiserver", "--kubernetes", "1.30"],
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == Exit.USAGE
    assert "error:" in capsys.readouterr().err


def test_exit_codes_are_told_apart() -> None:
    assert len({code.value for code in Exit}) == len(Exit) == len(Exit.table().splitlines())


async def test_a_connection_closed_in_its_handshake_is_no_error_and_everything_else_of_the_loop_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.get_running_loop()
    closed = RuntimeError("unable to perform operation on <TCPTransport closed=True>; the handler is closed")
    on_loop_error(loop, {"message": "Fatal error on SSL protocol", "exception": closed})
    assert caplog.messages == []
    on_loop_error(loop, {"message": "Task exception was never retrieved", "exception": closed})
    on_loop_error(loop, {"message": "Fatal error on SSL protocol", "exception": ValueError("a defect")})
    assert len(caplog.messages) == 2


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        ([], "all namespaces"),
        (["-n", "team-*", "-n", "shop,team-*"], "namespaces shop, team-*"),
        (["--namespaces-labelled", "tier in (a, b)"], "the namespaces labelled tier in (a, b)"),
        (["--namespaces-labelled", "a=b", "-n", "c", "-A"], "all namespaces"),
    ],
)
def test_the_scope_is_that_of_the_command_line(arguments: list[str], scope: str) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    assert str(options_of(parser.parse_args(["run", "x.py", *arguments])).scope) == scope


def test_garbage_is_looked_for_seldom_while_modules_are_loaded_and_what_a_module_wants_stays() -> None:
    before = gc.get_threshold()
    try:
        with _loading():
            assert gc.get_threshold() == (LOADING, *before[1:])
        assert gc.get_threshold() == before
        with _loading():
            gc.set_threshold(5_000, 20, 20)
        assert gc.get_threshold() == (5_000, 20, 20)
        gc.set_threshold(0)
        with _loading():
            assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*before)
