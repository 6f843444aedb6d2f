"""Kills a writer of a data file in mid-write, again and again, and checks what is left. `kill_data_file.py FILE KILLS`.

The writer plays 8 clients and a watcher; what each was told goes down a pipe, as an answer would to a client.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from random import Random
from typing import Any

from kopylite.apiserver.storage.persistence import DataFile
from kopylite.apiserver.storage.store import ObjectStore
from kopylite.clock import SYSTEM_CLOCK

WRITERS = 8
MOST_ANSWERS = 40


def write_for_ever(path: Path, seed: int, pipe: int) -> None:
    random = Random(seed)

    def tell(what: str, version: int, name: str = "") -> None:
        os.write(pipe, json.dumps([what, version, name]).encode() + b"\n")

    with DataFile(path, sync=False) as file:
        store = file.load(SYSTEM_CLOCK)
        watcher = store.collection("things").subscribe(store.version)
        tell("start", store.version)
        while True:
            name = f"writer-{random.randrange(WRITERS)}-{random.randrange(20)}"
            tell(*step(store, name, random))
            for change in watcher.take():
                tell("seen", change.version, change.record.name)


def step(store: ObjectStore, name: str, random: Random) -> tuple[str, int, str]:
    present = store.get("things", f"ns/{name}")
    if present is not None and random.random() < 0.4:
        return "delete", store.delete("things", present.key, present).version, name
    obj: dict[str, Any] = {"metadata": {"name": name, "uid": name}, "data": "x" * random.randrange(5000)}
    if present is None:
        return "put", store.create("things", f"ns/{name}", obj, encoding_version="v1").version, name
    return "put", store.update("things", present.key, obj, present, encoding_version="v1").version, name


def run_and_kill(path: Path, seed: int, answers: int) -> list[tuple[str, int, str]]:
    """All answers that a writer gave until it was killed, at some moment after so many of them."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            write_for_ever(path, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        told = [json.loads(lines.readline()) for _ in range(1 + answers)]
        os.kill(pid, signal.SIGKILL)
        # A line that was sent has been received, as far as a client is concerned.
        told += [json.loads(line) for line in lines if line.endswith(b"\n")]
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    return [(what, version, name) for what, version, name in told]


def check(path: Path, expected: dict[str, int], newest: int, told: list[tuple[str, int, str]]) -> tuple[int, int]:
    """Hold what a killed writer was told against the file. `expected` becomes what the file holds.

    Returns:
        The newest version, and how many writes were acknowledged.
    """
    (_, began, _), *answers = told
    written = [(what, version, name) for what, version, name in answers if what != "seen"]
    versions = [version for _, version, _ in written]
    seen = [version for what, version, _ in answers if what == "seen"]
    assert began == newest, "it begins at the newest version that was ever given out"
    assert versions == list(range(began + 1, began + 1 + len(versions))), "each version is given out once"
    assert seen == list(range(began + 1, began + 1 + len(seen))), "the watcher sees every event"
    for what, version, name in written:
        if what == "put":
            expected[name] = version
        else:
            del expected[name]
    with DataFile(path, sync=False) as file:
        store = file.load(SYSTEM_CLOCK)
    stored = {record.name: record.version for record in store.contents().get("things", [])}
    last = versions[-1] if versions else began
    assert last <= store.version <= last + 1, "at most one write was on its way"
    assert max(seen, default=0) <= store.version, "no watcher saw what is not on disk"
    if store.version == last:
        assert stored == expected
    else:  # it happened, though its answer was never sent
        changed = {name for name in stored.keys() | expected.keys() if stored.get(name) != expected.get(name)}
        assert len(changed) == 1
        assert stored.get(changed.pop(), store.version) == store.version
    expected.clear()
    expected.update(stored)
    return store.version, len(written)


def main(path: Path, kills: int) -> None:
    random = Random(1)
    expected: dict[str, int] = {}
    total = 0
    with DataFile(path, sync=False) as file:
        newest = file.load(SYSTEM_CLOCK).version
    for seed in range(kills):
        told = run_and_kill(path, seed, random.randrange(MOST_ANSWERS))
        newest, written = check(path, expected, newest, told)
        total += written
    print(f"{kills} kills, {total} acknowledged writes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
