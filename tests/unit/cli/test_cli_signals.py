"""Signals at every moment of a process's life: the documented exit code, no traceback, nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit
from kopylite.cli.signals import StopSignals
from tests.operators import eventually

OPERATOR = """
from pydantic import BaseModel
from kopylite import App, Context, CustomResource, Request

class Spec(BaseModel):
    size: int = 0

class Thing(CustomResource[Spec, None], group="example.com", version="v1"):
    pass

app = App("shop")

@app.reconciler(Thing)
async def reconcile(ctx: Context, request: Request) -> None:
    pass
"""


class Started:
    """A command in a folder of its own, with a folder of its own for temporary files."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder, self.temporary, self.output = folder / "work", folder / "tmp", folder / "output"
        self.folder.mkdir(parents=True)
        self.temporary.mkdir()
        (self.folder / "shop_operator.py").write_text(OPERATOR)
        variables = {
            "KOPYLITE_METRICS_ADDRESS": "off",
            "KOPYLITE_HEALTH_ADDRESS": "off",
            "TMPDIR": str(self.temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        with self.output.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kopylite", *arguments], stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                cwd=self.folder, env=os.environ | variables,
            )  # fmt: skip

    async def has_handlers(self) -> None:
        """Until then Python itself starts, and nobody can do anything about a signal."""
        status = Path(f"/proc/{self.process.pid}/status")

        def caught() -> bool:
            [line] = [line for line in status.read_text().splitlines() if line.startswith("SigCgt")]
            return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

        await eventually(caught, "the handlers were there")

    async def ends(self) -> int:
        return await anyio.to_thread.run_sync(lambda: self.process.wait(30))

    @property
    def left_behind(self) -> list[str]:
        return [*os.listdir(self.temporary), *({*os.listdir(self.folder)} - {"shop_operator.py"})]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "arguments", [("run", "shop_operator", "--dev"), ("run", "shop_operator", "--kubeconfig", "x")]
)
async def test_a_signal_at_any_moment_of_the_start_ends_it_as_documented(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A spread of moments from the first import to a running operator, three processes at a time."""
    dev = "--dev" in arguments
    moments = [number * 0.12 for number in range(16 if dev else 6)]

    async def strike(number: int, moment: float) -> None:
        started = Started(tmp_path / str(number), *arguments)
        try:
            await started.has_handlers()
            await anyio.sleep(moment)
            started.process.send_signal((signal.SIGTERM, signal.SIGINT)[number % 2])
            code, output = await started.ends(), started.output.read_text()
        finally:
            if started.process.poll() is None:
                started.process.kill()
        assert "Traceback" not in output, f"after {moment} s"
        assert "Exception" not in output, f"after {moment} s"
        assert started.left_behind == [], f"after {moment} s"
        # Without a cluster, a late signal finds a process that has ended with its own reason.
        assert code == Exit.STOPPED or (not dev and code == Exit.KUBECONFIG), f"after {moment} s:\n{output}"

    limit = anyio.CapacityLimiter(3)

    async def strike_in_turn(number: int, moment: float) -> None:
        async with limit:
            await strike(number, moment)

    async with anyio.create_task_group() as tasks:
        for number, moment in enumerate(moments):
            tasks.start_soon(strike_in_turn, number, moment)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("command", "code"), [("run", Exit.STOPPED), ("crd", 128 + signal.SIGTERM)])
async def test_a_signal_while_the_users_module_is_imported_ends_the_process_at_once(
    tmp_path: Path, command: str, code: int
) -> None:
    started = Started(tmp_path, command, "slow_import")
    (started.folder / "slow_import.py").write_text(
        "import time\nprint('importing', flush=True)\ntry:\n    time.sleep(600)\nexcept BaseException:\n    pass\n"
    )
    await eventually(lambda: "importing" in started.output.read_text(), "it was imported")
    started.process.send_signal(signal.SIGTERM)
    assert await started.ends() == code
    assert started.output.read_text() == "importing\n"


STUBBORN = """
import asyncio, threading, time
from kopylite import App, Kind, watch
from kopylite.cli import run
run.OVERTIME = 0.5
threading.Thread(target=time.sleep, args=(600,), name="left-alone").start()
app, CONFIG_MAP = App("stubborn"), Kind("v1", "ConfigMap")

async def for_ever():
    print("stuck", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

async def maps(obj, ctx):
    {maps}

@app.reconciler(CONFIG_MAP, watches=[watch(Kind("v1", "Namespace"), map=maps)])
async def reconcile(ctx, request):
    {reconcile}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("maps", "reconcile", "code", "words"),
    [
        ("await for_ever()", "pass", Exit.UNFINISHED, "map function maps of Namespace"),
        ("return []", "await for_ever()", Exit.UNFINISHED, "reconcile of "),
        ("return []", "print('stuck', flush=True)", Exit.STOPPED, "left-alone"),
    ],
)
async def test_what_catches_its_cancellation_or_never_ends_keeps_no_process(
    tmp_path: Path, maps: str, reconcile: str, code: int, words: str
) -> None:
    started = Started(tmp_path, "run", "stubborn", "--dev", "--grace-period", "0.1")
    (started.folder / "stubborn.py").write_text(STUBBORN.format(maps=maps, reconcile=reconcile))
    await eventually(lambda: "stuck" in started.output.read_text(), "it runs")
    started.process.send_signal(signal.SIGTERM)
    assert await started.ends() == code
    assert words in started.output.read_text()


async def test_inside_of_a_running_loop_the_command_line_says_what_to_do_instead(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main(["run", "shop_operator"]) == Exit.USAGE
    assert "await Manager(app, load_config()).run()" in capsys.readouterr().err
    assert asyncio.get_running_loop().is_running()
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_the_command_line_says_what_to_do_instead(capsys: pytest.CaptureFixture[str]) -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["run", "shop_operator"])))
    thread.start()
    thread.join()
    assert codes == [Exit.USAGE]
    assert "only the main thread can" in capsys.readouterr().err


def test_the_handlers_of_a_program_that_calls_main_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    assert main(["--version"]) == Exit.STOPPED
    assert capsys.readouterr().out.startswith("kopylite ")
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


@pytest.mark.parametrize("first", ["asked", "signalled"])
def test_what_a_parent_passes_on_and_the_same_signal_from_elsewhere_count_as_one(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where systemd signals a parent and its processes, in either order: only what comes after that is a second."""
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with StopSignals() as signals:
        signals.nothing_to_end = False

        def from_elsewhere() -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        for step in (signals.ask, from_elsewhere) if first == "asked" else (from_elsewhere, signals.ask):
            step()
        assert (signals.asked, ended) == ("SIGTERM", [])
        from_elsewhere()
    assert ended == [Exit.FORCED]
