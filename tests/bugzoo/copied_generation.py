"""What was dealt with is noted, under a name of its own, before it is done. The twin notes as much, after it."""

from hashlib import sha256

from kopylite import App, Context, Kind, Request, Unstructured

Thing, ConfigMap = Kind("zoo.example.com/v1", "Thing"), Kind("v1", "ConfigMap")
bug, twin = App("copied-generation"), App("copied-generation-twin")


def short(text: object) -> str:
    return sha256(str(text).encode()).hexdigest()[:10]


async def put(ctx: Context, thing: Unstructured) -> Unstructured:
    def mutate(child: Unstructured) -> None:
        since = child.metadata.get("annotations", {}).get("since") or str(int(ctx.now().timestamp()))
        annotations = {"since": since, "for": str(thing.generation), "hash": short(thing.generation)}
        child["metadata"] |= {"annotations": annotations, "labels": {f"owner-{thing.uid[:8]}": "yes"}}
        child["data"] = {"size": str(thing.spec.get("size", 0)), short(thing.uid): "here"}

    name = f"{thing.name}-{short(thing.uid)}"
    child, _ = await ctx.client.create_or_update(ConfigMap, name, mutate, namespace=thing.namespace, owner=thing)
    return child


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("applied") == thing.generation:
        return
    await ctx.client.patch_status(thing, {"applied": thing.generation})
    await put(ctx, thing)


@twin.reconciler(Thing, owns=[ConfigMap])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None:
        return
    child = await put(ctx, thing)
    status = {"applied": thing.generation, "child": child.name, "seen": short(child.uid + child.resource_version)}
    await ctx.client.patch_status(thing, status)
