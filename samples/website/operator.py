"""A Website owns five objects of five kinds. What each should be is data; one loop makes it so."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from kopylite import App, Condition, Conditions, Context, CustomResource, Kind, Request, Unstructured, set_condition


class WebsiteSpec(BaseModel):
    pages: dict[str, str] = Field(default_factory=dict, description="Name of each page, and its HTML.")
    replicas: int = Field(default=1, ge=0, le=20)
    image: str = "nginx:1"


class WebsiteStatus(BaseModel):
    ready_replicas: int = 0
    conditions: Conditions = []


class Website(CustomResource[WebsiteSpec, WebsiteStatus], group="web.example.com", version="v1"):
    """A few pages, served."""


ServiceAccount, ConfigMap, Service = Kind("v1", "ServiceAccount"), Kind("v1", "ConfigMap"), Kind("v1", "Service")
Deployment, NetworkPolicy = Kind("apps/v1", "Deployment"), Kind("networking.k8s.io/v1", "NetworkPolicy")
OWNED = [ServiceAccount, ConfigMap, Deployment, Service, NetworkPolicy]

app = App("website")


@app.reconciler(Website, owns=OWNED, workers=4)
async def reconcile(ctx: Context, request: Request) -> None:
    site = await ctx.client.find(Website, request)
    if site is None:  # what it owned goes with it
        return
    stored: dict[Kind, Unstructured] = {}
    for kind, desired in children(site):

        def mutate(obj: Unstructured, desired: dict[str, Any] = desired) -> None:
            obj.update(desired)  # what is not named here belongs to others: defaults, autoscalers, meshes

        stored[kind], outcome = await ctx.client.create_or_update(kind, request, mutate, owner=site)
        if outcome != "unchanged":
            ctx.log.info("%s %s", kind.kind, outcome)
    await report(ctx, site, stored[Deployment].status.get("readyReplicas", 0))


def children(site: Website) -> Iterator[tuple[Kind, dict[str, Any]]]:
    """What a Website consists of, in the order in which one part needs the other."""
    labels = {"website": site.name}
    pages = hashlib.sha256(repr(sorted(site.spec.pages.items())).encode()).hexdigest()[:16]
    container = {
        "name": "web",
        "image": site.spec.image,
        "ports": [{"name": "http", "containerPort": 80}],
        "volumeMounts": [{"name": "pages", "mountPath": "/usr/share/nginx/html"}],
    }
    pod = {
        "serviceAccountName": site.name,
        "containers": [container],
        "volumes": [{"name": "pages", "configMap": {"name": site.name}}],
    }
    # New pages are a new template: the pods are replaced, and nobody sees half of them.
    template = {"metadata": {"labels": labels, "annotations": {"web.example.com/pages": pages}}, "spec": pod}
    yield ServiceAccount, {"automountServiceAccountToken": False}
    yield ConfigMap, {"data": dict(site.spec.pages)}
    yield (
        Deployment,
        {"spec": {"replicas": site.spec.replicas, "selector": {"matchLabels": labels}, "template": template}},
    )
    yield Service, {"spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}
    yield (
        NetworkPolicy,
        {"spec": {"podSelector": {"matchLabels": labels}, "ingress": [{"ports": [{"port": "http"}]}]}},
    )


async def report(ctx: Context, site: Website, ready: int) -> None:
    served = site.spec.replicas > 0 and ready >= site.spec.replicas
    condition = Condition(
        type="Ready",
        status="True" if served else "False",
        reason="Served" if served else "Waiting",
        message=f"{ready} of {site.spec.replicas} replicas are ready",
        observed_generation=site.generation,
    )
    conditions = list(site.status.conditions)
    set_condition(conditions, condition, now=ctx.now())
    await ctx.client.patch_status(site, WebsiteStatus(ready_replicas=ready, conditions=conditions))
