"""The boundary: where bytes and functions that kopylite did not write come in. Two guards, and their policies.

- **Foreign bytes** (`reading.py`): whatever parses bytes from outside (an answer, a line of a stream, discovery, a
  Status, a file, a plugin's output) runs in `read`. For any bytes at all it returns, or raises the one error that
  its docstring promises. One object that no decoder takes is told from its neighbours, and named, by `jsontext.py`.
  A parser's RecursionError, MemoryError or KeyError is that parser's way to say "unreadable".
- **The user's functions** (`calling.py`): whatever calls one (reconcile, map, periodic, channel, predicate, index,
  health check) does it through a `Guard`, or, for the two hot loops that can't afford one, in a `try` that asks
  `ends_process`. What it raises concerns the call: it is logged, counted and, where the policy says so, retried.

Texts of foreign exceptions and values reach a log only through `say` and `show` (`words.py`).

What still ends the process, and why:

    KeyboardInterrupt     a person wants the program to end
    GeneratorExit         the coroutine is being closed, so nobody waits for it any more
    cancellation          of the task, by whoever runs it; a CancelledError that the user's code made up is an error

What does not, though it could be thought to:

    SystemExit            a library that calls sys.exit() for one object must not stop the reconciles of all others
    MemoryError           the allocation that failed was the call's own; if memory is really out, the next one that the
                          runtime makes fails outside of a guard, and ends the process
    RecursionError        the depth was the call's own, and is gone when it is caught

`tests/test_architecture.py` shows that no parser and no function of the user is called anywhere else.
"""

from __future__ import annotations

from kopylite.boundary.calling import (
    PATIENCE,
    ActiveCall,
    CallFailed,
    Guard,
    Patience,
    cancelled_from_outside,
    defined_at,
    ends_process,
    in_context,
    in_fresh_context,
    is_library,
    name_of,
    place_of,
)
from kopylite.boundary.jsontext import depth, elements, members
from kopylite.boundary.policies import (
    CHANNEL,
    CHECK,
    COLLECTOR,
    INDEX,
    MAP,
    PERIODIC,
    PREDICATE,
    TASK,
    WEBHOOK,
    GuardPolicy,
)
from kopylite.boundary.reading import json_object, read, seconds_to_wait
from kopylite.boundary.words import printable, say, show

__all__ = [
    "CHANNEL",
    "CHECK",
    "COLLECTOR",
    "INDEX",
    "MAP",
    "PATIENCE",
    "PERIODIC",
    "PREDICATE",
    "TASK",
    "WEBHOOK",
    "ActiveCall",
    "CallFailed",
    "Guard",
    "GuardPolicy",
    "Patience",
    "cancelled_from_outside",
    "defined_at",
    "depth",
    "elements",
    "ends_process",
    "in_context",
    "in_fresh_context",
    "is_library",
    "json_object",
    "members",
    "name_of",
    "place_of",
    "printable",
    "read",
    "say",
    "seconds_to_wait",
    "show",
]
