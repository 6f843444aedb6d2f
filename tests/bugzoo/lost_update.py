"""A list in a value of a shared ConfigMap is read, made longer, and patched back without a version."""

from kopylite import App, Context, Kind, Request, Unstructured, finalize

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
FINALIZER = "zoo.example.com/member"
bug, twin = App("lost-update"), App("lost-update-twin")


def members_of(registry: Unstructured) -> set[str]:
    return set(filter(None, registry.get("data", {}).get("members", "").split(",")))


async def blindly(ctx: Context, name: str, *, there: bool) -> None:
    registry = await ctx.client.get(ConfigMap, "registry", namespace="default")
    members = members_of(registry)
    if (name in members) != there:
        data = {"members": ",".join(sorted(members ^ {name}))}
        await ctx.client.patch(ConfigMap, "registry", {"data": data}, namespace="default")


async def exactly(ctx: Context, name: str, *, there: bool) -> None:
    registry = await ctx.client.live.get(ConfigMap, "registry", namespace="default")
    members = members_of(registry)
    if (name in members) != there:
        registry["data"] = {"members": ",".join(sorted(members ^ {name}))}
        await ctx.client.update(registry)  # a PUT of the version that was read; refused, it is read again


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    async def leave(ctx: Context, thing: Unstructured) -> None:
        await blindly(ctx, thing.name, there=False)

    if not await finalize(ctx, Thing, FINALIZER, leave):
        await blindly(ctx, request.name, there=True)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    async def leave(ctx: Context, thing: Unstructured) -> None:
        await exactly(ctx, thing.name, there=False)

    if not await finalize(ctx, Thing, FINALIZER, leave):
        await exactly(ctx, request.name, there=True)
