"""A finalizer is added by writing the whole list, without a version: what others have put there meanwhile goes."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/store"
bug, twin = App("finalizer-update"), App("finalizer-update-twin")


async def put(ctx: Context, request: Request) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"for": request.name}

    await ctx.client.create_or_update(ConfigMap, request.name, mutate, namespace="store")


async def remove(ctx: Context, thing: Unstructured) -> None:
    await ctx.client.delete(ConfigMap, thing.name, namespace="store")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    if thing.deletion_timestamp:
        if FINALIZER in thing.finalizers:
            await remove(ctx, thing)
            await ctx.client.remove_finalizer(thing, FINALIZER)
        return
    if FINALIZER not in thing.finalizers:
        await ctx.client.patch(Thing, request, {"metadata": {"finalizers": [*thing.finalizers, FINALIZER]}})
    await put(ctx, request)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, FINALIZER, remove):
        await put(ctx, request)
