"""Children are not watched: one that somebody deletes by hand comes back with the next restart, or never."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("child-not-restored"), App("child-not-restored-twin")


async def put(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["data"] = {"note": thing.spec.get("note", "")}

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=thing)
    await ctx.client.patch_status(thing, {"note": thing.spec.get("note", "")})


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    await put(ctx, request)


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    await put(ctx, request)
