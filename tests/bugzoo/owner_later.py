"""The owner reference is set by a second write, of a child that was just made: cut between, nothing collects it."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("owner-later"), App("owner-later-twin")


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or await ctx.client.find(ConfigMap, request) is not None:
        return
    metadata = {"name": thing.name, "namespace": thing.namespace}
    child = await ctx.client.create(Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    await ctx.client.adopt(child, owner=thing)


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.create_or_update(ConfigMap, request, lambda child: None, owner=thing)
