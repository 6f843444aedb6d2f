"""Do a room's own tests notice a fault in it? `python -m tests.mutants ROOM` (make mutants ROOM=workqueue).

One process imports and collects; each mutant is a fork of it, in which the code of one function is replaced and the
tests that ever enter this function run, the quickest first, until one fails. So a mutant costs milliseconds.

A mutant that never ends is noticed too. A busy machine must not look like one: what counts is a test's time on a
processor, and a stop is one where none was used for long. A test that fails with a timeout of its own is asked once
more, and so is one that fails in the first run, without any mutant. A loop that collects things is ended before the
memory is.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.runner import runtestprotocol

from tests.mutants.mutations import Mutant, code_of, mutants_of

ROOT = Path(__file__).parent.parent.parent
ALSO = {
    "workqueue": ["tests/properties/test_queue_model.py"],
    "cache": [*(f"tests/properties/test_cache_{n}.py" for n in ("record", "store", "watchstate")), "tests/chaos"],
    "controller": ["tests/properties/test_worker_model.py", "tests/unit/reconcile/test_reconcile_threads.py"],
    "objects": [f"tests/properties/test_{name}.py" for name in ("objects_wire", "client_patches_properties")],
    "leaderelection": [f"tests/properties/test_leaderelection_{n}.py" for n in ("candidate", "roster")],
}
SURVIVED, KILLED, BROKEN, DOUBTFUL = 0, 1, 2, 3
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
GRACE = 5.0  # seconds on a processor that any test may use: those that loop use more
ROOM_TO_GROW = 256 * 1024 * 1024  # a mutant may keep a bit more than the unchanged code does


@dataclass
class Options:
    room: str
    limit: int
    jobs: int
    only: str
    seed: int


@dataclass
class Known:
    """What the unchanged code does: which tests enter a function, how long each takes, by processor and by wall, and
    the most memory that there was."""

    cpu: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    entered: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    memory: int = 0


class Used(NamedTuple):
    """Seconds on a processor, and bytes of memory."""

    cpu: float
    memory: int


class Run:
    """A mutant's process."""

    def __init__(self, path: Path, mutant: Mutant, tests: Sequence[str], known: Known, again: bool) -> None:
        self.path, self.mutant, self.again = path, mutant, again
        self._patience = 10.0 + 2.0 * max((known.wall[one] for one in tests), default=0.0)
        self._most_memory = known.memory + ROOM_TO_GROW
        self._since, self._used = time.monotonic(), 0.0

    def never_ends(self, used: Used) -> bool:
        """It has used far more memory than the unchanged code, or no processor for far longer than that waits."""
        now = time.monotonic()
        if used.cpu - self._used > 0.01 * (now - self._since):
            self._since, self._used = now, used.cpu
        return used.memory > self._most_memory or now - self._since > self._patience


