"""The finalizer comes after the effect that it stands for, and only with it: cut between, it never comes."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/store"
bug, twin = App("finalizer-late"), App("finalizer-late-twin")


async def put(ctx: Context, request: Request) -> str:
    _, outcome = await ctx.client.create_or_update(ConfigMap, request.name, lambda child: None, namespace="store")
    return outcome


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
    elif await put(ctx, request) == "created":
        await ctx.client.add_finalizer(thing, FINALIZER)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, FINALIZER, remove):
        await put(ctx, request)
