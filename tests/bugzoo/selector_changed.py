"""What changes is part of a selector, which is immutable: the update is refused for ever after."""

from typing import Any

from kopylite import App, Context, Kind, Request, Unstructured

Thing, Deployment = Kind("zoo.example.com/v1", "Thing"), Kind("apps/v1", "Deployment")
bug, twin = App("selector-changed"), App("selector-changed-twin")


async def put(ctx: Context, thing: Unstructured, selector: dict[str, str]) -> None:
    labels = {**selector, "note": thing.spec.get("note", "")}

    def mutate(child: Unstructured) -> None:
        template: dict[str, Any] = {"metadata": {"labels": labels}}
        template["spec"] = {"containers": [{"name": "app", "image": "web:1"}]}
        child["spec"] = {"selector": {"matchLabels": selector}, "template": template}

    await ctx.client.create_or_update(Deployment, thing, mutate, owner=thing)


@bug.reconciler(Thing, owns=[Deployment])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing, {"app": thing.name, "note": thing.spec.get("note", "")})


@twin.reconciler(Thing, owns=[Deployment])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await put(ctx, thing, {"app": thing.name})
