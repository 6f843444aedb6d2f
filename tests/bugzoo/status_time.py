"""The time of the run in the status: every run writes, whether anything has changed or not."""

from kopylite import App, Context, Kind, Request, generation_changed

Thing = Kind("zoo.example.com/v1", "Thing")
bug, twin = App("status-time"), App("status-time-twin")


@bug.reconciler(Thing, predicates=generation_changed)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        status = {"size": thing.spec.get("size", 0), "lastChecked": ctx.now().isoformat()}
        await ctx.client.patch_status(thing, status)


@twin.reconciler(Thing, predicates=generation_changed)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.patch_status(thing, {"size": thing.spec.get("size", 0)})
