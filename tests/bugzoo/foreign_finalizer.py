"""All finalizers are cleared when one's own work is done: whoever else was to clean up never gets to it."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/store"
bug, twin = App("foreign-finalizer"), App("foreign-finalizer-twin")


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
        await remove(ctx, thing)
        await ctx.client.patch(thing, {"metadata": {"finalizers": None}})
        return
    await ctx.client.add_finalizer(thing, FINALIZER)
    await put(ctx, request)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, FINALIZER, remove):
        await put(ctx, request)
