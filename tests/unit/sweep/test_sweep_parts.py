"""The small parts below a sweep: pool, source, frames, clocks, transport, trace."""

from __future__ import annotations

import datetime
import os
import sys
import time
from pathlib import Path

import pytest

from kopylite import App, Client, Unstructured
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.cli.target import load_app
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import NotFound, StreamBroken, UsageError
from kopylite.sweep.clocks import patch_clocks
from kopylite.sweep.frames import is_users, users_frames
from kopylite.sweep.pool import Died, Pool
from kopylite.sweep.report import Report
from kopylite.sweep.source import folder_of, forget, source_of
from kopylite.sweep.trace import Point, TraceEntry
from kopylite.sweep.transport import Link, MemoryTransport
from kopylite.testing import VirtualClock
from tests.unit.sweep import operators
from tests.unit.sweep.operators import ConfigMap


def double(number: int) -> int:
    if number == 3:
        raise ValueError(number)
    if number == 4:
        os._exit(7)
    return 2 * number


def test_work_is_done_in_forks_and_what_they_die_of_is_told() -> None:
    results = dict(Pool(double, 2).run([1, 2, 3, 4]))
    assert (results[1], results[2]) == (2, 4)
    assert isinstance(results[3], Died)
    assert "ValueError: 3" in results[3].why
    assert results[4] == Died("its process ended with exit code 7, as by os._exit")


def test_nothing_more_is_begun_when_it_is_told_to_stop() -> None:
    assert not [*Pool(double, 1).run([1, 2], lambda: False)]


def test_a_clock_is_that_of_the_whole_fork() -> None:
    def ask(seed: int) -> tuple[str, str, float]:
        clock = VirtualClock()
        patch_clocks(clock, seed)
        time.sleep(3600)
        aware = datetime.datetime.now(datetime.UTC)
        assert isinstance(clock.now(), datetime.datetime)
        return str(aware), str(datetime.datetime.utcnow()), min(time.monotonic(), SYSTEM_CLOCK.monotonic())

    [(_, found)] = Pool(ask, 1).run([0])
    assert found == ("2026-01-01 01:00:00+00:00", "2026-01-01 01:00:00", 3600.0)


def test_an_app_is_made_anew_from_its_module() -> None:
    source = source_of(operators.twin)
    assert source.name == "tests.unit.sweep.operators:twin"
    assert source.app is operators.twin

    def load(_: int) -> bool:
        return source.load() is not operators.twin and sys.modules["tests.unit.sweep.operators"] is not operators

    assert [*Pool(load, 1).run([0])] == [(0, True)]
    assert sys.modules["tests.unit.sweep.operators"] is operators


def test_an_app_of_a_function_is_made_by_it_and_one_of_nobody_is_refused() -> None:
    assert source_of(lambda: App("made")).load().name == "made"
    with pytest.raises(UsageError, match="no module has the App 'nobodys' at its top"):
        source_of(App("nobodys"))


@pytest.mark.parametrize("target", ["played.py", "played", "played:app"])
def test_what_stands_in_for_the_outside_is_there_again_in_each_life(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "called.py").write_text("outside = 'real'\n")
    (tmp_path / "works.py").write_text(
        "from kopylite import App, Kind\napp = App('works')\n\n\n"
        "@app.reconciler(Kind('v1', 'ConfigMap'))\nasync def reconcile(ctx, request): ...\n"
    )
    (tmp_path / "played.py").write_text("import called\nfrom works import app\ncalled.outside = 'played'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    try:
        source = source_of(load_app(target), target)
        assert source.load().name == "works"
        assert sys.modules["called"].outside == "played"
    finally:
        for name in set(sys.modules) - before:
            del sys.modules[name]


def test_a_package_is_forgotten_as_a_whole_and_kopylite_is_not(tmp_path: Path) -> None:
    (tmp_path / "top" / "inner").mkdir(parents=True)
    for folder in (tmp_path / "top", tmp_path / "top" / "inner"):
        (folder / "__init__.py").touch()
    assert folder_of(tmp_path / "top" / "inner" / "operator.py") == tmp_path / "top"
    assert folder_of(tmp_path / "operator.py") == tmp_path
    before = set(sys.modules)
    forget(tmp_path)
    assert set(sys.modules) == before
    assert not is_users(str(Path(sys.modules["kopylite"].__file__ or "")))
    assert not is_users(os.__file__)


def test_the_line_of_the_user_comes_first() -> None:
    def write() -> str:
        return users_frames()[0].text

    assert write() == "return users_frames()[0].text"


def test_a_transport_without_a_socket_is_one() -> None:
    clock = VirtualClock()

    async def main() -> None:
        async with ApiServer(ApiServerOptions(listen=False), clock=clock) as server:
            link = Link(server, "me")
            client = Client(MemoryTransport(link, "me", clock), clock=clock)
            obj = operators.child(Unstructured(operators.a_thing()), "ConfigMap")
            assert (await client.create(obj)).uid
            with pytest.raises(NotFound):
                await client.live.get(ConfigMap, "b", namespace="default")

            async def cut(request: object, response: object) -> None:
                from kopylite.apiserver.world import Disconnect

                raise Disconnect

            server.world.hooks.after.append(cut)  # type: ignore[arg-type]
            with pytest.raises(StreamBroken, match="the connection was cut before the answer came"):
                await client.delete(ConfigMap, "a", namespace="default")
            link.cut()
            assert not link.alive

    clock.run(main)


def test_entries_and_reports_read_well() -> None:
    point = Point("patch", "things.example.com", "status", "default/a", 2)
    entry = TraceEntry("write", "operator", 1.5, 0, str(point), point, 409)
    assert str(entry).strip() == "1.500s operator: patch things.example.com/status default/a (time 2) -> 409"
    assert str(Report("a:b", "s.yaml", 10, 10, seconds=6.0)) == (
        "a:b with s.yaml: 10 plans in 6.0 s, 100 a minute: nothing found"
    )
