"""Walk: does what a page tells its reader to do, block by block, in one folder, and compares what the page shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

LIMIT = 120.0
# What needs the network or docker. The interpreter of the tests has all that a reader installs.
NOT_HERE = re.compile(r"python3 -m venv|\. \.venv|pip install|docker |kubectl -n \S+ rollout")
# An answer that tells of a refusal; any other command succeeds.
REFUSALS = re.compile(r"The \w+ \".*\" is invalid|Error|error|no$")
# Commands that go on until Ctrl-C, and what they say when they are at work.
STAYS = re.compile(r"kopylite run |kopylite apiserver$")
AT_WORK = "all caches are in sync"
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+)\n")


@dataclass(frozen=True)
class Step:
    """A fenced block of a page."""

    place: str
    language: str
    text: str


def steps(page: Path) -> Iterator[Step]:
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        line = text[: found.start()].count("\n") + 1
        yield Step(f"{page.name}:{line}", found[2], textwrap.dedent(found[3]))


class Walk:
    """A reader with a folder and terminals.

    Args:
        folder: where everything happens.
        environment: added to the one of this process, less what that says to kopylite.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        ours = {name: value for name, value in os.environ.items() if not name.startswith("KOPYLITE_")}
        self._environment = {**ours, **environment}
        self._environment["PATH"] = f"{Path(sys.executable).parent}:{self._environment['PATH']}"
        self._exports: list[str] = []
        self._left_running: subprocess.Popen[str] | None = None
        self._log = folder / "terminal.log"
        self._instead: Mapping[str, str] = {}
        self.output = ""
        self.commands = 0

    def page(self, page: Path, *, instead: Mapping[str, str] | None = None) -> None:
        """Do a page, and press Ctrl-C at its end where something runs.

        Args:
            instead: command lines to put in the place of others; "" leaves one out.
        """
        self._instead = instead or {}
        todo = list(steps(page))
        try:
            for step, following in zip(todo, [*todo[1:], None], strict=True):
                shown = following.text if following is not None and following.language == "text" else ""
                self._do(step, fails=REFUSALS.match(shown) is not None)
        finally:
            self._stop(page.name)

    def files(self, page: Path) -> None:
        """Only put the files of a page where they belong."""
        for step in steps(page):
            self._write(step)

    def _write(self, step: Step) -> None:
        if step.language not in ("sh", "text") and (name := _FILE.match(step.text)):
            (self._folder / name[1]).write_text(step.text)

    def _do(self, step: Step, *, fails: bool) -> None:
        if step.language == "text":
            self._compare(step)
        elif step.language == "sh":
            lines = [self._instead.get(line, line) for line in step.text.splitlines() if not NOT_HERE.match(line)]
            if STAYS.search(step.text.strip()):
                self._start(step)
            elif lines:
                self._run(step, "\n".join(lines), fails=fails)
        else:
            self._write(step)

    def _run(self, step: Step, script: str, *, fails: bool) -> None:
        self._exports += [line for line in script.splitlines() if line.startswith("export ")]
        whole = "\n".join(["set -e", *self._exports, script])
        done = subprocess.run(
            ["bash", "-c", whole],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        self.output, self.commands = done.stdout, self.commands + 1
        assert (done.returncode != 0) is fails, f"{step.place}: {script}\n{done.stdout}\n{self.log}"

    def _start(self, step: Step) -> None:
        with self._log.open("w") as log:
            self._left_running = subprocess.Popen(
                ["bash", "-c", f"exec {step.text.strip()}"],
                cwd=self._folder,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        end = time.monotonic() + LIMIT
        while AT_WORK not in self.log:
            assert self._left_running.poll() is None, f"{step.place}: {self.log}"
            assert time.monotonic() < end, f"{step.place}: {self.log}"
            time.sleep(0.05)
        self.output, self.commands = self.log, self.commands + 1

    @property
    def log(self) -> str:
        """What the command that goes on has said."""
        return self._log.read_text() if self._log.exists() else ""

    def _stop(self, place: str) -> None:
        process, self._left_running, self._exports = self._left_running, None, []
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert code == 0, f"{place}: the end\n{self.log}"

    def _compare(self, step: Step) -> None:
        """The page's lines are those of the output; … stands for anything."""
        pattern = ".*?".join(re.escape(part) for part in step.text.strip().split("…"))
        right = re.fullmatch(pattern, self.output.strip(), re.DOTALL)
        assert right, f"{step.place} shows\n{step.text}\nand there was\n{self.output}"
