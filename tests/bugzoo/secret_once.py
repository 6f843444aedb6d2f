"""A Secret is read once, for the life of the process: after it was rotated, it depends on restarts what is used."""

from kopylite import App, Context, Kind, Request, Unstructured, watch

Thing, ConfigMap, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap"), Kind("v1", "Secret")
bug, twin = App("secret-once"), App("secret-once-twin")
CREDENTIALS: dict[str, str] = {}


async def put(ctx: Context, thing: Unstructured, password: str) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"checksum": password[:4], "note": thing.spec.get("note", "")}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.on_start
async def load(ctx: Context) -> None:
    secret = await ctx.client.find(Secret, "access", namespace="default")
    CREDENTIALS["password"] = secret["data"]["password"] if secret else "none"


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing, CREDENTIALS["password"])


async def everything(secret: Unstructured, ctx: Context) -> list[Request]:
    return [Request.of(thing) for thing in await ctx.client.list(Thing, namespace=secret.namespace)]


@twin.reconciler(Thing, watches=[watch(Secret, map=everything)])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        secret = await ctx.client.find(Secret, "access", namespace="default")
        await put(ctx, thing, secret["data"]["password"] if secret else "none")
