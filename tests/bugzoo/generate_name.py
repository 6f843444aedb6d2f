"""generateName, when no child is seen: one that a stale list does not show yet gets a sibling."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("generate-name"), App("generate-name-twin")


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    labels = {"thing": thing.name}
    if await ctx.client.list(ConfigMap, namespace=thing.namespace, labels=labels):
        return
    metadata = {"generateName": f"{thing.name}-", "namespace": thing.namespace, "labels": labels}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"for": thing.name}}
    await ctx.client.create(Unstructured(child), owner=thing)


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["metadata"]["labels"] = {"thing": request.name}
        child["data"] = {"for": request.name}

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=thing)
