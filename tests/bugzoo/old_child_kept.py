"""After a rename the new name is recorded before the old child is deleted: cut between, the old one stays."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("old-child-kept"), App("old-child-kept-twin")


async def put(ctx: Context, thing: Unstructured) -> str:
    name = thing.spec.get("note") or thing.name
    await ctx.client.create_or_update(ConfigMap, name, lambda child: None, namespace=thing.namespace, owner=thing)
    return str(name)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    old, name = thing.status.get("child"), await put(ctx, thing)
    await ctx.client.patch_status(thing, {"child": name})
    if old not in (None, name):
        await ctx.client.delete(ConfigMap, old, namespace=thing.namespace)


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    name = await put(ctx, thing)
    for child in await ctx.client.list(ConfigMap, namespace=thing.namespace):
        if child.name != name and thing.uid in [owner.uid for owner in child.owner_references]:
            await ctx.client.update(thing, subresource="status")  # refused if what we know of it is old
            await ctx.client.delete(child)
    await ctx.client.patch_status(thing, {"child": name})
