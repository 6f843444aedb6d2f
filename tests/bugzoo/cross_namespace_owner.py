"""An owner in another namespace: the garbage collector finds none of that uid there, and takes the child."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("cross-namespace-owner"), App("cross-namespace-owner-twin")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    owner = {"apiVersion": "zoo.example.com/v1", "kind": "Thing", "name": thing.name, "uid": thing.uid}

    def mutate(child: Unstructured) -> None:
        child["metadata"]["ownerReferences"] = [owner]
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing.name, mutate, namespace="store")


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    async def remove(ctx: Context, thing: Unstructured) -> None:
        await ctx.client.delete(ConfigMap, thing.name, namespace="store")

    if await finalize(ctx, Thing, "zoo.example.com/store", remove):
        return
    thing = await ctx.client.get(Thing, request)

    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing.name, mutate, namespace="store")
