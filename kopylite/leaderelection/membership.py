"""Membership: keeps a Roster in touch with the Leases, and tells the electors of the shards which to stand for."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import anyio
import msgspec

from kopylite.client import Transport
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import AlreadyExists, Conflict, Forbidden, KopyliteError, NotFound
from kopylite.leaderelection.elector import Elector
from kopylite.leaderelection.lease import Lease, absent, micro_time
from kopylite.leaderelection.observer import ElectionObserver
from kopylite.leaderelection.requests import LeaseRequests
from kopylite.leaderelection.roster import COUNT, REPLICA, SHARD, SHARDS_OF, Plan, Roster
from kopylite.leaderelection.settings import LeaseSettings

logger = logging.getLogger("kopylite.leaderelection")


class MembershipStatistics(msgspec.Struct, frozen=True):
    """How a replica shares the work.

    Attributes:
        replicas: how many take part, as far as is known.
        shards: how many there are.
        held: how many this one works on.
        rebalances: how often its part has changed, or the number of those who take part.
        blocked: whether it may take none, since others are at work with another number of shards.
    """

    replicas: int
    shards: int
    held: int
    rebalances: int
    blocked: bool


class Post(msgspec.Struct, frozen=True):
    """One shard: its elector, and what ends its work in order, if there is any, so that the Lease is given back."""

    elector: Elector
    hand_over: Callable[[], None]


class Membership:
    """One replica of several that split the work: says that it is there, sees who else is, and takes its fair part.

    Args:
        settings: of its own Lease, which nobody else writes.
        roster: decides.
        posts: of the shards, by their number.
        transport: as the electors'.
        clock: of everything.
        observer: told of what is forbidden.
    """

    def __init__(
        self,
        settings: LeaseSettings,
        roster: Roster,
        posts: Sequence[Post],
        transport: Transport,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observer: ElectionObserver | None = None,
    ) -> None:
        self.roster = roster
        self.plan = Plan(frozenset(), 1)
        self.problem = ""
        self.rebalances = 0
        self._reached: float | None = None
        self._settings = settings
        self._posts = posts
        self._requests = LeaseRequests(transport, settings.namespace, settings.request_timeout)
        self._clock = clock
        self._observer = observer or ElectionObserver()
        self._own: Lease | None = None
        self._told = ""
        self._soon = anyio.Event()

    @property
    def held(self) -> list[int]:
        """The shards that this replica works on."""
        return [shard for shard, post in enumerate(self._posts) if post.elector.leading]

    @property
    def unreached_for(self) -> float:
        """Seconds since the Leases were last read and our own was written; 0 before the first try."""
        return 0.0 if self._reached is None else self._clock.elapsed() - self._reached

    def statistics(self) -> MembershipStatistics:
        """How it stands at this moment."""
        plan, held = self.plan, len(self.held)
        return MembershipStatistics(plan.replicas, self.roster.shards, held, self.rebalances, bool(plan.blocked))

    def leave(self) -> None:
        """Take no more shards. Those that are held are for their electors to give back."""
        self.roster.leave()
        self._soon.set()

    async def run(self) -> None:
        """Until cancelled, and then its own Lease is deleted."""
        clock, period = self._clock, self._settings.retry_period
        self._reached = clock.elapsed()
        try:
            while True:
                self._soon = anyio.Event()
                state = self.roster.state
                await self._look()
                self._carry_out()
                if self.roster.state != state:
                    continue
                with anyio.move_on_after(period * (0.6 + 0.4 * clock.random())):
                    await self._soon.wait()
        finally:
            with anyio.move_on_after(self._settings.request_timeout, shield=True):
                await self._try(self._withdraw)

    async def _look(self) -> None:
        """Write our own Lease, and read all."""
        if await self._try(self._write) and await self._try(self._read):
            self._reached = self._clock.elapsed()
            if self.problem:
                self.problem = ""
                logger.info("the leases of the shards of %s can be read and written again", self.roster.name)
        for lease in self.roster.litter(self._clock.elapsed()):
            await self._try(partial(self._clear, lease))

    def _carry_out(self) -> None:
        """Do what the roster says."""
        plan = self.roster.plan(self.held, self._clock.elapsed())
        if plan != self.plan:
            self.rebalances += 1
            logger.info(
                "shards of %s: %d of %d for this replica, of %d", self.roster.name, len(plan.wanted),
                self.roster.shards, plan.replicas,
            )  # fmt: skip
        if plan.blocked and plan.blocked != self._told:
            logger.warning("shards of %s: %s", self.roster.name, plan.blocked)
        self._told, self.plan = plan.blocked, plan
        for shard, post in enumerate(self._posts):
            if shard in plan.wanted:
                post.elector.stand()
            else:
                post.elector.stand_back()
                post.hand_over()

    async def _write(self) -> None:
        """Say that we are there: create our Lease, or renew it."""
        clock, roster = self._clock, self.roster
        began, state, known = clock.elapsed(), roster.state, self._own
        stamp = micro_time(clock.now())
        lease = known or absent(self._settings.name, self._settings.namespace)
        wish = lease.labelled(self._labels(state)).written(
            holder=roster.identity,
            duration=int(self._settings.lease_duration),
            acquired=lease.acquired or stamp,
            renewed=stamp,
            transitions=0,
        )
        try:
            self._own = await self._requests.put(wish)
        except (AlreadyExists, Conflict, NotFound):
            # An answer was lost, or somebody has written to it, or deleted it: the next look goes on from there.
            self._own = await self._requests.get(self._settings.name)
            self._soon.set()
            return
        roster.wrote(state, began, clock.elapsed(), anew=known is None)

    async def _read(self) -> None:
        asked = self._clock.elapsed()
        leases = await self._requests.list(f"{SHARDS_OF}={self.roster.name}")
        self.roster.saw(leases, asked, self._clock.elapsed())
        for lease in leases:
            for post in self._posts:
                if lease.wire["metadata"].get("name") == post.elector.settings.name:
                    post.elector.saw(lease)

    async def _withdraw(self) -> None:
        """Delete our own Lease: as we know it, or else as a write has left it that was cancelled on its way."""
        for known in (self._own, None, None):
            lease = known or await self._requests.get(self._settings.name)
            if lease is None or lease.holder != self.roster.identity:
                return
            try:
                await self._requests.delete(lease)
            except Conflict:
                continue
            except NotFound:
                pass
            return

    async def _clear(self, lease: Lease) -> None:
        with suppress(NotFound, Conflict):  # it is gone, or lives after all
            await self._requests.delete(lease)

    def _labels(self, state: str) -> dict[str, str]:
        return {SHARDS_OF: self.roster.name, COUNT: str(self.roster.shards), REPLICA: state}

    async def _try(self, act: Callable[[], Awaitable[None]]) -> bool:
        """Whether it worked; what fails is told once."""
        try:
            await act()
        except (KopyliteError, OSError) as error:
            if isinstance(error, Forbidden):
                self._observer.forbidden(error)
            level = logging.DEBUG if self.problem else logging.WARNING
            logger.log(level, "the leases of the shards of %s: %s", self.roster.name, error)
            self.problem = str(error)
            return False
        return True


def shard_labels(name: str, shard: int, shards: int) -> dict[str, str]:
    """What the Lease of a shard says."""
    return {SHARDS_OF: name, COUNT: str(shards), SHARD: str(shard)}
