"""What is desired is compared with what the server has filled in: they are never equal, so each run writes."""

from typing import Any

from kopylite import App, Context, Kind, Request, Unstructured

Thing, Deployment = Kind("zoo.example.com/v1", "Thing"), Kind("apps/v1", "Deployment")
bug, twin = App("defaulted-loop"), App("defaulted-loop-twin")


def spec_of(thing: Unstructured) -> dict[str, Any]:
    labels = {"app": thing.name}
    pod = {"containers": [{"name": "app", "image": "web:1", "ports": [{"containerPort": 80}]}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"replicas": thing.spec.get("size", 0), "selector": {"matchLabels": labels}, "template": template}


@bug.reconciler(Thing, owns=[Deployment])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    stored = await ctx.client.find(Deployment, request)
    if stored is None:
        metadata = {"name": thing.name, "namespace": thing.namespace}
        child = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec_of(thing)}
        await ctx.client.create(Unstructured(child), owner=thing)
    elif stored["spec"] != spec_of(thing):
        stored["spec"] = spec_of(thing)
        await ctx.client.update(stored)


@twin.reconciler(Thing, owns=[Deployment])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return

    def mutate(child: Unstructured) -> None:
        child["spec"] = spec_of(thing)

    await ctx.client.create_or_update(Deployment, request, mutate, owner=thing)
