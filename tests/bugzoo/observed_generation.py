"""The generation that was dealt with is read again at the end: it may be that of a spec that nobody has looked at."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("observed-generation"), App("observed-generation-twin")


async def put(ctx: Context, thing: Unstructured) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("observedGeneration") == thing.generation:
        return
    await put(ctx, thing)
    newest = await ctx.client.live.get(Thing, request)
    await ctx.client.patch_status(newest, {"observedGeneration": newest.generation})


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing)
        await ctx.client.patch_status(thing, {"observedGeneration": thing.generation})
