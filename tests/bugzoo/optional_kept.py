"""An optional field is set where it is wanted, and never taken out: what is there depends on what was there once."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("optional-kept"), App("optional-kept-twin")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        data = child.setdefault("data", {})
        data["size"] = str(thing.spec.get("size", 0))
        if thing.spec.get("note"):
            data["note"] = thing.spec["note"]

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=thing)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["data"] = {"size": str(thing.spec.get("size", 0)), "note": thing.spec.get("note")}

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=thing)
