"""A job is cleared away before it is written down that it was done: cut between, it is run once more."""

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("job-twice"), App("job-twice-twin")


async def job_is_done(ctx: Context, thing: Unstructured) -> bool:
    """Make the job, which the test plays, unless it is there."""
    job, _ = await ctx.client.create_or_update(ConfigMap, thing, lambda job: None, owner=thing)
    return bool(job.get("data", {}).get("phase") == "Done")


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("backup") == "Done":
        return
    if await job_is_done(ctx, thing):
        await ctx.client.delete(ConfigMap, request)
        await ctx.client.patch_status(thing, {"backup": "Done"})


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    if thing.status.get("backup") == "Done":
        job = await ctx.client.find(ConfigMap, request)
        if job is not None:
            await ctx.client.delete(job)
    elif await job_is_done(ctx, thing):
        await ctx.client.patch_status(thing, {"backup": "Done"})
