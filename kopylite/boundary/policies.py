"""What a failure of each kind of user's function means, as data. A reconcile's own is `controller/outcome.py`."""

from __future__ import annotations

import msgspec

from kopylite.troubleshooting import Trouble


class GuardPolicy(msgspec.Struct, frozen=True):
    """What happens when a function of the user fails. Every failure is also counted, by `what` and name.

    Attributes:
        what: the function's kind, for people: "map function".
        then: what follows a failure, as the end of its log line.
        first_retry: seconds until it is called again; it doubles with each failure in a row. None: it isn't, because
            `then` is an answer that loses nothing.
        longest_retry: where the doubling ends.
    """

    what: str
    then: str
    first_retry: float | None = None
    longest_retry: float = 60.0


# A map function that fails usually lacks a permission or a server.
MAP = GuardPolicy("map function", "it is called again", 0.1)
PERIODIC = GuardPolicy("periodic function", "the round is repeated", 1.0)
CHANNEL = GuardPolicy("channel", "it is opened again", 1.0)
# A run too many is harmless, a lost event is not.
PREDICATE = GuardPolicy("predicate", "the event passes")
INDEX = GuardPolicy("index function", "the object is left out of the index")
TASK = GuardPolicy("task", "it is begun again", 1.0)
CHECK = GuardPolicy("health check", "the check counts as failed")
COLLECTOR = GuardPolicy("metrics collector", "its metrics are left out of this scrape")
# Not even "ignored" by a failurePolicy: a validator that broke has decided nothing.
WEBHOOK = GuardPolicy("webhook", f"the request is refused. See {Trouble.WEBHOOK}")
