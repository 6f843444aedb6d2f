"""The data file: an SQLite database in which each write is a transaction, finished before anybody hears of it.

So a write is on disk before it is in memory, before its writer has an answer and before a watcher sees it: whatever
moment the process is killed at, what was acknowledged is there, and no version was shown that could be given out
again. A write that the disk refuses has not happened.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.boundary import read, say
from kopylite.clock import Clock
from kopylite.errors import InternalError, UsageError

# Marks the database as ours; SQLite keeps it at this place of the file's header.
_APPLICATION_ID: Final = 0x6B6F7079
_APPLICATION_ID_AT: Final = 68
_MAGIC: Final = b"SQLite format 3\0"
_FORMAT: Final = 2
# Versions are text: a test may let them jump beyond SQLite's 64 bits.
_SCHEMA: Final = f"""
    PRAGMA application_id = {_APPLICATION_ID};
    PRAGMA user_version = {_FORMAT};
    CREATE TABLE counter (version TEXT NOT NULL);
    CREATE TABLE objects (
        storage TEXT NOT NULL, key TEXT NOT NULL, version TEXT NOT NULL, uid TEXT NOT NULL,
        encoding_version TEXT NOT NULL, body BLOB NOT NULL, labels BLOB, fields BLOB, PRIMARY KEY (storage, key)
    );
