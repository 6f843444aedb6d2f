"""What a moved operator declares besides its handlers: its start and end, and what runs its reconciles."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio

from kopylite.boundary import name_of
from kopylite.migration.arguments import Memo
from kopylite.migration.calling import Origin, invoke, with_indices
from kopylite.migration.memory import ObjectMemory
from kopylite.migration.traces import essence_of
from kopylite.reconcile import Context, Retry
from kopylite.triggers import Predicate, when


class _Settings(SimpleNamespace):
    """Takes settings of kopf that nothing reads."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _Settings()
        setattr(self, name, found)
        return found


async def call_at_start(ctx: Context, handler: Callable[..., Any], origin: Origin, param: Any = None) -> Any:
    """Call what was a handler of kopf for the start, the end or a probe. `settings` takes everything, for nobody.

    `memo` is the operator's: each object's begins as a copy of it. A TemporaryError is tried again after its delay.
    """
    arguments = {
        "logger": ctx.log,
        "memo": ctx.state[ObjectMemory].common if ObjectMemory in ctx.state else Memo(),
        "settings": _Settings(),
        "param": param,
        "ctx": ctx,
        "started": ctx.now(),
    }
    for retry in itertools.count():
        try:
            given = {**arguments, "retry": retry}
            return await invoke(handler, await with_indices(ctx, origin, handler, given))
        except Retry as error:
            ctx.log.info("%s waits, and is tried again in %g s: %s", name_of(handler), error.result.delay, error)
            await anyio.sleep(error.result.delay)


def changed(origin: Origin) -> Predicate:
    """Drops updates that kopf's handlers of changes would not hear of: of the status, and of what is kept of them."""

    def seen(obj: Any) -> Any:
        return essence_of(obj, (origin.prefix, origin.domain)), obj.deletion_timestamp

    return when(lambda old, new: seen(old) != seen(new))


deletion_began: Predicate = when(lambda old, new: old.deletion_timestamp != new.deletion_timestamp)
"""Drops updates of objects, but for the one that begins the deletion."""
