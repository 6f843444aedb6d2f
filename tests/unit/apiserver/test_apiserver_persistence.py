"""The data file: whatever was acknowledged is there, whatever happens to the process, the disk or the file."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kopylite.apiserver.request.request import HttpRequest
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from kopylite.apiserver.storage.history import Compacted
from kopylite.apiserver.storage.persistence import DataFile
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import InternalError, UsageError

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def put(store: ObjectStore, name: str, **labels: str) -> int:
    obj: dict[str, Any] = {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}}
    return store.create("things", f"ns/{name}", obj, encoding_version="v1", fields={"a": "b"}).version


def kept(path: Path) -> tuple[int, dict[str, Any]]:
    with DataFile(path, sync=False) as file:
        store = file.load(SYSTEM_CLOCK)
        return store.version, store.contents()


@pytest.mark.parametrize("sync", [True, False])
def test_what_is_written_is_read_back_equal(path: Path, sync: bool) -> None:
    with DataFile(path, sync=sync) as file:
        store = file.load(SYSTEM_CLOCK)
        put(store, "a", app="web")
        put(store, "gone")
        gone = store.get("things", "ns/gone")
        assert gone is not None
        deleted = store.delete("things", "ns/gone", gone)
        written = store.contents()
    version, contents = kept(path)
    assert contents == written
    # The deletion was the last write: its version is given out again to nobody.
    assert version == deleted.version


def test_watches_from_before_a_restart_are_told_so(path: Path) -> None:
    with DataFile(path) as file:
        version = put(file.load(SYSTEM_CLOCK), "a")
    with DataFile(path) as file:
        collection = file.load(SYSTEM_CLOCK).collection("things")
        with pytest.raises(Compacted):
            collection.subscribe(version - 1)
        collection.subscribe(version).close()


def test_versions_beyond_64_bits_are_kept(path: Path) -> None:
    with DataFile(path) as file:
        store = file.load(SYSTEM_CLOCK)
        store.step = 2**70
        version = put(store, "a")
    assert kept(path)[0] == version > 2**70


def test_a_collection_that_is_no_longer_served_is_gone_from_the_file_too(path: Path) -> None:
    with DataFile(path) as file:
        store = file.load(SYSTEM_CLOCK)
        put(store, "a")
        store.close_collection("things", keep=True)
        assert store.get("things", "ns/a")
        store.close_collection("things", keep=False)
    assert kept(path)[1] == {}


def test_two_servers_cannot_share_a_file(path: Path) -> None:
    code = "import sys; from pathlib import Path; from kopylite.apiserver.storage.persistence import DataFile; "
    command = [sys.executable, "-c", code + "DataFile(Path(sys.argv[1])).close()", str(path)]
    with DataFile(path) as file:
        put(file.load(SYSTEM_CLOCK), "a")
        with pytest.raises(UsageError, match=r"data\.db is in use by another server"):
            DataFile(path)
        other = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert "is in use by another server" in other.stderr
    assert subprocess.run(command, capture_output=True, text=True, timeout=30).stderr == ""


@pytest.mark.parametrize(
    "content",
    [b"x", b'{"format":1,"version":1}\n', b"SQLite format 3\0" + bytes(40), b"SQLite format 3\0" + bytes(4080)],
)
def test_a_file_that_is_none_of_ours_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"data\.db.*none of ours"):
        ApiServer(ApiServerOptions(listen=False, data=path))
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE objects (a)")
    database.close()
    content = path.read_bytes()
    with pytest.raises(UsageError, match="none of ours"):
        DataFile(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("at", [100, 4096])
def test_a_damaged_file_is_refused_with_a_way_out(path: Path, at: int) -> None:
    with DataFile(path) as file:
        store = file.load(SYSTEM_CLOCK)
        for i in range(20):
            put(store, f"o{i}")
    content = bytearray(path.read_bytes())
    content[at : at + 600] = os.urandom(600)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"data\.db is damaged .*; move it away"), DataFile(path) as file:
        file.load(SYSTEM_CLOCK)


def test_a_row_that_is_none_is_a_damaged_file(path: Path) -> None:
    with DataFile(path) as file:
        put(file.load(SYSTEM_CLOCK), "a")
    database = sqlite3.connect(path)
    database.execute("UPDATE objects SET version = 'x'")
    database.commit()
    database.close()
    with pytest.raises(UsageError, match="is damaged"):
        kept(path)


def test_a_newer_format_is_refused(path: Path) -> None:
    DataFile(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(UsageError, match="has format 99"):
        DataFile(path)


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_links_are_not_followed(tmp_path: Path, path: Path, suffix: str) -> None:
    target = tmp_path / "precious"
    target.write_bytes(b"")
    Path(f"{path}{suffix}").symlink_to(target)
    with pytest.raises(UsageError, match="is a link"):
        DataFile(path)
    assert target.read_bytes() == b""


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for odd in (tmp_path, fifo, tmp_path / "missing" / "data.db"):
        with pytest.raises(UsageError, match="data file"):
            DataFile(odd)


def test_it_is_for_its_owner_only(path: Path) -> None:
    path.touch(0o644)
    before = os.umask(0)
    try:
        with DataFile(path) as file:
            put(file.load(SYSTEM_CLOCK), "a")
            modes = {stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {0o600}


def test_a_full_disk_refuses_writers_and_nothing_else(path: Path) -> None:
    with DataFile(path) as file:
        store = file.load(SYSTEM_CLOCK)
        put(store, "a")
        version, contents = store.version, store.contents()
        told: list[object] = []
        store.observers.append(lambda storage, change: told.append(change))
        _limit(file, pages=1)
        with pytest.raises(InternalError, match=r"data\.db cannot be written .*full.*nothing was changed"):
            put(store, "b" * 20_000)
        assert (store.version, store.contents(), told) == (version, contents, [])
        _limit(file, pages=1_000_000)  # somebody made room
        put(store, "c")
    assert [r.name for r in kept(path)[1]["things"]] == ["a", "c"]


async def test_a_server_on_a_full_disk_answers_500_to_writers_and_reads_go_on(path: Path) -> None:
    async with ApiServer(ApiServerOptions(listen=False, data=path, controllers=("garbage-collector",))) as server:
        assert server._file is not None
        body = {"metadata": {"name": "a"}, "data": {"a": "x" * 100_000}}
        _limit(server._file, pages=1)
        refused = await server.handle(HttpRequest.of("POST", CONFIG_MAPS, body=msgspec.json.encode(body)))
        assert refused.status == 500
        assert b"nothing was changed" in refused.body
        assert (await server.handle(HttpRequest.of("GET", f"{CONFIG_MAPS}/a"))).status == 404
        _limit(server._file, pages=1_000_000)
        assert (await server.handle(HttpRequest.of("POST", CONFIG_MAPS, body=msgspec.json.encode(body)))).status == 201


def _limit(file: DataFile, pages: int) -> None:
    file._database.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_store_that_is_brought_along_is_kept_from_then_on(path: Path, tmp_path: Path) -> None:
    store = ObjectStore()
    put(store, "a")
    async with ApiServer(ApiServerOptions(listen=False, data=path), store=store) as server:
        twin = server.world.store.fork()
    assert "things" in kept(path)[1]
    async with ApiServer(ApiServerOptions(listen=False, data=path), store=twin) as server:
        put(server.world.store, "b")
    assert len(kept(path)[1]["things"]) == 2
    with pytest.raises(UsageError, match="holds other objects already"):
        ApiServer(ApiServerOptions(listen=False, data=path), store=ObjectStore())
    DataFile(path).close()  # the refusal let it go


async def test_a_server_that_could_not_start_lets_the_file_go(path: Path) -> None:
    async with ApiServer() as other:
        with pytest.raises(UsageError, match="cannot listen"):
            async with ApiServer(ApiServerOptions(port=other.port, data=path)):
                raise AssertionError("two servers at one port")
    DataFile(path).close()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_200_times_in_mid_write_nothing_acknowledged_is_lost_and_no_version_repeats(path: Path) -> None:
    """In a process of its own, since one with threads must not fork."""
    script = Path(__file__).with_name("kill_data_file.py")
    done = subprocess.run([sys.executable, script, path, "200"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("200 kills, ")
