"""Finalizers: clean up outside of the cluster before an object goes.

Owned objects need none of this: the garbage collector deletes them. A finalizer is for what Kubernetes cannot see.

Flow of `finalize`, one call per reconcile:

    object          finalizer    what happens                                returns
    lives           missing      the finalizer is added                      False: go on
    lives           there        nothing                                     False: go on
    being deleted   there        cleanup runs, then the finalizer goes       True: done with it
    being deleted   missing      nothing; others still hold the object       True: done with it

Guarantees: nothing the reconcile makes after `finalize` returned False can be left behind without a finalizer that
stands for it. `cleanup` runs at least once, and until it succeeds: it must be idempotent, and must be content with
finding nothing. Objects that nobody reconciles any more keep their finalizer, and so stay: remove it by hand then.

An object that does not fit its model must be deletable too. A reconcile that first reads the model does not get to its
`finalize`, so name the class there instead, and read the model afterwards:

    if await finalize(ctx, Bucket, "example.com/bucket", empty):    # `empty` gets it as it is stored
        return None
    bucket = await ctx.client.get(Bucket, request)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from kopylite.objects import Kind, Unstructured, kind_of, meta_of
from kopylite.reconcile.context import Context

T = TypeVar("T")


@overload
async def finalize(
    ctx: Context, target: Kind | type[Any], name: str, cleanup: Callable[[Context, Unstructured], Awaitable[Any]]
) -> bool: ...
@overload
async def finalize(ctx: Context, target: T, name: str, cleanup: Callable[[Context, T], Awaitable[Any]]) -> bool: ...
async def finalize(ctx: Context, target: Any, name: str, cleanup: Callable[[Context, Any], Awaitable[Any]]) -> bool:
    """Keep finalizer `name` on a living object; clean up and release one that is being deleted.

    Adding the finalizer gives the object a new resourceVersion; an object that was passed is left as it was read.

    Args:
        ctx: the context of the reconcile.
        target: the kind of the object to reconcile, which is then read as it is stored, whether it fits its model or
            not; or the object itself, as it was just read.
        name: of the finalizer, with a domain: "example.com/bucket".
        cleanup: called with `ctx` and the object; if it raises, the finalizer stays and the reconcile fails.

    Returns:
        Whether the object is going away, or gone, so that the reconcile has nothing left to do.
    """
    obj = await ctx.client.find(kind_of(target), ctx.request) if isinstance(target, Kind | type) else target
    if obj is None:
        return True
    metadata = meta_of(obj)
    held = name in (metadata.get("finalizers") or ())
    if not metadata.get("deletionTimestamp"):
        if not held:
            await ctx.client.add_finalizer(obj, name)
        return False
    if held:
        await cleanup(ctx, obj)
        await ctx.client.remove_finalizer(obj, name)
    return True
