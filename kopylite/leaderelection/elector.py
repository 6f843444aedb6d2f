"""Elector: keeps one candidate in touch with its Lease, and runs what only the leader may run.

Carries out what `candidate.py` decides. It holds nothing global: N of them in one process stand for N Leases.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import anyio

from kopylite.client import Transport
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import AlreadyExists, ApiError, Conflict, Forbidden, KopyliteError, NamespaceNotFound, NotFound
from kopylite.leaderelection.candidate import Candidate
from kopylite.leaderelection.fence import Fence
from kopylite.leaderelection.lease import Lease
from kopylite.leaderelection.observer import ElectionObserver
from kopylite.leaderelection.requests import LeaseRequests
from kopylite.leaderelection.settings import LeaseSettings
from kopylite.leaderelection.term import Term

logger = logging.getLogger("kopylite.leaderelection")

# Tries to give a Lease back while others write to it.
RELEASES = 3

Lead = Callable[[], Awaitable[None]]
"""What only the leader runs. It is cancelled when the lease is lost; when it returns, the lease is given back."""


class Elector:
    """One candidate for one Lease: campaigns, leads, and campaigns again, for as long as `run` runs.

    Guarantees, as far as clocks of two machines run at speeds that differ by less than duration / deadline:

    - `lead` is cancelled, and the fence is closed, no later than `renew_deadline` after the last renewal was sent, and
      nobody else leads before `lease_duration` after it.
    - The Lease is given back when `lead` has ended, and only if it still names us. Not if a write of `lead` is
      without an answer: then it runs out by itself, so that the server has time to be done with it.
    - Whatever ends `run`, cancellation and errors of `lead` too, the Lease is given back so.

    Args:
        settings: which Lease, and its times.
        identity: of this process, unique: the Lease shows it.
        transport: of its own, so that no other request of this process delays a renewal.
        clock: of everything.
        observer: told of changes.
        may_claim: asked before each try to take the Lease, if there is more to it than that it is free.
        standing: whether it campaigns from the beginning, or only from `stand` on.
    """

    def __init__(
        self,
        settings: LeaseSettings,
        identity: str,
        transport: Transport,
        *,
        clock: Clock = SYSTEM_CLOCK,
        observer: ElectionObserver | None = None,
        may_claim: Callable[[], bool] = lambda: True,
        standing: bool = True,
    ) -> None:
        self.settings = settings
        self.fence = Fence(str(settings), clock)
        self._candidate = Candidate(identity, settings)
        self._requests = LeaseRequests(transport, settings.namespace, settings.request_timeout)
        self._clock = clock
        self._observer = observer or ElectionObserver()
        self._may_claim = may_claim
        self._stands = anyio.Event()
        if standing:
            self._stands.set()
        self._idle = True
        self._stop = anyio.Event()
        self._campaigning = anyio.CancelScope()
        self._wake = anyio.Event()
        self._told_holder: str | None = None
        self._problem = ""
        self._reached = 0.0
        self._abandoned = False
        self._term: Term | None = None

    @property
    def leading(self) -> bool:
        """Whether we lead at this moment."""
        return self.fence.is_open

    @property
    def holder(self) -> str:
        """Who leads, as far as was seen last; "" for nobody."""
        return self._candidate.known_holder

    @property
    def problem(self) -> str:
        """Why the last try to read or write the Lease failed; "" if it did not."""
        return self._problem

    @property
    def unreached_for(self) -> float:
        """Seconds since the Lease was last read or written; 0 before the first try failed."""
        return 0.0 if self._idle else self._clock.elapsed() - self._reached

    @property
    def overdue(self) -> float:
        """For how many seconds work of a leader that has lost its lease has been going on; 0: there is none."""
        return 0.0 if self._term is None else self._term.overdue

    def stop(self) -> None:
        """Campaign no more. A `lead` that runs goes on, and the Lease is renewed, until it returns; so tell it too."""
        self._stop.set()
        self._campaigning.cancel()

    def stand(self) -> None:
        """Campaign from now on. Harmless when repeated."""
        self._stands.set()

    def stand_back(self) -> None:
        """Campaign no more until `stand`. If it leads, it goes on until `lead` returns; so tell that too."""
        if self._stands.is_set():
            self._stands = anyio.Event()
            self._campaigning.cancel()

    def saw(self, lease: Lease) -> None:
        """Somebody else has read the Lease. Counts while it does not stand, since it does not look itself then."""
        if self._idle:
            self._candidate.saw(lease, self._clock.elapsed())

    async def run(self, lead: Lead) -> None:
        """Until `stop` was called, and `lead` has returned."""
        try:
            while not self._stop.is_set():
                with anyio.CancelScope() as self._campaigning:
                    await self._wait_to_stand()
                    await self._campaign()
                if self._candidate.leads(self._clock.elapsed()):
                    await self._lead(lead)
                elif not self._stands.is_set():
                    await self._give_back()  # a claim may have been on its way
        finally:
            await self._give_back()

    # Campaigning

    async def _wait_to_stand(self) -> None:
        self._idle = True
        await self._stands.wait()
        self._idle, self._abandoned, self._reached = False, False, self._clock.elapsed()

    async def _campaign(self) -> None:
        """Until we lead."""
        candidate, clock = self._candidate, self._clock
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow)
            while True:
                self._wake = anyio.Event()
                if await self._attempt(self._claim):
                    break
                self._tell_holder()
                with anyio.move_on_after(candidate.look_in(clock.elapsed(), clock.random())):
                    await self._wake.wait()
            tasks.cancel_scope.cancel()

    async def _claim(self) -> bool:
        """Take the Lease if it is free. What the watch has shown as free needs no other look."""
        if self._claimable() and await self._write():
            return True
        await self._read()
        return self._claimable() and await self._write()

    def _claimable(self) -> bool:
        return self._candidate.may_claim(self._clock.elapsed()) and self._may_claim()

    async def _follow(self) -> None:
        """Watch the Lease, so that a hand-over takes milliseconds. What it misses, the next look finds."""
        while True:
            try:
                await self._watch()
            except Forbidden as error:
                self._observer.forbidden(error)
                return
            except (KopyliteError, OSError) as error:
                logger.debug("the watch on lease %s ended: %s", self.settings, error)
            await self._clock.sleep(self.settings.retry_period * (1 + self._clock.random()))

    async def _watch(self) -> None:
        candidate, clock = self._candidate, self._clock
        version = candidate.known.version if candidate.known else ""
        async with aclosing(self._requests.watch(self.settings.name, version)) as states:
            async for state in states:
                candidate.saw(state, clock.elapsed())
                # By its own writes it is not woken: where their answers are lost at once, that would never end.
                if candidate.may_claim(clock.elapsed()) and not candidate.is_ours(state):
                    self._wake.set()

    def _tell_holder(self) -> None:
        candidate = self._candidate
        holder, wait = candidate.known_holder, candidate.free_at - self._clock.elapsed()
        if self._problem or holder == self._told_holder or (not holder and wait <= 0) or candidate.known is None:
            return
        self._told_holder = holder
        if holder:
            logger.info("lease %s is held by %s: standing by", self.settings, holder)
        else:
            logger.info(
                "lease %s names nobody, and somebody may lead by what was there before: it is left alone for %.0f s "
                "(a Lease without a spec, applied with the operator's manifests, saves a first start this)",
                self.settings,
                wait,
            )

    # Leading

    async def _lead(self, lead: Lead) -> None:
        candidate, clock = self._candidate, self._clock
        won = candidate.known
        assert won is not None
        self.fence.until = candidate.lead_until
        self._told_holder, self._abandoned = None, False
        self._term = term = Term(self.settings, candidate.identity, won, self.fence, clock, self._observer)
        term.begin()
        try:
            with term.scope:
                term.scope.deadline = self._deadline()
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._renew, term)
                    tasks.start_soon(self._note_end, term)
                    await lead()
                    await term.end_in_order()
                    tasks.cancel_scope.cancel()
        finally:
            self._term = None
            term.over()
            candidate.stopped()
        await self._give_back()
        if not self._stop.is_set():
            # Whoever has lost it was in trouble: the others first.
            with anyio.CancelScope() as self._campaigning:
                await clock.sleep(self.settings.retry_period * (1 + clock.random()))

    def _deadline(self) -> float:
        """`lead_until`, as the event loop counts."""
        return anyio.current_time() + self._candidate.lead_until - self._clock.elapsed()

    async def _renew(self, term: Term) -> None:
        """Renew the Lease until the term ends, and end it when the Lease is lost."""
        candidate, clock, failed = self._candidate, self._clock, False
        while True:
            await clock.sleep(candidate.renew_in(clock.elapsed(), clock.random(), failed=failed))
            if not candidate.leads(clock.elapsed()):
                return self._lose(term)
            failed = not await self._attempt(self._prolong)
            if candidate.deposed:
                return self._lose(term)
            if not failed:
                self.fence.until = candidate.lead_until
                term.scope.deadline = self._deadline()

    async def _prolong(self) -> bool:
        """Write the next renewal; if the Lease is another by now, look at it, and once more."""
        if await self._write():
            return True
        await self._read()
        return not self._candidate.deposed and await self._write()

    async def _note_end(self, term: Term) -> None:
        """The deadline may come before anything else has noticed, say while a renewal hangs."""
        try:
            await anyio.sleep_forever()
        finally:
            if term.scope.cancel_called:
                self._lose(term)

    def _lose(self, term: Term) -> None:
        why = f"it was not renewed for {self.settings.renew_deadline:g} s"
        if self._candidate.deposed:
            why = f"it names {self.holder or 'nobody'} now"
        elif self._problem:
            why = f"{why} ({self._problem})"
        term.lose(why)

    # Requests

    async def _attempt(self, act: Callable[[], Awaitable[bool]]) -> bool:
        """Do something with the Lease; what fails is told once."""
        try:
            done = await act()
        except (KopyliteError, OSError) as error:
            self._fail(error)
            return False
        self._reached = self._clock.elapsed()
        if self._problem:
            self._problem = ""
            logger.info("lease %s can be read and written again", self.settings)
        return done

    def _fail(self, error: Exception) -> None:
        text = str(error)
        if isinstance(error, Forbidden):
            self._observer.forbidden(error)
        if isinstance(error, NamespaceNotFound):
            text = f"{text}; create the namespace, or name another (--lease-namespace)"
        logger.log(logging.DEBUG if self._problem else logging.WARNING, "lease %s: %s", self.settings, text)
        self._problem = text

    async def _read(self) -> None:
        found = await self._requests.get(self.settings.name)
        self._candidate.saw(found, self._clock.elapsed())

    async def _write(self) -> bool:
        """Write what makes us leader, or keeps us one. False: the Lease is another than was known."""
        began = self._clock.elapsed()
        wish = self._candidate.claim(began, self._clock.now())
        stored = await self._send(wish)
        return stored is not None and self._candidate.wrote(wish, stored, began, self._clock.elapsed())

    async def _send(self, wish: Lease) -> Lease | None:
        """What is stored then; None: the Lease is another than the one that was known."""
        candidate = self._candidate
        candidate.sends(wish)
        try:
            return await self._requests.put(wish)
        except ApiError as error:
            if error.code < 500:
                candidate.refused(wish)
            if isinstance(error, (Conflict, AlreadyExists, NotFound)) and not isinstance(error, NamespaceNotFound):
                return None
            raise

    async def _give_back(self) -> None:
        """Give the Lease back if it names us, so that nobody waits for its end. Also when we are being cancelled."""
        if not self._candidate.unsettled or self._abandoned:
            return
        self._abandoned = True
        doubt = self._clock.elapsed() - self.fence.last_doubt
        if doubt < self.settings.lease_duration:
            logger.warning(
                "lease %s is left to run out: a write has ended without an answer %.1f s ago, and the server may "
                "carry it out yet",
                self.settings,
                doubt,
            )
            return
        problem: object = "no answer in time"
        with anyio.move_on_after(self.settings.request_timeout, shield=True):
            try:
                if await self._release():
                    return
                problem = "others write to it"
            except (KopyliteError, OSError) as error:
                problem = error
        logger.warning("lease %s could not be given back, and runs out: %s", self.settings, problem)

    async def _release(self) -> bool:
        """Whether the Lease does not name us any more."""
        candidate, clock = self._candidate, self._clock
        for _ in range(RELEASES):
            wish = candidate.release(clock.now())
            if wish is not None and (stored := await self._send(wish)) is not None:
                candidate.wrote(wish, stored, clock.elapsed(), clock.elapsed())
                logger.info("lease %s is given back", self.settings)
                return True
            await self._read()
            if candidate.release(clock.now()) is None:
                return True
        return False
