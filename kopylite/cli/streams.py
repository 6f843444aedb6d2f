"""The standard streams of this process: closed ones, full ones, and those that nobody reads."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

# As a shell names the end by SIGPIPE.
UNREAD = 141
# EX_IOERR of sysexits.h.
UNWRITTEN = 74


def open_streams() -> None:
    """Have what was closed lead nowhere, as Go's runtime does. Python has None there, and the next file or socket that
    is opened would get its number: what a library writes to number 2 would go to the API server."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            _lead_nowhere(number)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def announce(*lines: str) -> None:
    """Print what is no result, only good to know: that nobody can be told it ends nothing."""
    with suppress(OSError):
        print(*lines, sep="\n", flush=True)


def code_of_unwritten(error: OSError) -> int:
    """The exit code when the output cannot be written, which is told unless its reader has gone, as `head` does. After
    that it leads nowhere.

    Raises:
        OSError: the error, which was about something else.
    """
    try:
        print(flush=True)  # of an unbuffered stdout, there is nothing left to flush
    except OSError as problem:
        _lead_nowhere(sys.stdout.fileno())
        if isinstance(problem, BrokenPipeError):
            return UNREAD
        with suppress(OSError):
            print(f"kopylite: the output cannot be written: {problem.strerror}", file=sys.stderr)
        return UNWRITTEN
    raise error


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, number)
    if nowhere != number:
        os.close(nowhere)
    os.set_inheritable(number, True)
