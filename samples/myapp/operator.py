"""A MyApp owns a Deployment, shows how many of its replicas are ready, and looks again when its ConfigMap changes."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured, watch


class MyAppSpec(BaseModel):
    image: str
    replicas: int = Field(default=1, ge=0)
    config: str | None = Field(default=None, description="Name of a ConfigMap with environment variables.")


class MyAppStatus(BaseModel):
    ready_replicas: int = 0


class MyApp(CustomResource[MyAppSpec, MyAppStatus], group="example.com", version="v1"):
    """A web application."""


Deployment = Kind("apps/v1", "Deployment")
ConfigMap = Kind("v1", "ConfigMap")

app = App("myapp")


async def users_of(config_map: Unstructured, ctx: Context) -> list[Request]:
    """The MyApps that name a ConfigMap."""
    users = await ctx.client.list(MyApp, namespace=config_map.namespace, index={"spec.config": config_map.name})
    return [Request.of(user) for user in users]


@app.reconciler(MyApp, owns=[Deployment], watches=[watch(ConfigMap, map=users_of)], workers=4)
async def reconcile(ctx: Context, request: Request) -> Result | None:
    myapp = await ctx.client.find(MyApp, request)
    if myapp is None:  # it is gone, and the garbage collector takes its Deployment
        return None

    def mutate(deployment: Unstructured) -> None:
        deployment["spec"] = deployment_spec(myapp)

    deployment, outcome = await ctx.client.create_or_update(Deployment, request, mutate, owner=myapp)
    if outcome != "unchanged":
        ctx.log.info("Deployment %s", outcome)
    await ctx.client.patch_status(myapp, {"readyReplicas": deployment.status.get("readyReplicas", 0)})
    return None


def deployment_spec(myapp: MyApp) -> dict[str, Any]:
    """What the Deployment of a MyApp should be."""
    labels = {"app": myapp.name}
    container: dict[str, Any] = {"name": "app", "image": myapp.spec.image}
    if myapp.spec.config:
        container["envFrom"] = [{"configMapRef": {"name": myapp.spec.config, "optional": True}}]
    return {
        "replicas": myapp.spec.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
