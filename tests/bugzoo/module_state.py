"""Ports are handed out by a table in the process: after a restart it begins again, and somebody's port moves."""

import zlib

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("module-state"), App("module-state-twin")
PORTS: dict[Request, int] = {}


async def put(ctx: Context, thing: Unstructured, port: int) -> None:
    def mutate(child: Unstructured) -> None:
        child["data"] = {"port": str(port), "note": thing.spec.get("note", "")}

    await ctx.client.create_or_update(ConfigMap, thing, mutate, owner=thing)


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        PORTS.pop(request, None)
        return
    if request not in PORTS:
        PORTS[request] = max(PORTS.values(), default=29999) + 1
    await put(ctx, thing, PORTS[request])


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing, 30000 + zlib.crc32(str(request).encode()) % 2000)
