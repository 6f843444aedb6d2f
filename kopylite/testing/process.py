"""ServerProcess: one supervised server binary with a log file."""

from __future__ import annotations

import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.abc

from kopylite.errors import KopyliteError

_SUPERVISOR = Path(__file__).with_name("supervise.py")


class ServerFailed(KopyliteError):
    """A server of the test control plane did not start, or ended by itself; the message holds its last lines."""


class ServerProcess:
    """A server that ends when it is stopped, or when this Python process is gone.

    Args:
        name: for messages.
        command: the binary and its arguments.
        log: a file that collects the output; appended to by later starts.
        stop_timeout: seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, *, stop_timeout: float = 20) -> None:
        self.name = name
        self.command = tuple(command)
        self.log = log
        self.stop_timeout = stop_timeout
        self.pid = 0
        self._process: anyio.abc.Process | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it; returns at once. `pid` is the server's own process id."""
        with self.log.open("ab") as log:
            self._process = await anyio.open_process(
                [sys.executable, "-I", "-S", str(_SUPERVISOR), str(self.stop_timeout), *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        try:
            self.pid = int(await self._process.stdout.receive(32))
        except (anyio.EndOfStream, ValueError):
            raise self.failure("could not be started") from None

    async def stop(self) -> None:
        """SIGTERM, wait, SIGKILL if need be. Nothing happens when it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.stdin is not None:
                await process.stdin.aclose()
            await process.wait()
            await process.aclose()

    async def wait_healthy(self, port: int, path: str, *, context: ssl.SSLContext | None, timeout: float) -> None:
        """Wait until GET `path` on 127.0.0.1 answers 200.

        Raises:
            ServerFailed: the process ended, or `timeout` seconds passed.
        """
        with anyio.move_on_after(timeout):
            while self.running:
                if await _http_status(port, path, context) == 200:
                    return
                await anyio.sleep(0.05)  # a poll with a limit; the servers offer no signal
            raise self.failure("ended by itself")
        raise self.failure(f"did not answer 200 on {path} within {timeout:g} s")

    def failure(self, what: str) -> ServerFailed:
        """The error for `what` went wrong, with the end of the log."""
        lines = self.log.read_text(errors="replace").splitlines()[-15:] if self.log.exists() else []
        return ServerFailed("\n".join([f"{self.name} {what}; its last lines ({self.log}):", *lines]))


async def _http_status(port: int, path: str, context: ssl.SSLContext | None) -> int:
    """The status of one GET without any HTTP library; 0 when there is no answer."""
    with anyio.move_on_after(2):
        try:
            if context is None:
                stream: anyio.abc.ByteStream = await anyio.connect_tcp("127.0.0.1", port)
            else:
                stream = await anyio.connect_tcp("127.0.0.1", port, ssl_context=context, tls_hostname="127.0.0.1")
            async with stream:
                await stream.send(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
                answer = await stream.receive()
                return int(answer.split(maxsplit=2)[1])
        except (OSError, anyio.EndOfStream, anyio.BrokenResourceError, ValueError, IndexError):
            return 0
    return 0
