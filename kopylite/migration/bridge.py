"""bridge: what a moved operator is written with until its handlers are rewritten. By kopf's names where kopf has them.

A moved module imports this one and nothing of kopf:

    @app.reconciler(Page)
    async def reconcile_page(ctx: Context, request: Request) -> Result | None:
        page = await ctx.client.find(Page, request)
        if page is None:
            return None
        async with bridge.Handling(ctx, page, ORIGIN) as run:
            await run.created(create_page)      # the function that was @kopf.on.create
            await run.updated(update_page)
        return None
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kopylite.errors import TerminalError
from kopylite.migration.admission import review
from kopylite.migration.arguments import Body, Memo, Meta, Missing
from kopylite.migration.arguments import HandlerPatch as Patch
from kopylite.migration.calling import Indexed, Origin
from kopylite.migration.children import (
    adjust_namespace,
    adopt,
    append_owner_reference,
    event,
    exception,
    harmonize_naming,
    info,
    label,
    remove_owner_reference,
    warn,
)
from kopylite.migration.filters import ABSENT, PRESENT, all_, any_, none_, not_
from kopylite.migration.handling import Handling
from kopylite.migration.memory import ObjectMemory as Memory
from kopylite.migration.memory import Stopped, host_daemons, remember
from kopylite.migration.peers import no_kopf_beside
from kopylite.migration.starting import call_at_start, changed, deletion_began
from kopylite.migration.subhandlers import execute, register, subhandler
from kopylite.reconcile import Retry

logger = logging.getLogger("kopylite.migration")

Spec = Status = Labels = Annotations = dict
Index, Store = dict, list
Diff = Logger = ObjectLogger = OperatorSettings = LocalObjectLogger = Any
Headers = UserInfo = SSLPeer = RawEvent = RawBody = RawEventType = Resource = Operation = BodyEssence = Any
HandlerId = ObjectReference = OwnerReference = DiffItem = FieldPath = FieldSpec = Any
DaemonStopped = SyncDaemonStopperChecker = AsyncDaemonStopperChecker = Stopped
PermanentError = HandlerTimeoutError = HandlerRetriesError = TerminalError


class TemporaryError(Retry):
    """kopf's, which can do without a delay: that is a minute. 0 is as soon as may be."""

    def __init__(self, message: str = "", delay: float | None = 60.0) -> None:
        super().__init__(message, after=max(delay or 0.0, 0.01))


def missing(name: str, place: str) -> Any:
    """Stands for a name of kopf that has no counterpart. See Missing."""
    return Missing(name, place)


def unmoved(name: str, place: str) -> Callable[..., Any]:
    """Stands for a decorator of kopf that is applied when the program runs: nobody calls what it decorates."""

    def declared(*_: Any, **__: Any) -> Callable[[Any], Any]:
        logger.warning("%s: what @%s decorates here is called by nobody; the report says what to do", place, name)
        return lambda function: function

    return declared


__all__ = [
    "ABSENT",
    "PRESENT",
    "Annotations",
    "AsyncDaemonStopperChecker",
    "Body",
    "DaemonStopped",
    "Diff",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "Handling",
    "Index",
    "Indexed",
    "Labels",
    "Logger",
    "Memo",
    "Memory",
    "Meta",
    "ObjectLogger",
    "OperatorSettings",
    "Origin",
    "Patch",
    "PermanentError",
    "Spec",
    "Status",
    "Stopped",
    "Store",
    "SyncDaemonStopperChecker",
    "TemporaryError",
    "adjust_namespace",
    "adopt",
    "all_",
    "any_",
    "append_owner_reference",
    "call_at_start",
    "changed",
    "deletion_began",
    "event",
    "exception",
    "execute",
    "harmonize_naming",
    "host_daemons",
    "info",
    "label",
    "missing",
    "no_kopf_beside",
    "none_",
    "not_",
    "register",
    "remember",
    "remove_owner_reference",
    "review",
    "subhandler",
    "unmoved",
    "warn",
]
