"""Child: what ties a process to the parent that began it, over a socket that both have.

The child says where it listens; the parent says when to stop. Whatever ends the parent closes the socket, so nobody is
left behind: the child stops then, too. No signal is needed for any of that, so one that reaches the whole group (a
terminal's, systemd's) is not counted twice.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from kopylite.errors import UsageError

STOP = b"stop\n"
LISTENS = b"listens "


@dataclass(frozen=True, slots=True)
class ProcessPlace:
    """Which of how many processes one is, and the number of its end of the socket.

    Attributes:
        number: from 1 on.
        of: how many there are.
    """

    number: int
    of: int
    descriptor: int

    @classmethod
    def parse(cls, text: str) -> ProcessPlace:
        """What `str` makes.

        Raises:
            UsageError: it is none.
        """
        try:
            number, of, descriptor = map(int, text.split("/"))
        except ValueError:
            raise UsageError(f"{text!r} is no place among processes; only their parent gives one") from None
        return cls(number, of, descriptor)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}/{self.descriptor}"


class Tie:
    """The child's end.

    Args:
        descriptor: of the socket.
        stop: called in a thread of its own when the parent says so, once.
        gone: called in that thread when there is no parent any more; also after `stop`.

    Raises:
        UsageError: there is no such socket: no parent has begun this process.
    """

    def __init__(self, descriptor: int, stop: Callable[[], None], gone: Callable[[], None]) -> None:
        try:
            os.set_inheritable(descriptor, False)  # what this process begins is none of the parent's
            self._socket = socket.socket(fileno=descriptor)
        except OSError as error:
            raise UsageError(f"only the parent of several processes gives them a place: {error}") from None
        self._stop, self._gone = stop, gone
        threading.Thread(target=self._listen, name="tie to the parent", daemon=True).start()

    def listens(self, address: str) -> None:
        """Tell the parent that the process listens, at "host:port", or at nothing for "". The parent may be gone."""
        with suppress(OSError):  # the thread notices that, too
            self._socket.sendall(LISTENS + address.encode() + b"\n")

    def _listen(self) -> None:
        with self._socket, suppress(OSError):  # that it broke off says the same as its end
            while data := self._socket.recv(1024):
                if STOP in data:
                    self._stop()
        self._gone()
