"""It waits to see a job run before it believes its end: a state that lasts a moment may never be seen."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("skipped-condition"), App("skipped-condition-twin")


async def job_of(ctx: Context, thing: Unstructured) -> str:
    """Its phase, which the test plays."""
    job, _ = await ctx.client.create_or_update(ConfigMap, thing, lambda job: None, owner=thing)
    return str(job.get("data", {}).get("phase", "Pending"))


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    phase = await job_of(ctx, thing)
    if phase == "Running":
        await ctx.client.patch_status(thing, {"phase": "Started"})
    elif phase == "Done" and thing.status.get("phase") == "Started":
        await ctx.client.patch_status(thing, {"phase": "Done"})


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    phase = await job_of(ctx, thing)
    if phase in ("Running", "Done"):
        await ctx.client.patch_status(thing, {"phase": "Started" if phase == "Running" else "Done"})
