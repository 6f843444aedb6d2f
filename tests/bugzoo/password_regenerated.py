"""A password is made up whenever the Secret is written, also where there is one: all its users are locked out."""

import base64
import secrets

from kopylite import App, Context, Kind, Request, Unstructured

Thing, Secret = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "Secret")
bug, twin = App("password-regenerated"), App("password-regenerated-twin")


def password() -> str:
    return base64.b64encode(secrets.token_hex(8).encode()).decode()


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(secret: Unstructured) -> None:
        secret["data"] = {"password": password()}

    await ctx.client.create_or_update(Secret, request, mutate, owner=thing)


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(secret: Unstructured) -> None:
        if "password" not in secret.get("data", {}):
            secret["data"] = {"password": password()}

    await ctx.client.create_or_update(Secret, request, mutate, owner=thing)
