"""The first error makes it Failed, and what is Failed is left alone: a moment's outage of the server is for ever."""

from kopylite import ApiError, App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("failed-sticks"), App("failed-sticks-twin")


async def put(ctx: Context, thing: Unstructured) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("phase") == "Failed":
        return
    try:
        await put(ctx, thing)
    except ApiError as error:
        await ctx.client.patch_status(thing, {"phase": "Failed", "message": str(error)})
        return
    await ctx.client.patch_status(thing, {"phase": "Ready"})


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing)  # what fails is tried again, by itself
        await ctx.client.patch_status(thing, {"phase": "Ready"})
