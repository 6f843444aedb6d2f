"""A counter in the status that counts runs, and is taken for the number of changes of the spec."""

from kopylite import App, Context, Kind, Request, generation_changed

Thing = Kind("zoo.example.com/v1", "Thing")
bug, twin = App("run-counter"), App("run-counter-twin")


@bug.reconciler(Thing, predicates=generation_changed)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.patch_status(thing, {"revision": thing.status.get("revision", 0) + 1})


@twin.reconciler(Thing, predicates=generation_changed)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.patch_status(thing, {"revision": thing.generation})
