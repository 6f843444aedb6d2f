"""A child whose random name is written down after it was made: who is cut between the two makes another one."""

import secrets

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("random-name"), App("random-name-twin")


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or "config" in thing.status:
        return
    metadata = {"name": f"{thing.name}-{secrets.token_hex(4)}", "namespace": thing.namespace}
    child = Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"for": thing.name}})
    await ctx.client.create(child, owner=thing)
    await ctx.client.patch_status(thing, {"config": child.name})


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["data"] = {"for": request.name}

    child, _ = await ctx.client.create_or_update(
        ConfigMap, f"{thing.name}-config", mutate, namespace=thing.namespace, owner=thing
    )
    await ctx.client.patch_status(thing, {"config": child.name})