def used_by(pid: int) -> Used:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return Used((int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * PAGE)


class Mutation:
    """The plugin that runs instead of pytest's own loop."""

    def __init__(self, options: Options) -> None:
        self.options = options
        room = ROOT / "kopylite" / options.room
        self.files = sorted(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]
        self.score = 0.0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self.items = {item.nodeid: item for item in session.items}
        known = self.baseline()
        mutants = [(path, mutant) for path in self.files for mutant in mutants_of(path.read_text())]
        mutants = [(p, m) for p, m in mutants if self.options.only in f"{p.relative_to(ROOT)}:{m.function}"]
        chosen = mutants
        if 0 < self.options.limit < len(mutants):
            chosen = random.Random(self.options.seed).sample(mutants, self.options.limit)
            chosen.sort(key=lambda one: (one[0], one[1].line))
        print(f"{self.options.room}: {len(self.items)} tests, {len(chosen)} of {len(mutants)} mutants", flush=True)
        survivors, ran = [], 0
        for path, mutant, verdict in self.verdicts(chosen, known):
            ran += verdict != BROKEN
            if verdict == SURVIVED:
                survivors.append((path, mutant))
                seen = "" if known.entered.get((str(path), mutant.function)) else "   (no test enters it)"
                print(f"{path.relative_to(ROOT)}:{mutant.line}: {mutant.function}{seen}")
                print("".join(f"    {line}\n" for line in mutant.diff(path.read_text())), end="", flush=True)
        if chosen and not ran:
            raise pytest.UsageError("none of the mutants could be put in place: this tool is broken")
        self.score = 100 * (ran - len(survivors)) / max(ran, 1)
        print(f"{self.options.room}: {ran - len(survivors)} of {ran} mutants were noticed ({self.score:.1f} %)")
        return True

    def baseline(self) -> Known:
        """Run all tests once as they are, in a fork, and note what they enter. A failure ends all."""
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            quiet()
            text = repr(self._observed())
            with os.fdopen(writing, "wb") as pipe:  # a signal may cut a write of os.write() short
                pipe.write(text.encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read().decode()
        most = os.wait4(pid, 0)[2].ru_maxrss * 1024
        cpu, wall, entered, failed = eval(text)
        if failed:
            told = "\n\n".join(f"{nodeid}\n{why}" for nodeid, why in failed.items())
            raise pytest.UsageError(f"these tests fail without any mutant, twice:\n\n{told}")
        return Known(cpu, wall, entered, most)

    def _observed(self) -> tuple[dict[str, float], dict[str, float], dict[tuple[str, str], list[str]], dict[str, str]]:
        names = {str(path) for path in self.files}
        entered: dict[tuple[str, str], list[str]] = {}
        cpu: dict[str, float] = {}
        wall: dict[str, float] = {}
        failed: dict[str, str] = {}
        seen: set[CodeType] = set()

        def note(frame: FrameType, event: str, _: object) -> None:
            if event == "call" and frame.f_code.co_filename in names:
                seen.add(frame.f_code)

        for nodeid, item, following in self._in_order(list(self.items)):
            seen.clear()
            started, used = time.monotonic(), time.process_time()
            sys.setprofile(note)
            threading.setprofile(note)
            failures = failures_of(item, following)
            sys.setprofile(None)
            threading.setprofile(None)
            wall[nodeid], cpu[nodeid] = time.monotonic() - started, time.process_time() - used
            if failures and (failures := failures_of(item, following)):  # the second time unobserved, so faster
                failed[nodeid] = failures[0]
            for function in {(code.co_filename, code.co_qualname.split(".<locals>")[0]) for code in seen}:
                entered.setdefault(function, []).append(nodeid)
        return cpu, wall, entered, failed

    def _in_order(self, nodeids: Sequence[str]) -> Iterator[tuple[str, Any, Any]]:
        for index, nodeid in enumerate(nodeids):
            following = self.items[nodeids[index + 1]] if index + 1 < len(nodeids) else None
            yield nodeid, self.items[nodeid], following

    def verdicts(self, mutants: list[tuple[Path, Mutant]], known: Known) -> Iterator[tuple[Path, Mutant, int]]:
        """Run the mutants, some at a time."""
        todo, running = [(path, mutant, False) for path, mutant in mutants], dict[int, Run]()
        while todo or running:
            while todo and len(running) < self.options.jobs:
                path, mutant, again = todo.pop(0)
                tests = sorted(known.entered.get((str(path), mutant.function), ()), key=known.cpu.__getitem__)
                if (pid := os.fork()) == 0:
                    quiet()
                    os._exit(self._tried(path, mutant, tests, known))
                running[pid] = Run(path, mutant, tests, known, again)
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                for late in [one for one, run in running.items() if run.never_ends(used_by(one))]:
                    os.kill(late, signal.SIGKILL)
                time.sleep(0.01)
                continue
            run, verdict = running.pop(pid), os.waitstatus_to_exitcode(status)
            if verdict == DOUBTFUL and not run.again:
                todo.append((run.path, run.mutant, True))
            else:
                yield run.path, run.mutant, verdict if verdict in (SURVIVED, BROKEN) else KILLED

    def _tried(self, path: Path, mutant: Mutant, tests: Sequence[str], known: Known) -> int:
        if not replaced(path, mutant):
            return BROKEN
        for nodeid, item, following in self._in_order(tests):
            end_after(GRACE + 2.0 * known.cpu[nodeid])
            if (verdict := judged(item, following)) != SURVIVED:
                return verdict
        return SURVIVED


def end_after(seconds: float) -> None:
    """The system ends this process when it has been on a processor for so much longer."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), hard))


def replaced(path: Path, mutant: Mutant) -> bool:
    """Give the live functions of a module the mutant's code."""
    old = code_of(path.read_text(), str(path)).get(mutant.function, [])
    new = code_of(mutant.source, str(path)).get(mutant.function, [])
    gc.unfreeze()  # the suite freezes what is there when it begins, and what is frozen is not listed
    live = [one for one in gc.get_objects() if type(one) is FunctionType and one.__code__.co_filename == str(path)]
    done = False
    for before, after in zip(old, new, strict=True):
        for function in live:
            code = function.__code__
            if (code.co_qualname, code.co_firstlineno) != (before.co_qualname, before.co_firstlineno):
                continue
            if code.co_freevars != after.co_freevars:
                return False
            function.__code__, done = after, True
    return done


def judged(item: Any, following: Any) -> int:
    """Run a test. A timeout may be the machine's."""
    failures = failures_of(item, following)
    if not failures:
        return SURVIVED
    return DOUBTFUL if all("TimeoutError" in text for text in failures) else KILLED


def failures_of(item: Any, following: Any) -> list[str]:
    """Run a test: the texts of what failed."""
    return [report.longreprtext for report in runtestprotocol(item, log=False, nextitem=following) if report.failed]


def quiet() -> None:
    """A fork says nothing; pytest does not capture, as forks would share its files."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", help="a folder or module of kopylite/: workqueue, cache, controller, ...")
    parser.add_argument("--limit", type=int, default=400, help="so many mutants, drawn by the seed; 0: all")
    parser.add_argument("--seed", type=int, default=11, help="which of them, if there are more than the limit")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants whose file:function has this in it")
    parser.add_argument("--at-least", type=float, default=0, metavar="PERCENT", help="exit with 1 below this score")
    given = parser.parse_args()
    os.environ["HYPOTHESIS_PROFILE"] = "mutants"
    os.chdir(ROOT)
    own = [f"tests/unit/{given.room}", *ALSO.get(given.room, ())]
    paths = [path for path in own if Path(path).exists()]
    if not paths:
        parser.error(f"no tests of their own for {given.room!r}: tests/unit/{given.room} is not there")
    mutation = Mutation(Options(given.room, given.limit, given.jobs, given.only, given.seed))
    options = ["-q", "-s", "-p", "no:cacheprovider", "-m", "not server and not realserver", *paths]
    code = pytest.main(options, plugins=[mutation])
    return int(code) or int(mutation.score < given.at_least)


if __name__ == "__main__":
    sys.exit(main())
