"""The API server killed in mid-write, over HTTP: what was acknowledged is there, and no watcher misses an event."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import anyio
import pytest

from tests.operators import eventually

KILLS = 3
WRITERS = 8
TOKEN_PLACE = "token: "


class Gone(Exception):
    """The server was killed, or the watch's version is too old."""


class Place:
    """One server process after the other, at one port and one data file."""

    def __init__(self, home: Path) -> None:
        self.kubeconfig = home / "kubeconfig"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.command = [
            *(sys.executable, "-m", "kopylite", "apiserver", "--port", str(self.port), "--data", str(home / "data.db")),
            *("--no-tls", "--no-controllers", "--write-kubeconfig", str(self.kubeconfig)),
        ]
        self.url = f"http://127.0.0.1:{self.port}/api/v1/namespaces/default/configmaps"

    @asynccontextmanager
    async def process(self) -> AsyncIterator[asyncio.subprocess.Process]:
        self.kubeconfig.unlink(missing_ok=True)
        process = await asyncio.create_subprocess_exec(*self.command, stdout=asyncio.subprocess.DEVNULL)
        try:
            with anyio.fail_after(30):
                while not await self._answers():
                    assert process.returncode is None, "the server ended by itself"
                    await anyio.sleep(0.02)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def session(self) -> aiohttp.ClientSession:
        text = self.kubeconfig.read_text()
        token = next(line.split(TOKEN_PLACE)[1] for line in text.splitlines() if TOKEN_PLACE in line)
        return aiohttp.ClientSession(headers={"Authorization": f"Bearer {token.strip()}"})

    async def _answers(self) -> bool:
        if not self.kubeconfig.exists():
            return False
        try:
            async with self.session() as session, session.get(self.url) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False


async def write(place: Place, writer: int, random: Random, acknowledged: dict[str, Any]) -> None:
    """Create, change and delete, until the server is gone. What is on its way then counts as unknown (None)."""
    async with place.session() as session:
        while True:
            name = f"writer-{writer}-{random.randrange(10)}"
            known = acknowledged.get(name)
            acknowledged[name] = None
            value = str(random.random())
            body = {"metadata": {"name": name}, "data": {"value": value}}
            if not known:
                async with session.delete(f"{place.url}/{name}") as response:
                    assert response.status in (200, 404)
                call = session.post(place.url, json=body)
            elif random.random() < 0.3:
                call, value = session.delete(f"{place.url}/{name}"), ""
            else:
                call = session.put(f"{place.url}/{name}", json=body)
            async with call as response:
                assert response.status in (200, 201), await response.text()
                await response.read()
            acknowledged[name] = value


async def follow(place: Place, seen: dict[str, str], version: list[str]) -> None:
    """List when there is no version to go on from, then watch, until the server is gone or says 410."""
    async with place.session() as session:
        if not version[0]:
            async with session.get(place.url) as response:
                listed = await response.json()
            seen.clear()
            seen.update({item["metadata"]["name"]: item["data"]["value"] for item in listed["items"] if "data" in item})
            version[0] = listed["metadata"]["resourceVersion"]
        async with session.get(f"{place.url}?watch=1&resourceVersion={version[0]}") as response:
            async for line in response.content:
                event = json.loads(line)
                obj = event["object"]
                if event["type"] == "ERROR":
                    assert obj["code"] == 410, obj
                    version[0] = ""
                    raise Gone
                assert int(obj["metadata"]["resourceVersion"]) > int(version[0])
                version[0] = obj["metadata"]["resourceVersion"]
                if event["type"] == "DELETED":
                    seen.pop(obj["metadata"]["name"], None)
                elif "data" in obj:
                    seen[obj["metadata"]["name"]] = obj["data"]["value"]


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_a_killed_server_loses_nothing_that_it_acknowledged_and_watchers_get_all_or_a_410(tmp_path: Path) -> None:
    place, random = Place(tmp_path), Random(1)
    acknowledged: dict[str, str | None] = {}
    seen: dict[str, str] = {}
    version = [""]

    async def until_gone(work: Any, *args: Any) -> None:
        with suppress(aiohttp.ClientError):
            await work(*args)

    async def watch_on() -> None:
        while True:
            try:
                await follow(place, seen, version)
            except Gone:
                continue
            except aiohttp.ClientError:
                return

    for _ in range(KILLS):
        async with place.process() as process, anyio.create_task_group() as tasks:
            for writer in range(WRITERS):
                tasks.start_soon(until_gone, write, place, writer, Random(random.random()), acknowledged)
            tasks.start_soon(watch_on)
            await anyio.sleep(0.1 + random.random() / 2)  # the moment is the test's choice; nothing waits for it
            process.send_signal(signal.SIGKILL)
            await process.wait()

    async with place.process() as process, anyio.create_task_group() as tasks:
        tasks.start_soon(watch_on)
        async with place.session() as session, session.get(place.url) as response:
            listed = await response.json()
        stored = {item["metadata"]["name"]: item["data"]["value"] for item in listed["items"] if "data" in item}
        for name, value in acknowledged.items():
            if value is not None:
                assert stored.get(name, "") == value, name
        newest = listed["metadata"]["resourceVersion"]
        await eventually(lambda: version[0] == newest and seen == stored, "the watcher to have seen everything")
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert len(acknowledged) > WRITERS
