"""Finalizers: clean up outside of the cluster before an object goes.

Owned objects need none of this: the garbage collector deletes them. A finalizer is for what Kubernetes cannot see.

Flow of `finalize`, one call per reconcile:

    object          finalizer    what happens                                returns
    lives           missing      the finalizer is added                      False: go on
    lives           there        nothing                                     False: go on
    being deleted   there        cleanup runs, then the finalizer goes       True: done with it
    being deleted   missing      nothing; others still hold the object       True: done with it

A finalizer that is replaced (`replaces=`) counts as there for an object that is being deleted, so it is cleaned up too
when its deletion began before the new finalizer came. On a living object the new one is added, then the old one goes.

Guarantees: nothing the reconcile makes after `finalize` returned False can be left behind without a finalizer that
stands for it. `cleanup` runs at least once, and until it succeeds: it must be idempotent, and must be content with
finding nothing. After it has succeeded, only the removal is tried again when other finalizers move meanwhile. Objects
that nobody reconciles any more keep their finalizer, and so stay: remove it by hand then.

An object that does not fit its model must be deletable too. A reconcile that first reads the model does not get to its
`finalize`, so name the class there instead, and read the model afterwards:

    if await finalize(ctx, Bucket, "example.com/bucket", empty):    # `empty` gets it as it is stored
        return None
    bucket = await ctx.client.get(Bucket, request)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from kopylite.errors import UsageError
from kopylite.objects import Kind, Unstructured, kind_of, meta_of
from kopylite.reconcile.context import Context

T = TypeVar("T")


@overload
async def finalize(
    ctx: Context,
    target: Kind | type[Any],
    name: str,
    cleanup: Callable[[Context, Unstructured], Awaitable[Any]],
    *,
    replaces: Sequence[str] = (),
) -> bool: ...
@overload
async def finalize(
    ctx: Context,
    target: T,
    name: str,
    cleanup: Callable[[Context, T], Awaitable[Any]],
    *,
    replaces: Sequence[str] = (),
) -> bool: ...
async def finalize(
    ctx: Context,
    target: Any,
    name: str,
    cleanup: Callable[[Context, Any], Awaitable[Any]],
    *,
    replaces: Sequence[str] = (),
) -> bool:
    """Keep finalizer `name` on a living object; clean up and release one that is being deleted.

    Adding the finalizer gives the object a new resourceVersion; an object that was passed is left as it was read.

    Args:
        ctx: the context of the reconcile.
        target: the kind of the object to reconcile, which is then read as it is stored, whether it fits its model or
            not; or the object itself, as it was just read.
        name: of the finalizer, with a domain: "example.com/bucket".
        cleanup: called with `ctx` and the object; if it raises, the finalizer stays and the reconcile fails.
        replaces: finalizers that this one takes the place of: kopf's, or an earlier one of your own. Nobody else may
            still act for them.

    Returns:
        Whether the object is going away, or gone, so that the reconcile has nothing left to do.
    """
    step = await begin_finalize(ctx, target, name, replaces)
    if step.names:
        await cleanup(ctx, step.obj)
        await ctx.client.remove_finalizer(step.obj, *step.names)
    return step.going


class Finalization(NamedTuple):
    """What is to be done for the finalizers of an object.

    Attributes:
        going: the object is going away, or gone.
        obj: as it is stored; None: it is gone.
        names: the finalizers that go when the cleanup has succeeded; none: there is nothing to clean up.
    """

    going: bool
    obj: Any = None
    names: tuple[str, ...] = ()


async def begin_finalize(ctx: Context, target: Any, name: str, replaces: Sequence[str]) -> Finalization:
    """All of `finalize` up to the cleanup."""
    if isinstance(replaces, str):
        raise UsageError(f"finalize: replaces={replaces!r} is one text; a list of finalizers is meant: [{replaces!r}]")
    obj = await ctx.client.find(kind_of(target), ctx.request) if isinstance(target, Kind | type) else target
    if obj is None:
        return Finalization(going=True)
    metadata = meta_of(obj)
    present = metadata.get("finalizers") or ()
    replaced = [other for other in replaces if other in present and other != name]
    if not metadata.get("deletionTimestamp"):
        if name not in present:
            obj = await ctx.client.add_finalizer(obj, name)
        if replaced:
            await ctx.client.remove_finalizer(obj, *replaced)
        return Finalization(going=False)
    return Finalization(True, obj, (name, *replaced) if name in present or replaced else ())
