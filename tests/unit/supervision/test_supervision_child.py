"""The tie between a process and its parent, from the side of the process."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from kopylite.errors import UsageError
from kopylite.supervision.child import STOP, ProcessPlace, Tie


class Heard:
    """What a Tie tells its process."""

    def __init__(self) -> None:
        self.stops = 0
        self.stopped, self.gone = threading.Event(), threading.Event()

    def stop(self) -> None:
        self.stops += 1
        self.stopped.set()


def tied() -> tuple[Tie, Heard, socket.socket]:
    ours, its = socket.socketpair()
    ours.settimeout(10)
    heard = Heard()
    return Tie(its.detach(), heard.stop, heard.gone.set), heard, ours


def test_the_parent_hears_where_the_process_listens() -> None:
    tie, heard, parent = tied()
    with parent:
        tie.listens("127.0.0.1:8080")
        assert parent.recv(100) == b"listens 127.0.0.1:8080\n"
    assert heard.gone.wait(10)


def test_a_parent_that_says_stop_is_heard_and_is_not_gone() -> None:
    _, heard, parent = tied()
    with parent:
        parent.sendall(STOP)
        assert heard.stopped.wait(10)
        assert not heard.gone.is_set()
    assert heard.gone.wait(10)
    assert heard.stops == 1


def test_a_parent_that_is_gone_is_noticed_and_telling_it_is_no_error() -> None:
    tie, heard, parent = tied()
    parent.close()
    assert heard.gone.wait(10)
    tie.listens("127.0.0.1:8080")
    assert not heard.stopped.is_set()


def test_what_the_process_begins_does_not_get_the_socket() -> None:
    ours, its = socket.socketpair()
    os.set_inheritable(its.fileno(), True)
    descriptor, heard = its.detach(), Heard()
    with ours:
        Tie(descriptor, heard.stop, heard.gone.set)
        assert not os.get_inheritable(descriptor)
    assert heard.gone.wait(10)


def test_a_place_without_a_socket_is_refused_in_words() -> None:
    read, write = os.pipe()
    os.close(write)
    os.close(read)
    with pytest.raises(UsageError, match="only the parent of several processes"):
        Tie(read, lambda: None, lambda: None)


@pytest.mark.parametrize("text", ["", "1", "1/2", "a/b/c", "1/2/3/4"])
def test_a_place_is_what_a_parent_wrote(text: str) -> None:
    assert ProcessPlace.parse("2/3/7") == ProcessPlace(2, 3, 7)
    assert str(ProcessPlace(2, 3, 7)) == "2/3/7"
    with pytest.raises(UsageError, match="only their parent gives one"):
        ProcessPlace.parse(text)
