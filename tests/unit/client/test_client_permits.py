from __future__ import annotations

import contextvars
import socket
import struct

import pytest

from kopylite.client.permits import PERMIT, revocable


def test_a_permit_is_the_tasks_own() -> None:
    def ask() -> None:
        raise AssertionError

    context = contextvars.copy_context()
    context.run(PERMIT.set, ask)
    assert context[PERMIT] is ask
    assert PERMIT.get() is None


def test_a_closed_socket_takes_back_what_has_not_arrived() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = socket.create_connection(server.getsockname())
        assert revocable(made) is made
        on, seconds = struct.unpack("ii", made.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
        assert (bool(on), seconds) == (True, 0)
        other, _ = server.accept()
        with other:
            made.close()  # a reset, and no goodbye
            other.settimeout(10)
            with pytest.raises(ConnectionResetError):
                other.recv(1)
