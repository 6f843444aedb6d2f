"""What the lower rooms report, as small protocols; the defaults do nothing.

Rooms call these; `metrics` implements them. Gauges are not pushed: whoever wants them asks the live object's
`statistics()` when it is scraped. All methods are called from the event loop, must not block and must not raise.
"""

from __future__ import annotations


class QueueObserver:
    """Told by a WorkQueue. Times are in seconds.

    Attributes:
        adds: keys that became ready to run.
        retries: keys that were added with a delay (a retry, or a requeue_after). The queue itself counts in both: a
            call would cost more than all else of it.
    """

    __slots__ = ("adds", "retries")

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0

    def taken(self, waited: float) -> None:
        """A worker got an item that had been ready for `waited`."""

    def done(self, worked: float) -> None:
        """A worker finished an item after `worked`."""


class ReconcileObserver:
    """Told by a Controller, once per finished run."""

    __slots__ = ()

    def finished(self, result: str, seconds: float) -> None:
        """`result` is one of success, error, requeue, requeue_after."""

    def failed(self, *, terminal: bool, timeout: bool, crashed: bool) -> None:
        """The run counts as an error; `crashed`: the exception was none of kopylite's or the API's."""

    def conflicted(self) -> None:
        """A 409 Conflict: retried quietly."""

    def postponed(self) -> None:
        """The run raised a Retry: something that it needs is not there yet."""

    def object_rejected(self) -> None:
        """A stored object did not fit its model."""


class InformerObserver:
    """Told by the cache about one informer."""

    __slots__ = ()

    def event(self, kind: str) -> None:
        """`kind` is one of added, modified, deleted, bookmark."""

    def relisted(self) -> None:
        """A full list began, the first one included."""

    def watch_failed(self, reason: str) -> None:
        """A list or watch ended with an error; `reason` is an exception's class name."""

    def index_failed(self, name: str) -> None:
        """An index function failed on an object."""

    def ended(self) -> None:
        """Its last user has given the informer back."""


class ClientObserver:
    """Told by the client, once per HTTP attempt."""

    __slots__ = ()

    def requested(self, *, method: str, host: str, code: str, seconds: float) -> None:
        """`code` is the HTTP status, or "<error>" when none came."""
