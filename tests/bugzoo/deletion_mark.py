"""The mark of deletion counts only while one's own finalizer is there: a run after that makes the child anew."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize, generation_changed

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/store"
bug, twin = App("deletion-mark"), App("deletion-mark-twin")


async def put(ctx: Context, request: Request) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"for": request.name}

    await ctx.client.create_or_update(ConfigMap, request.name, mutate, namespace="store")


async def remove(ctx: Context, thing: Unstructured) -> None:
    await ctx.client.delete(ConfigMap, thing.name, namespace="store")


@bug.reconciler(Thing, predicates=generation_changed)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    if not thing.deletion_timestamp:
        await ctx.client.add_finalizer(thing, FINALIZER)
    elif FINALIZER in thing.finalizers:
        await remove(ctx, thing)
        await ctx.client.remove_finalizer(thing, FINALIZER)
        return
    await put(ctx, request)  # also while somebody else's finalizer still holds it


@twin.reconciler(Thing, predicates=generation_changed)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, FINALIZER, remove):
        await put(ctx, request)
