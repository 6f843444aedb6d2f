"""Candidate: all decisions of one candidate for one Lease. No I/O, and no clock: times are arguments.

The rules, of which the first two are client-go's:

- **Own time only.** A record that differs from the last one counts as renewed at the moment it is seen. The others
  wait for its duration from then on; the holder stops at its deadline, which is shorter, from the moment when it *sent*
  the renewal. So clocks may show anything, and run at speeds that differ by up to duration / deadline.
  Another version with an equal record is no renewal, or whoever labels a Lease all the time keeps it for the dead.
  So a record that somebody sets back by hand, to the very time that was seen before, hides the renewals between.
- **The resourceVersion decides.** Every write is for the state that was read, so of several only one succeeds.
- **Free at once is only what its holder gave back, and what never was held.** A Lease that was deleted, emptied or
  given to another by hand may still have a leader who does not know: everybody waits once more. So where there is no
  Lease, one is made that names nobody, and left alone for its time: it may have just been deleted, and again after
  that, so to have seen none for long means nothing.
- **One's own is what one wrote.** A record of our name that was never sent from here is somebody else's.

tests/properties/test_leaderelection_candidate.py plays random histories: at no moment are there two leaders.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from datetime import datetime, timedelta

from kopylite.leaderelection.lease import RELEASED_SECONDS, Lease, absent, micro_time
from kopylite.leaderelection.settings import LeaseSettings

NEVER = float("-inf")
# The pause between looks is this much longer at most, as client-go's.
SPREAD = 1.2
# The shortest pause after a renewal that failed.
SHORTEST = 0.05
# Writes without an answer that are remembered: more than a lease's time has room for.
UNANSWERED = 256


class Candidate:
    """Knows a Lease as far as it was seen, and says what may be done.

    `now` is always by the process's own clock, in seconds, and never goes back.

    Attributes:
        known: the last state that was seen; None: there was no Lease, or nothing was seen yet.
        lead_until: until when we lead; it has passed, or is `NEVER`, if we do not.
        free_at: when the Lease may be claimed, if it stays as it is.
    """

    def __init__(self, identity: str, settings: LeaseSettings) -> None:
        self.identity = identity
        self.settings = settings
        self.known: Lease | None = None
        self.lead_until = NEVER
        self.free_at = NEVER
        self._seen = False
        # What of ours may be stored: the last write that was answered, and those since then that were not.
        self._answered: object = None
        self._open: deque[object] = deque(maxlen=UNANSWERED)
        self._renewed_at = NEVER

    # What is learned

    def saw(self, found: Lease | None, now: float) -> None:
        """The server has shown a state; None: there is no Lease."""
        before, first = self.known, not self._seen
        self.known, self._seen = found, True
        if not first and _record(found) == _record(before):
            return
        self.free_at = now + self._hold(found, before, now)

    def sends(self, wish: Lease) -> None:
        """A write begins, and nobody knows yet what comes of it."""
        if wish.version:  # what is created has no version to tell when it was stored, so it never counts as ours
            self._open.append(wish.record)

    def refused(self, wish: Lease) -> None:
        """A write was answered with a refusal: nothing will come of it."""
        with suppress(ValueError):  # more were sent since than are remembered
            self._open.remove(wish.record)

    def wrote(self, wish: Lease, stored: Lease, began: float, now: float) -> bool:
        """A write was answered with what is stored now. Whether we lead; counted from when the write began."""
        self.saw(stored, now)
        if stored.record == wish.record and wish.version:
            self._answered = stored.record
            self._open.clear()
            self._renewed_at = began
            self.lead_until = began + self.settings.renew_deadline if stored.holder else NEVER
        return self.leads(now)

    def stopped(self) -> None:
        """We do not lead any more, whatever the Lease says."""
        self.lead_until = NEVER

    # What may be done

    def leads(self, now: float) -> bool:
        return now < self.lead_until

    def is_ours(self, lease: Lease | None) -> bool:
        """Whether we have written this state: nobody else can lead by it."""
        return lease is not None and (lease.record == self._answered or lease.record in self._open)

    def may_claim(self, now: float) -> bool:
        """Whether `claim` may be written: nobody leads, as far as is known; the server knows better."""
        return self._seen and (now >= self.free_at or self._holds)

    @property
    def known_holder(self) -> str:
        return self.known.holder if self.known else ""

    @property
    def unsettled(self) -> bool:
        """The Lease may name us: by what was seen last, or by a write whose answer was lost."""
        return bool(self._open) or self._holds

    @property
    def _holds(self) -> bool:
        return self.is_ours(self.known) and bool(self.known_holder)

    @property
    def deposed(self) -> bool:
        """Of a leader: the Lease is there, and names somebody else or nobody. One that is gone, it makes anew."""
        return self.known is not None and self.known.holder != self.identity

    def claim(self, now: float, wall: datetime) -> Lease:
        """What to write to lead, or to go on, if the known state still stands; when `may_claim`, or as leader.

        Where there is no Lease: one that names nobody, or the leader's own anew. That prolongs nothing by itself.
        """
        known = (self.known or absent(self.settings.name, self.settings.namespace)).labelled(self.settings.labels)
        stamp, ours = self._stamp(wall), known.holder == self.identity and bool(known.acquired)
        return known.written(
            holder="" if self.known is None and not self.leads(now) else self.identity,
            duration=int(self.settings.lease_duration),
            acquired=known.acquired if ours else stamp,
            renewed=stamp,
            transitions=known.transitions + (bool(known.acquired) and not ours),
        )

    def release(self, wall: datetime) -> Lease | None:
        """What to write to give the Lease back; None: it is not ours, as far as is known."""
        known = self.known
        if known is None or not known.holder or not self.is_ours(known):
            return None
        stamp = self._stamp(wall)
        return known.written(
            holder="", duration=RELEASED_SECONDS, acquired=stamp, renewed=stamp, transitions=known.transitions
        )

    # When

    def look_in(self, now: float, random: float) -> float:
        """Seconds until the next look at a Lease that somebody else holds; sooner, if it becomes free."""
        pause = self.settings.retry_period * (1 + SPREAD * random)
        return min(pause, self.free_at - now) if now < self.free_at else pause

    def renew_in(self, now: float, random: float, *, failed: bool) -> float:
        """Seconds until the next renewal; after one that failed, sooner as the deadline comes near."""
        period = self.settings.retry_period
        if failed:
            return max(SHORTEST, min(period, (self.lead_until - now) / 2))
        return max(0.0, self._renewed_at + period * (0.9 + 0.2 * random) - now)

    def _hold(self, found: Lease | None, before: Lease | None, now: float) -> float:
        """How long a state that is news has to be left alone."""
        if found is None:  # a leader that goes on makes it anew at its next renewal, and had better be the first
            return 2 * self.settings.retry_period if before is not None else 0.0
        if found.released:
            return 0.0
        still = before.duration if before is not None and before.holder else 0.0
        if found.unused:
            # Whoever led by what stood there before may not know yet that it is gone.
            return max(still, self.free_at - now, 0.0)
        return max(found.duration, still, self.settings.lease_duration)

    def _stamp(self, wall: datetime) -> str:
        """The time for people; never the one that stands there: the others would see no renewal."""
        stamp = micro_time(wall)
        if self.known is not None and stamp == self.known.renewed:
            stamp = micro_time(wall + timedelta(microseconds=1))
        return stamp


def _record(lease: Lease | None) -> object:
    return None if lease is None else lease.record
