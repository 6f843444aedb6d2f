"""A payment that is made before it is written down, under no number of its own: cut between, it is made again."""

from kopylite import App, Context, Kind, Request, effect

Thing = Kind("zoo.example.com/v1", "Thing")
bug, twin = App("paid-twice"), App("paid-twice-twin")


@effect
async def pay(account: str) -> None:
    """A call of a bank that knows no repeats."""


@effect(key="number")
async def pay_once(account: str, number: str) -> None:
    """A call of a bank that takes a second one with the same number for the first."""


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("paid"):
        return
    await pay(thing.name)
    await ctx.client.patch_status(thing, {"paid": True})


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("paid"):
        return
    await pay_once(thing.name, thing.uid)
    await ctx.client.patch_status(thing, {"paid": True})
