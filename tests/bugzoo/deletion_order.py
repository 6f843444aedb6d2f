"""The record of a thing goes before the thing: cut between, nobody knows any more what is still to be deleted."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/store"
bug, twin = App("deletion-order"), App("deletion-order-twin")


async def put(ctx: Context, request: Request) -> None:
    await ctx.client.create_or_update(ConfigMap, request.name, lambda child: None, namespace="store")


async def remove(ctx: Context, thing: Unstructured) -> None:
    await ctx.client.delete(ConfigMap, thing.name, namespace="store")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    if thing.deletion_timestamp:
        if FINALIZER in thing.finalizers:
            await ctx.client.remove_finalizer(thing, FINALIZER)
            await remove(ctx, thing)
        return
    await ctx.client.add_finalizer(thing, FINALIZER)
    await put(ctx, request)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, FINALIZER, remove):
        await put(ctx, request)
