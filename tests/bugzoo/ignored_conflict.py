"""A Conflict is caught and forgotten ("the next event will bring it right"): if none comes, it stays undone."""

from kopylite import App, Conflict, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("ignored-conflict"), App("ignored-conflict-twin")


async def put(ctx: Context, thing: Unstructured) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    try:
        await put(ctx, thing)
    except Conflict:
        ctx.log.info("somebody else was faster")


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing)
