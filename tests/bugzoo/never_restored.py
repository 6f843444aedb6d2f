"""The status says that the child was made, and so nobody makes it again when somebody deletes it."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("never-restored"), App("never-restored-twin")


def child_of(thing: Unstructured) -> Unstructured:
    metadata = {"name": thing.name, "namespace": thing.namespace}
    return Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"for": thing.name}})


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("made"):
        return
    await ctx.client.apply(child_of(thing), owner=thing)
    await ctx.client.patch_status(thing, {"made": True})


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.apply(child_of(thing), owner=thing)
        await ctx.client.patch_status(thing, {"made": True})
