"""Two things are made, and the first one stands for both: whoever was cut between them never makes the second."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap"), Kind("v1", "Secret")
bug, twin = App("half-done"), App("half-done-twin")


def child_of(thing: Unstructured, kind: str) -> Unstructured:
    metadata = {"name": thing.name, "namespace": thing.namespace}
    return Unstructured({"apiVersion": "v1", "kind": kind, "metadata": metadata})


@bug.reconciler(Thing, owns=[ConfigMap, Secret])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or await ctx.client.find(ConfigMap, request) is not None:
        return
    await ctx.client.create(child_of(thing, "ConfigMap"), owner=thing)
    await ctx.client.create(child_of(thing, "Secret"), owner=thing)


@twin.reconciler(Thing, owns=[ConfigMap, Secret])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    for kind in (ConfigMap, Secret):
        await ctx.client.create_or_update(kind, request, lambda child: None, owner=thing)
