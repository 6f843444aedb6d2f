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
from builtins import dict as Index
from builtins import dict as Labels
from builtins import list as Store
from collections.abc import Callable
from typing import Any, TypeAlias
from typing import Any as ObjectReference
from typing import Any as Operation
from typing import Any as OwnerReference
from typing import Any as Resource
from typing import Any as UserInfo

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

# Types, for annotations. Those whose names mean something else in another room are imported under them, above.
Spec: TypeAlias = dict[str, Any]
Status: TypeAlias = dict[str, Any]
Annotations: TypeAlias = dict[str, str]
Diff: TypeAlias = Any
DiffItem: TypeAlias = Any
Logger: TypeAlias = Any
ObjectLogger: TypeAlias = Any
LocalObjectLogger: TypeAlias = Any
OperatorSettings: TypeAlias = Any
DaemonStopped: TypeAlias = Stopped
SyncDaemonStopperChecker: TypeAlias = Stopped
AsyncDaemonStopperChecker: TypeAlias = Stopped
Headers: TypeAlias = Any
SSLPeer: TypeAlias = Any
RawEvent: TypeAlias = Any
RawBody: TypeAlias = Any
RawEventType: TypeAlias = Any
BodyEssence: TypeAlias = Any
HandlerId: TypeAlias = Any
FieldPath: TypeAlias = Any
FieldSpec: TypeAlias = Any

PermanentError: TypeAlias = TerminalError
HandlerTimeoutError: TypeAlias = TerminalError
HandlerRetriesError: TypeAlias = TerminalError


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
    "BodyEssence",
    "DaemonStopped",
    "Diff",
    "DiffItem",
    "FieldPath",
    "FieldSpec",
    "HandlerId",
    "HandlerRetriesError",
    "HandlerTimeoutError",
    "Handling",
    "Headers",
    "Index",
    "Indexed",
    "Labels",
    "LocalObjectLogger",
    "Logger",
    "Memo",
    "Memory",
    "Meta",
    "ObjectLogger",
    "ObjectReference",
    "Operation",
    "OperatorSettings",
    "Origin",
    "OwnerReference",
    "Patch",
    "PermanentError",
    "RawBody",
    "RawEvent",
    "RawEventType",
    "Resource",
    "SSLPeer",
    "Spec",
    "Status",
    "Stopped",
    "Store",
    "SyncDaemonStopperChecker",
    "TemporaryError",
    "UserInfo",
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