"""
_OWNER_ONLY: Final = 0o600


class DataFile:
    """One open data file. Nobody else can open it until it is closed, or its process has ended.

    Args:
        path: created, for its owner only, if it is not there.
        sync: wait for the disk at each write, so that not even a loss of power takes an acknowledged one. Without, only
            that can: a killed process loses nothing either way.

    Raises:
        UsageError: it is none of ours, damaged, a link, in use, or can't be had. What is there is left as it is.
    """

    def __init__(self, path: Path, *, sync: bool = True) -> None:
        self.path = path
        # SQLite's own lock ends as soon as another descriptor of the file is closed in this process; this one lasts.
        self._lock = _lock_file(path)
        try:
            self._database = self._connect(sync)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Let others open it. A later write is refused. Not to be called twice."""
        self._database.close()
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def load(self, clock: Clock) -> ObjectStore:
        """The store that the file holds, from now on kept in it; there is no history from before.

        Raises:
            UsageError: the file is damaged.
        """
        store = ObjectStore(clock=clock)
        saved = self._version()
        if saved is not None:
            store.load(saved, read(_records, self._database, self._is_damaged))
        self.keep(store)
        return store

    def keep(self, store: ObjectStore) -> None:
        """From now on, have each write of a store on disk before it happens.

        Raises:
            UsageError: the file holds other objects than the store.
        """
        saved = self._version()
        if saved is None:
            with self._transaction():
                self._database.execute("INSERT INTO counter VALUES (?)", (str(store.version),))
                for storage, records in store.contents().items():
                    self._database.executemany(_PUT, (_row(storage, record) for record in records))
        elif saved != store.version:
            raise UsageError(f"the data file {self.path} holds other objects already: move it away, or begin with them")
        store.journal = self

    def write(self, storage: str, change: StoredChange) -> None:
        """Put one change on disk.

        Raises:
            InternalError: the disk refused. Nothing has changed.
        """
        record = change.record
        with self._transaction():
            if change.type == DELETED:
                self._database.execute("DELETE FROM objects WHERE storage = ? AND key = ?", (storage, record.key))
            else:
                self._database.execute(_PUT, _row(storage, record))
            self._database.execute("UPDATE counter SET version = ?", (str(record.version),))

    def drop(self, storage: str) -> None:
        """Forget a collection. Raises InternalError: the disk refused."""
        with self._transaction():
            self._database.execute("DELETE FROM objects WHERE storage = ?", (storage,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            yield
            database.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            text = f"the data file {self.path} cannot be written ({say(error)}): nothing was changed"
            raise InternalError(text) from error

    def _roll_back(self) -> None:
        # SQLite has done it by itself after some errors, and a closed database can't.
        try:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
        except sqlite3.Error:
            return

    def _version(self) -> int | None:
        """The newest version that was given out; None: the file is new."""
        row = self._database.execute("SELECT version FROM counter").fetchone()
        return None if row is None else int(row[0])

    def _connect(self, sync: bool) -> sqlite3.Connection:
        try:
            # A server may be started in one thread and stopped in another, one after the other.
            database = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._prepare(database, sync)
            except BaseException:
                database.close()
                raise
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                raise _in_use(self.path) from error
            raise UsageError(f"cannot open the data file {self.path}: {say(error)}") from error
        except sqlite3.DatabaseError as error:
            raise self._is_damaged(None, error) from error
        return database

    def _prepare(self, database: sqlite3.Connection, sync: bool) -> None:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")  # kept from the first transaction on
        database.execute("BEGIN EXCLUSIVE")
        (format_,) = database.execute("PRAGMA user_version").fetchone()
        if format_ not in (0, _FORMAT):
            raise UsageError(f"the data file {self.path} has format {format_}; this version reads {_FORMAT}")
        if format_ == 0:
            for statement in _SCHEMA.split(";"):
                database.execute(statement)
        database.execute("COMMIT")
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(" ".join(verdict.split()))
        # Beside the log no second file of locks is needed, since there is no second process.
        database.execute("PRAGMA journal_mode = WAL")
        database.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")

    def _is_damaged(self, data: object, error: Exception) -> UsageError:
        return UsageError(f"the data file {self.path} is damaged ({say(error)}); move it away to start anew")


_PUT: Final = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


def _row(storage: str, record: StoredObject) -> tuple[Any, ...]:
    labels, fields = (msgspec.json.encode(part) if part else None for part in (record.labels, record.fields))
    return storage, record.key, str(record.version), record.uid, record.encoding_version, record.body, labels, fields


def _records(database: sqlite3.Connection) -> dict[str, list[StoredObject]]:
    """All records by storage name. Raises whatever a damaged file leads to."""
    decode = msgspec.json.Decoder(dict[str, str]).decode
    found: dict[str, list[StoredObject]] = {}
    for storage, key, version, uid, encoding_version, body, labels, fields in database.execute("SELECT * FROM objects"):
        own = (decode(part) if part else None for part in (labels, fields))
        found.setdefault(storage, []).append(StoredObject(key, int(version), uid, encoding_version, body, *own))
    return found


def _lock_file(path: Path) -> int:
    """Open a file that is ours, or new, or empty; see to it that only its owner can read it, and lock it.

    Returns:
        The descriptor that holds the lock.

    Raises:
        UsageError: it is something else, or in use.
    """
    try:
        # What SQLite puts beside it must not lead elsewhere either.
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-journal")):
            if file.is_symlink():
                raise UsageError(f"the data file {file} is a link, which could lead anywhere: name the file itself")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, _OWNER_ONLY)
    except OSError as error:
        raise UsageError(f"cannot open the data file {path}: {error.strerror}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(f"the data file {path} is no ordinary file")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head = os.read(descriptor, _APPLICATION_ID_AT + 4)
        if head and not (head.startswith(_MAGIC) and head.endswith(_APPLICATION_ID.to_bytes(4, "big"))):
            raise UsageError(f"the data file {path} is damaged, or none of ours; name another, or move it away")
        if stat.S_IMODE(status.st_mode) & ~_OWNER_ONLY:
            os.fchmod(descriptor, _OWNER_ONLY)
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise _in_use(path) from error
        if isinstance(error, OSError):
            raise UsageError(f"cannot open the data file {path}: {error.strerror}") from error
        raise
    return descriptor


def _in_use(path: Path) -> UsageError:
    return UsageError(f"the data file {path} is in use by another server: stop that one, or name another file")
