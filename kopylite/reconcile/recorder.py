"""EventRecorder: publishes Events (events.k8s.io/v1), the lines at the end of `kubectl describe`.

Publishing must never cost a reconcile anything: `event()` only notes, one task sends, and what cannot be sent is
dropped in the end. Three things keep the server from being flooded:

- Repeats. The same words about the same object (its uid, not its version) are one Event with a count. The second
  occurrence is written at once, later ones at most every SERIES_INTERVAL, and the last count at the end.
- Bursts. An object has BURST different Events free; then one more each 1/PER_SECOND seconds.
- Memory. At most MAX_SERIES are remembered, unsent ones included.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import anyio
import msgspec

from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import (
    AlreadyExists,
    ApiError,
    Forbidden,
    KopyliteError,
    NamespaceNotFound,
    NamespaceTerminating,
    NotFound,
    TransportError,
)
from kopylite.objects import Kind, Unstructured, key_of, kind_of, meta_of
from kopylite.reconcile.causes import Causes, Line, alike
from kopylite.reconcile.request import Request
from kopylite.redaction import redact
from kopylite.workqueue.ratelimiters import TokenBucket

if TYPE_CHECKING:
    from kopylite.client import LiveClient

logger = logging.getLogger("kopylite.events")

Severity = Literal["Normal", "Warning"]
INVALID_OBJECT = "InvalidObject"
"""The reason of the Event about an object that does not fit its model."""
RECREATED = "Recreated"
"""The reason of the Event about the owner of an object that was deleted to be made anew."""

EVENT = Kind("events.k8s.io/v1", "Event", plural="events", namespaced=True)

# The API server's limits, in bytes of UTF-8, whatever its own messages say.
MAX_REASON = 128
MAX_NOTE = 1024
# client-go's spam filter: 25 Events of an object at once, then one in five minutes.
BURST = 25
PER_SECOND = 1 / 300
# client-go's bound.
MAX_SERIES = 4096
# client-go writes a series 6 minutes after its last repeat; people who debug don't wait that long.
SERIES_INTERVAL = 60.0
# A series that was not repeated for so long is over (client-go's 6 minutes); the next occurrence is a new Event.
SERIES_LIFE = 360.0
# client-go tries 12 times, 10 s ± 25 % apart, as long as no answer came.
TRIES = 12
RETRY_INTERVAL = 10.0


_Key = tuple[str, ...]


class _Series(msgspec.Struct):
    """One Event and its repeats.

    Attributes:
        count: how often it occurred.
        written: the count that the server was told.
        before: the part of it that stands in an earlier Event, which the server has no more.
        last_seen: when it last occurred.
        not_before: the earliest moment to write it.
        tries: failed ones in a row.
    """

    event: Unstructured
    count: int
    last_seen: float
    written: int = 0
    before: int = 0
    not_before: float = 0.0
    tries: int = 0


class EventRecorder:
    """Notes Events and publishes them in the background; run() is the background.

    Args:
        client: sends them; may `create` and `patch` events in the group events.k8s.io.
        controller: reportingController, e.g. "example.com/myapp".
        instance: reportingInstance, e.g. the pod's name.
        clock: of the time stamps and intervals.
        on_forbidden: told of each Event that the API server refused to take.
    """

    def __init__(
        self,
        client: LiveClient,
        *,
        controller: str,
        instance: str,
        clock: Clock = SYSTEM_CLOCK,
        on_forbidden: Callable[[Forbidden], None] = lambda error: None,
    ) -> None:
        self._client = client
        self._on_forbidden = on_forbidden
        self._losses = Causes()
        self._controller = controller
        self._instance = cut(instance, MAX_REASON)
        self._clock = clock
        # By what makes two Events the same; the least recently seen first.
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        # The series whose count the server does not know.
        self._pending: dict[_Key, _Series] = {}
        # By object; the least recently used first.
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._wake = anyio.Event()
        # flush() may be called while run() runs, and each count is to be told once.
        self._publishing = anyio.Lock()

    def event(
        self,
        regarding: Any,
        reason: str,
        note: str,
        *,
        type: Severity = "Normal",  # noqa: A002  (the field's name)
        action: str = "Reconcile",
        related: Any = None,
    ) -> None:
        """Note an Event about an object. Returns at once; a failure to publish is logged, never raised.

        Args:
            regarding: the object, in any form, as read from the server.
            reason: why, as one CamelCase word for programs, e.g. "CreatedDeployment".
            note: why, as a sentence for people; redacted as a log is, and cut at 1024 bytes of UTF-8.
            type: "Warning" for what somebody should look at.
            action: what was done or tried, as one CamelCase word.
            related: a second object that matters, e.g. the one that was created.
        """
        words = {
            "type": type,
            "reason": cut(reason, MAX_REASON),
            "action": cut(action, MAX_REASON),
            "note": cut(redact(note), MAX_NOTE),
        }
        about = _reference(regarding)
        other = None if related is None else _reference(related)
        key = (_identity(about), *words.values(), _identity(other) if other else "")
        now = self._clock.monotonic()
        series = self._series.get(key)
        if series is not None and now - series.last_seen <= SERIES_LIFE:
            series.count += 1
            series.last_seen = now
        elif self._may_publish(key[0], now):
            series = self._series[key] = _Series(self._make(about, other, words), 1, now)
        else:
            logger.debug("Event %s about %s dropped: too many", reason, about["name"])
            return
        self._series.move_to_end(key)
        self._pending[key] = series
        self._wake.set()

    async def run(self) -> None:
        """Publish until cancelled. Call flush() afterwards."""
        while True:
            self._wake = anyio.Event()
            now = self._clock.monotonic()
            async with self._publishing:
                for key, series in list(self._pending.items()):
                    if series.not_before <= now:
                        await self._publish(key, series)
            self._say(self._losses.due(self._clock.monotonic()))
            times = [series.not_before for series in self._pending.values()]
            wait = max(0.0, min(times) - self._clock.monotonic()) if times else None
            with anyio.move_on_after(wait):
                await self._wake.wait()

    async def flush(self) -> None:
        """Publish what is pending, each once, without regard to intervals. For the end; give it a limit."""
        async with self._publishing:
            for key, series in list(self._pending.items()):
                await self._publish(key, series)
        self._say(self._losses.due(self._clock.monotonic(), all_of_them=True))

    def _may_publish(self, about: str, now: float) -> bool:
        """Whether there is room for one more series, and the object may have one more."""
        if len(self._series) >= MAX_SERIES:
            oldest = next(iter(self._series))
            if oldest in self._pending:
                return False
            del self._series[oldest]
        bucket = self._buckets.get(about)
        if bucket is None:
            bucket = self._buckets[about] = TokenBucket(PER_SECOND, BURST)
            if len(self._buckets) > MAX_SERIES:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(about)
        return bucket.try_take(now)

    def _make(self, about: dict[str, str], other: dict[str, str] | None, words: dict[str, str]) -> Unstructured:
        event = Unstructured(
            apiVersion=EVENT.api_version,
            kind=EVENT.kind,
            metadata=self._new_metadata(about),
            eventTime=_micro_time(self._clock.now()),
            reportingController=self._controller,
            reportingInstance=self._instance,
            regarding=about,
            **words,
        )
        if other is not None:
            event["related"] = other
        return event

    def _new_metadata(self, about: dict[str, str]) -> dict[str, str]:
        return {"name": self._name_for(about["name"]), "namespace": about.get("namespace") or "default"}

    def _name_for(self, about: str) -> str:
        """The object's name first, so that Events sort by it; where that fits no Event, just something unique."""
        unique = self._clock.uuid()
        fits = len(about) <= 200 and all("a" <= c <= "z" or "0" <= c <= "9" or c in "-." for c in about)
        return f"{about}.{unique.replace('-', '')[-16:]}" if fits else unique

    async def _publish(self, key: _Key, series: _Series) -> None:
        count = series.count
        try:
            await self._send(series)
        except TransportError as error:
            series.tries += 1
            if series.tries < TRIES:
                pause = RETRY_INTERVAL * (0.75 + 0.5 * self._clock.random())
                series.not_before = self._clock.monotonic() + pause
                return
            self._note_loss(series, error)
        except KopyliteError as error:
            self._note_loss(series, error)
        else:
            self._losses.worked(_about(series))
        # The first repeat is news; the later ones can wait.
        series.not_before = self._clock.monotonic() + SERIES_INTERVAL if series.written or count > 1 else 0.0
        series.written = count
        series.tries = 0
        # While this one was sent, another may have begun under its key.
        if series.count == count and self._pending.get(key) is series:
            del self._pending[key]

    def _note_loss(self, series: _Series, error: KopyliteError) -> None:
        """Say that an Event is lost: in full what is new, and how often the same happened from time to time."""
        about, text = _about(series), f"Event {series.event['reason']} was not published: {error}"
        if isinstance(error, NamespaceTerminating | NamespaceNotFound):  # nobody will miss it
            logger.debug("%s", text)
            return
        if isinstance(error, Forbidden):
            self._on_forbidden(error)
            text += "; let it create and patch events of events.k8s.io"
        message = error.message if isinstance(error, ApiError) else str(error)
        cause = (type(error).__name__, alike(message, about))
        if self._losses.failed(cause, about, self._clock.monotonic(), Line(logging.WARNING, text)):
            logger.warning("%s", text)
        else:
            logger.debug("%s", text)

    def _say(self, lines: Iterable[Line]) -> None:
        for line in lines:
            logger.log(line.level, "%s", line.text)

    async def _send(self, series: _Series) -> None:
        """Have the server know the count of a series: by a patch, or by a new Event where it has none."""
        if series.written > series.before:
            try:
                await self._client.patch(EVENT, series.event, self._repeats(series))
                return
            except NotFound:
                # The server forgets Events within an hour, and people delete them. What came since is a new one.
                series.before = series.written
                series.event["metadata"] = self._new_metadata(series.event["regarding"])
                series.event["eventTime"] = _micro_time(self._clock.now())
        repeats = self._repeats(series) if series.count - series.before > 1 else {}
        try:
            await self._client.create(Unstructured({**series.event, **repeats}))
        except AlreadyExists:
            # Its name is unique: this is the one of a try whose answer was lost, with the count of that time.
            if repeats:
                await self._client.patch(EVENT, series.event, repeats)

    def _repeats(self, series: _Series) -> dict[str, Any]:
        count = series.count - series.before
        return {"series": {"count": count, "lastObservedTime": _micro_time(self._clock.now())}}


def cut(text: str, limit: int) -> str:
    """As much of a text as fits into `limit` bytes of UTF-8, in whole characters."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def is_publishable(obj: Unstructured | None) -> TypeGuard[Unstructured]:
    """Whether an object that does not fit its model says at least who it is."""
    return obj is not None and bool(obj.api_version and obj.kind and obj.name)


def _about(series: _Series) -> Request:
    regarding = series.event["regarding"]
    return Request(regarding.get("namespace", ""), regarding["name"])


def _reference(obj: Any) -> dict[str, str]:
    """An ObjectReference without the resourceVersion: repeats about a changing object are still repeats."""
    kind, key = kind_of(obj), key_of(obj)
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": key.name}
    if key.namespace:
        reference["namespace"] = key.namespace
    if uid := meta_of(obj).get("uid"):
        reference["uid"] = uid
    return reference


def _identity(reference: dict[str, str]) -> str:
    return reference.get("uid") or f"{reference['kind']}/{reference.get('namespace', '')}/{reference['name']}"


def _micro_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
