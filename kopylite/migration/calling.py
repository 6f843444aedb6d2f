"""Calling: a function of the user that was a handler of kopf, with those of kopf's arguments that it takes."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.boundary import name_of
from kopylite.migration.arguments import Memo, Views
from kopylite.migration.filters import Filters, matches
from kopylite.migration.traces import FINALIZER, PREFIX
from kopylite.objects import Kind
from kopylite.reconcile import Context, run_in_thread
from kopylite.reconcile.threads import THREADS

KopfHandler = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Indexed:
    """What `@kopf.index` said: a function that is asked about each object of a kind."""

    kind: Kind
    function: KopfHandler
    filters: Filters = field(default_factory=Filters)


@dataclass(frozen=True, slots=True)
class Origin:
    """How an operator was known to kopf, and is known now.

    Args:
        domain: of the finalizer and the annotations that are kept from now on.
        finalizer: kopf's, as the operator named it; it is replaced.
        prefix: of kopf's annotations, which say what was handled.
        indices: what handlers ask for by its name.
    """

    domain: str
    finalizer: str = FINALIZER
    prefix: str = PREFIX
    indices: Mapping[str, Indexed] = field(default_factory=dict)


async def invoke(handler: KopfHandler, arguments: Mapping[str, Any], *, lasting: bool = False) -> Any:
    """Call a handler with those of the arguments that it takes: awaited, or in a thread if it is a plain function."""
    call = functools.partial(handler, **_taken(handler, arguments))
    inner = handler
    while isinstance(inner, functools.partial):
        inner = inner.func
    if inspect.iscoroutinefunction(inner):
        return await call()
    threads = THREADS.get()
    if lasting and threads is not None:
        result = await threads.run(call, name_of(handler), owner=None)
    else:
        result = await run_in_thread(call)
    return await result if inspect.isawaitable(result) else result


async def with_indices(
    ctx: Context, origin: Origin, handler: KopfHandler, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments, with the indices that a handler asks for by name."""
    wanted = origin.indices.keys() & inspect.signature(handler).parameters.keys()
    return {**arguments, **{name: await _index(ctx, origin, origin.indices[name]) for name in wanted}}


async def _index(ctx: Context, origin: Origin, indexed: Indexed) -> dict[Any, list[Any]]:
    """What `@kopf.index` would have kept: asked anew about each object that is cached."""
    found: dict[Any, list[Any]] = {}
    for obj in await ctx.client.list(indexed.kind):
        arguments = {**Views(obj).arguments(), "logger": ctx.log, "memo": Memo(), "resource": indexed.kind}
        if matches(arguments, indexed.filters):
            entries = await invoke(indexed.function, arguments)
            for key, value in (entries if isinstance(entries, dict) else {None: entries}).items():
                if value is not None:
                    found.setdefault(key, []).append(value)
    return found


def _taken(handler: KopfHandler, arguments: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(handler).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return dict(arguments)
    return {each.name: arguments[each.name] for each in parameters if each.name in arguments}
