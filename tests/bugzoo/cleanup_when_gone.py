"""Cleaning up when the object is seen to be gone, without a finalizer: nobody runs a key whose end was missed."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap"), Kind("v1", "Secret")
bug, twin = App("cleanup-when-gone"), App("cleanup-when-gone-twin")


async def put(ctx: Context, request: Request) -> None:
    """In another namespace, so nothing can own them."""

    def mutate(child: Unstructured) -> None:
        child["metadata"]["labels"] = {"thing": request.name}

    await ctx.client.create_or_update(ConfigMap, request.name, mutate, namespace="store")
    await ctx.client.create_or_update(Secret, request.name, mutate, namespace="store")


async def remove(ctx: Context, thing: object) -> None:
    await ctx.client.delete(ConfigMap, ctx.request.name, namespace="store")
    await ctx.client.delete(Secret, ctx.request.name, namespace="store")


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    if await ctx.client.find(Thing, request) is None:
        await remove(ctx, None)
    else:
        await put(ctx, request)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if not await finalize(ctx, Thing, "zoo.example.com/store", remove):
        await put(ctx, request)
