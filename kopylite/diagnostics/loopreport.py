"""LoopReport: brings HotLoops what happens in a process, and its sentences to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable

from kopylite.cache import Delta, Informer
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.diagnostics.hotloop import HotLoops
from kopylite.objects import Kind, ObjectKey
from kopylite.reconcile.chains import ChainLink, Chains, Version
from kopylite.reconcile.context import RUNNING

logger = logging.getLogger("kopylite.controller")

LOOK_SECONDS = 5.0


class LoopReport:
    """Sees the writes of a client (it is a WriteListener), the runs of the controllers and the changes of objects.

    Args:
        clock: of the pauses.
    """

    def __init__(self, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._chains = Chains()
        self._loops = HotLoops()

    def on_run(self, controller: str, on_step: Callable[[], None]) -> Callable[[ChainLink | None, float], None]:
        """What is to be told of each run of a controller. `on_step` is called for each that is part of a loop."""
        loops = self._loops.controller(controller)

        def on_run(step: ChainLink | None, now: float) -> None:
            before = loops.steps
            report = loops.ran(step, now)
            if step is None:
                return  # it wrote nothing
            step.causes = ()  # the step is remembered, and these are not needed again
            if loops.steps > before:
                on_step()
            if report is not None:
                logger.warning("%s", report, extra={"fields": {"controller": controller}})

        return on_run

    def writer(self, to: Version) -> ChainLink | None:
        """The run that wrote a state of an object; None: none of this process, or long ago."""
        return self._chains.writer(to)

    def watch(self, informer: Informer) -> None:
        """Look at the changes of an informer, where something is to be found out about its objects."""
        kind, changed = informer.scope.kind, self._loops.changed

        def on_change(delta: Delta) -> None:
            if delta.old is not None and delta.new is not None:
                changed(kind, delta.old, delta.new)

        informer.add_handler(on_change)

    async def run(self) -> None:
        """Tell of loops that have ended, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            for text in self._loops.over(self._clock.monotonic()):
                logger.info("%s", text)

    # A WriteListener

    def written(self, kind: Kind, key: ObjectKey, uid: str, version: str) -> None:
        to = Version(uid, version)
        if self._chains.writer(to) is None and (step := self._step()) is not None:
            self._chains.wrote(step, to)

    def deleted(self, kind: Kind, key: ObjectKey, uid: str, version: str = "") -> None:
        if (step := self._step()) is not None:
            step.progress = True

    def doubted(self, kind: Kind, key: ObjectKey, *, late: bool) -> None:
        pass

    def _step(self) -> ChainLink | None:
        """The step that the present run is; None outside of one."""
        context = RUNNING.get()
        if context is None:
            return None
        if context.step is None:
            run = context.controller, context.request, context.priority
            context.step = self._chains.step(*run, context.causes)
        return context.step
