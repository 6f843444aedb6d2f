"""Process: one of several, as its parent sees it: begun, asked, ended."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException

import anyio
import anyio.to_thread
from anyio.abc import Process

from kopylite.supervision.child import LISTENS, STOP, ProcessPlace
from kopylite.supervision.restarts import Restarts

# A process that takes longer for an answer is as good as none: the kubelet waits for a second by default.
ANSWER_SECONDS = 5.0


class SupervisedProcess:
    """Begins one process, again and again if it has to.

    Args:
        number: from 1 on.
        of: how many there are.
        command: makes its command line.
    """

    def __init__(self, number: int, of: int, command: Callable[[ProcessPlace], Sequence[str]]) -> None:
        self.number = number
        self.restarts = Restarts()
        self.listening = anyio.Event()
        self.address = ""
        self._of = of
        self._command = command
        self._process: Process | None = None
        self._socket: socket.socket | None = None
        self._stopped = False

    @property
    def runs(self) -> bool:
        return self._process is not None

    async def run(self) -> int:
        """From its begin to its end: the exit code; of one that a signal ended, less than 0.

        Raises:
            OSError: it could not be begun.
        """
        ours, its = socket.socketpair()
        with ours:
            self._socket, self.address = ours, ""
            ours.setblocking(False)
            try:
                with its:
                    place = ProcessPlace(self.number, self._of, its.fileno())
                    # A session of its own: Ctrl-C reaches all of a terminal's group, and is for the parent to pass on.
                    self._process = await anyio.open_process(
                        self._command(place), stdin=subprocess.DEVNULL, stdout=None, stderr=None,
                        start_new_session=True, pass_fds=[its.fileno()],
                    )  # fmt: skip
                if self._stopped:
                    self.stop()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._hear, ours)
                    code = await self._process.wait()
                    tasks.cancel_scope.cancel()
                return code
            finally:
                with anyio.CancelScope(shield=True):
                    await self._bury()

    async def _bury(self) -> None:
        """Whatever ends the parent's interest in it ends the process."""
        process, self._process, self._socket, self.address = self._process, None, None, ""
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def stop(self) -> None:
        """Ask it to end in order."""
        self._stopped = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.send(STOP)

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _hear(self, ours: socket.socket) -> None:
        """Note what it says, until it says no more."""
        heard = b""
        while True:
            await anyio.wait_readable(ours)
            try:
                data = ours.recv(4096)
            except OSError:
                return
            if not data:
                return
            heard += data
            while b"\n" in heard:
                line, _, heard = heard.partition(b"\n")
                if line.startswith(LISTENS):
                    self.address = line.removeprefix(LISTENS).decode()
                    self.listening.set()

    async def get(self, path: str, accept: str = "") -> tuple[int, str]:
        """Ask it: status and text; 0 and what is wrong if no answer came within 5 s."""
        if not self.runs:
            return 0, "it does not run"
        if not self.address:
            return 0, "it has begun, and does not listen yet"
        return await anyio.to_thread.run_sync(_fetch, self.address, path, accept, abandon_on_cancel=True)


def _fetch(address: str, path: str, accept: str) -> tuple[int, str]:
    """In a thread, with what Python has: no proxy of the environment is asked for what is on this machine."""
    connection = HTTPConnection(address, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", path, headers={"Accept": accept} if accept else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, HTTPException, UnicodeDecodeError) as error:
        return 0, f"no answer: {error}"
    finally:
        connection.close()


def end_of(code: int) -> str:
    """How a process has ended, in words."""
    if code >= 0:
        return f"with exit code {code}"
    with suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
