"""A child's name is cut to a length: two parents that begin alike share a child, and each run takes it over."""

import hashlib

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
LONGEST = 15
bug, twin = App("truncated-name"), App("truncated-name-twin")


async def put(ctx: Context, request: Request, name: str) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["data"] = {"for": request.name, "size": str(thing.spec.get("size", 0))}

    await ctx.client.create_or_update(
        ConfigMap, name, mutate, namespace=request.namespace, owner=thing, controller=False
    )


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    await put(ctx, request, f"{request.name}-config"[:LONGEST])


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    digest = hashlib.sha256(request.name.encode()).hexdigest()[:6]
    await put(ctx, request, f"{request.name[: LONGEST - 7]}-{digest}")
