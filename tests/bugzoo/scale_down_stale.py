"""Members beyond the size are deleted with what they hold, by a size that may be an old one (cassandra-operator)."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "Secret")
bug, twin = App("scale-down-stale"), App("scale-down-stale-twin")


async def put(ctx: Context, thing: Unstructured) -> list[Unstructured]:
    """The members up to the size; returns those beyond it."""

    def mutate(keys: Unstructured) -> None:
        keys["metadata"]["labels"] = {"thing": thing.name}

    names = [f"{thing.name}-{number}" for number in range(thing.spec.get("size", 0))]
    for name in names:
        await ctx.client.create_or_update(Secret, name, mutate, namespace=thing.namespace, owner=thing)
    there = await ctx.client.list(Secret, namespace=thing.namespace, labels={"thing": thing.name})
    return [keys for keys in there if keys.name not in names]


@bug.reconciler(Thing, owns=[Secret])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.deletion_timestamp:
        return
    for keys in await put(ctx, thing):
        await ctx.client.delete(keys)


@twin.reconciler(Thing, owns=[Secret])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.deletion_timestamp:
        return
    for keys in await put(ctx, thing):
        await ctx.client.update(thing, subresource="status")  # a PUT of what was read: refused, if that is old
        await ctx.client.delete(keys)
        return  # that has changed nothing, but the next one asks again
