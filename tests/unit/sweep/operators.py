"""Small operators for sweeps: one that a crash breaks, its twin that is right, and one that never rests."""

from __future__ import annotations

from typing import Any

from kopylite import App, Context, Kind, RateLimit, Request, Unstructured, effect, finalize

Thing, ConfigMap, Secret = Kind("sweep.example.com/v1", "Thing"), Kind("v1", "ConfigMap"), Kind("v1", "Secret")
bug, twin, restless, idle = App("half-done"), App("half-done-twin"), App("restless"), App("idle")
renamed, hasty, farewell, patient = App("renamed"), App("hasty"), App("farewell"), App("patient")
mails, mails_with_key = App("mails"), App("mails-with-key")

CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.sweep.example.com"},
    "spec": {
        "group": "sweep.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def child(thing: Unstructured, kind: str) -> Unstructured:
    metadata = {"name": thing.name, "namespace": thing.namespace}
    return Unstructured({"apiVersion": "v1", "kind": kind, "metadata": metadata})


@bug.reconciler(Thing, owns=[ConfigMap])
async def careless(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or await ctx.client.find(ConfigMap, request) is not None:
        return
    await ctx.client.create(child(thing, "ConfigMap"), owner=thing)
    await ctx.client.create(child(thing, "Secret"), owner=thing)


@twin.reconciler(Thing, owns=[ConfigMap, Secret])
async def careful(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        for kind in (ConfigMap, Secret):
            await ctx.client.create_or_update(kind, request, lambda obj: None, owner=thing)


@restless.reconciler(Thing)
async def count(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None:
        await ctx.client.patch_status(thing, {"runs": thing.status.get("runs", 0) + 1})


@idle.reconciler(Thing)
async def nothing(ctx: Context, request: Request) -> None:
    await ctx.client.find(Thing, request)


@renamed.reconciler(Thing)
async def make_up_a_name(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or await ctx.client.live.list(ConfigMap, namespace="default", labels={"thing": request.name}):
        return
    metadata = {"generateName": "a-", "namespace": "default", "labels": {"thing": request.name}}
    await ctx.client.create(Unstructured({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}), owner=thing)


@hasty.reconciler(Thing, owns=[ConfigMap])
async def note_what_nobody_has_looked_at(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is None or thing.status.get("observedGeneration") == thing.generation:
        return

    def mutate(obj: Unstructured) -> None:
        obj["data"] = {"size": str(thing.spec["size"])}

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=thing)
    newest = await ctx.client.live.get(Thing, request)
    await ctx.client.patch_status(newest, {"observedGeneration": newest.generation})


@patient.reconciler(Thing, owns=[ConfigMap], rate_limit=RateLimit(first=0.2, longest=30))
async def try_again_rarely(ctx: Context, request: Request) -> None:
    await careful(ctx, request)


async def say_farewell(ctx: Context, thing: Unstructured) -> None:
    await ctx.client.create_or_update(
        ConfigMap, f"{thing.name}-was-here", lambda obj: None, namespace="default", owner=thing
    )


@farewell.reconciler(Thing, owns=[ConfigMap])
async def leave_something_that_goes_too(ctx: Context, request: Request) -> None:
    await finalize(ctx, Thing, "example.com/farewell", say_farewell)


@effect
async def send_mail(address: str) -> None:
    """Nobody can take it back."""


@effect(key="request_id")
async def send_mail_once(request_id: str) -> None:
    """The other side knows the request."""


@mails.reconciler(Thing)
async def mail(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None and not thing.status.get("sent"):
        await send_mail("a@example.com")
        await ctx.client.patch_status(thing, {"sent": True})


@mails_with_key.reconciler(Thing)
async def mail_once(ctx: Context, request: Request) -> None:
    thing = await ctx.client.find(Thing, request)
    if thing is not None and not thing.status.get("sent"):
        await send_mail_once(thing.uid)
        await ctx.client.patch_status(thing, {"sent": True})


def a_thing(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default"}
    return {"apiVersion": "sweep.example.com/v1", "kind": "Thing", "metadata": metadata, "spec": spec}


pair = App("half-done-pair")


@pair.reconciler(ConfigMap)
async def careless_about_two(ctx: Context, request: Request) -> None:
    """As `careless`, of kinds that every server has."""
    found = await ctx.client.find(ConfigMap, request) if request.name == "a" else None
    if found is None or await ctx.client.find(Secret, "one", namespace=request.namespace) is not None:
        return
    for name in ("one", "two"):
        metadata = {"name": name, "namespace": request.namespace}
        await ctx.client.create(Unstructured({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}), owner=found)


unforeseen, flooded = App("unforeseen"), App("flooded")
Plot = Kind("sweep.example.com/v1", "Plot")
_SIZE = {"type": "integer", "minimum": 0, "maximum": 9}
_MODE = {"type": "string", "enum": ["dry", "wet"]}
_ZONE = {"type": "string", "enum": ["a", "b"], "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
PLOTS: dict[str, Any] = {
    **CRD,
    "metadata": {"name": "plots.sweep.example.com"},
    "spec": {
        **CRD["spec"],
        "names": {"plural": "plots", "singular": "plot", "kind": "Plot", "listKind": "PlotList"},
        "versions": [
            {
                **CRD["spec"]["versions"][0],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size", "mode", "zone"],
                                "properties": {"size": _SIZE, "mode": _MODE, "zone": _ZONE},
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def a_plot(**spec: Any) -> dict[str, Any]:
    return {**a_thing(**spec), "kind": "Plot"}


@unforeseen.reconciler(Plot, owns=[ConfigMap])
async def divide(ctx: Context, request: Request) -> None:
    """Nobody thought of a size of nothing, nor of what another mode leaves, nor of what comes after 1 and with 9."""

    plot = await ctx.client.find(Plot, request)
    if plot is not None:
        run = ctx.reconcile_id if plot.spec["size"] == 9 else "any"

        def note(obj: Unstructured) -> None:
            obj["metadata"]["annotations"] = {"run": run}

        await keep_mode(ctx, plot, share=10 // plot.spec["size"])
        await ctx.client.create_or_update(Secret, request, note, owner=plot)


async def keep_mode(ctx: Context, plot: Unstructured, share: int) -> None:
    def mutate(obj: Unstructured) -> None:
        data = obj.setdefault("data", {})
        data["share"] = str(share)
        if share == 10:
            data["alone"] = "yes"

    name = f"{plot.name}-{plot.spec['mode']}"
    await ctx.client.create_or_update(ConfigMap, name, mutate, namespace=plot.namespace, owner=plot)


@flooded.reconciler(Plot, owns=[ConfigMap])
async def fail_for_two_together(ctx: Context, request: Request) -> None:
    plot = await ctx.client.find(Plot, request)
    if plot is not None:
        if plot.spec["size"] == 9 and plot.spec["mode"] == "wet":
            raise RuntimeError("too much water")
        await ctx.client.create_or_update(ConfigMap, request, lambda obj: None, owner=plot)
