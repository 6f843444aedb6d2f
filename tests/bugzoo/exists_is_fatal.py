"""That a child is there already counts as somebody else's: but it may be one's own, which is not seen yet."""

from kopylite import AlreadyExists, App, Context, Kind, Request, TerminalError, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("exists-is-fatal"), App("exists-is-fatal-twin")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("phase") == "Ready":
        return
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": thing.name, "namespace": thing.namespace}}
    try:
        await ctx.client.create(Unstructured(child), owner=thing)
    except AlreadyExists as error:
        raise TerminalError(f"the name {thing.name} is taken") from error
    await ctx.client.patch_status(thing, {"phase": "Ready"})


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.create_or_update(ConfigMap, request, lambda child: None, owner=thing)
        await ctx.client.patch_status(thing, {"phase": "Ready"})
