"""Every error is caught and logged, so that "one bad object does not stop the operator": nothing is tried again."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("swallowed-error"), App("swallowed-error-twin")


async def put(ctx: Context, thing: Unstructured) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    try:
        thing = await ctx.client.find(Thing, request)
        if thing is not None:
            await put(ctx, thing)
    except Exception as error:
        ctx.log.error("could not reconcile: %s", error)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing)
