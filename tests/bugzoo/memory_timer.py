"""When something is to end is known to the process alone: after a restart it stays for ever."""

from datetime import datetime, timedelta

from kopylite import App, Context, Kind, Request, Result, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("memory-timer"), App("memory-timer-twin")
ENDS: dict[Request, datetime] = {}


async def end(ctx: Context, thing: Unstructured) -> None:
    await ctx.client.delete(ConfigMap, ctx.request)
    await ctx.client.patch_status(thing, {"phase": "Expired"})


def lifetime(thing: Unstructured) -> timedelta:
    return timedelta(seconds=thing.spec.get("seconds", 1))


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> Result | None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("phase") == "Expired":
        return None
    _, outcome = await ctx.client.create_or_update(ConfigMap, request, lambda child: None, owner=thing)
    if outcome == "created":
        ENDS[request] = ctx.now() + lifetime(thing)
    if request not in ENDS:
        return None
    if ctx.now() < ENDS[request]:
        return Result(requeue_after=ENDS[request] - ctx.now())
    await end(ctx, thing)
    return None


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> Result | None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("phase") == "Expired":
        return None
    left = datetime.fromisoformat(thing.metadata["creationTimestamp"]) + lifetime(thing) - ctx.now()
    if left <= timedelta():
        await end(ctx, thing)
        return None
    await ctx.client.create_or_update(ConfigMap, request, lambda child: None, owner=thing)
    return Result(requeue_after=left)
