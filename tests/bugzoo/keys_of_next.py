"""The object is not seen, so its keys are deleted, by name: of an object that is there, or there again."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "Secret")
bug, twin = App("keys-of-next"), App("keys-of-next-twin")


def mutate(keys: Unstructured) -> None:
    keys["metadata"]["labels"] = {"thing": keys.name}


@bug.reconciler(Thing, owns=[Secret])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        await ctx.client.delete(Secret, request)
        return
    await ctx.client.create_or_update(Secret, request, mutate, owner=thing)


@twin.reconciler(Thing, owns=[Secret])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:  # else the garbage collector sees to what it owned, by uid
        await ctx.client.create_or_update(Secret, request, mutate, owner=thing)
