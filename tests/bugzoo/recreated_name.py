"""A status written by name lands on the next object of the name, and says that its child is there already."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("recreated-name"), App("recreated-name-twin")


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
    status = {"status": {"observedGeneration": thing.generation}}
    await ctx.client.patch(Thing, request, status, subresource="status")


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    await put(ctx, thing)
    await ctx.client.patch_status(thing, {"observedGeneration": thing.generation})
