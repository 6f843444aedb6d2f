"""The data file: all objects of a store, written whole and put in place atomically, read at the next start."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from kopylite.apiserver.storage.history import Change, Record
from kopylite.apiserver.storage.store import Store
from kopylite.clock import Clock
from kopylite.errors import UsageError

# A crash loses at most this much, and saving takes at most a tenth of the time.
SAVE_SECONDS = 1.0
_SAVE_SHARE = 10
_FORMAT = 1


class _Header(msgspec.Struct):
    format: int
    version: int


class _Line(msgspec.Struct, omit_defaults=True):
    storage: str
    key: str
    version: int
    uid: str
    shape: str
    object: msgspec.Raw
    labels: dict[str, str] | None = None
    fields: dict[str, str] | None = None


def load_store(path: Path, clock: Clock) -> Store:
    """The saved store; an empty one if there is no file yet.

    Raises:
        UsageError: the file is there and cannot be read as one of ours. It is left alone.
    """
    store = Store(clock=clock)
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return store
    except OSError as error:
        raise UsageError(f"cannot read the data file {path}: {error.strerror}") from error
    try:
        header = msgspec.json.decode(lines[0], type=_Header)
        if header.format != _FORMAT:
            raise UsageError(f"the data file {path} has format {header.format}; this version reads {_FORMAT}")
        decoder = msgspec.json.Decoder(_Line)
        collections: dict[str, list[Record]] = {}
        for line in map(decoder.decode, lines[1:]):
            collections.setdefault(line.storage, []).append(_record(line))
    except (msgspec.MsgspecError, IndexError) as error:
        raise UsageError(f"the data file {path} is damaged ({error}); move it away to start anew") from error
    store.load(header.version, collections)
    return store


def save_contents(path: Path, version: int, contents: dict[str, list[Record]]) -> None:
    """Write a file that only its owner can read, and put it in the place of the old one in one step."""
    temporary = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(_lines(version, contents))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _lines(version: int, contents: dict[str, list[Record]]) -> Iterator[bytes]:
    yield msgspec.json.encode(_Header(_FORMAT, version)) + b"\n"
    for storage, records in contents.items():
        for r in records:
            line = _Line(storage, r.key, r.version, r.uid, r.shape, msgspec.Raw(r.body), r.labels, r.fields)
            yield msgspec.json.encode(line) + b"\n"


def _record(line: _Line) -> Record:
    return Record(line.key, line.version, line.uid, line.shape, bytes(line.object), line.labels, line.fields)


class Saver:
    """Keeps a file up to date with a store, from entering the context until leaving it, when it saves at once."""

    def __init__(self, store: Store, path: Path, clock: Clock) -> None:
        self._store = store
        self._path = path
        self._clock = clock
        self._changed = anyio.Event()
        # Of asyncio and not of anyio: a server may be stopped by another task than the one that started it, and
        # inside of other task groups, which cancel scopes do not allow.
        self._tasks = asyncio.TaskGroup()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._store.observers.append(self._note)
        await self._tasks.__aenter__()
        self._running = self._tasks.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.observers.remove(self._note)
        assert self._running is not None
        self._running.cancel()
        await self._tasks.__aexit__(None, None, None)
        with anyio.CancelScope(shield=True):
            await self.save()

    async def save(self) -> None:
        """Write the file now, in a thread."""
        contents = self._store.contents()
        await anyio.to_thread.run_sync(save_contents, self._path, self._store.version, contents)

    def _note(self, storage: str, change: Change) -> None:
        self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            await self._clock.sleep(SAVE_SECONDS)
            self._changed = anyio.Event()
            began = self._clock.monotonic()
            await self.save()
            await self._clock.sleep((self._clock.monotonic() - began) * _SAVE_SHARE)
