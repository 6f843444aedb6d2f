"""The comparison operator on kopylite: MyApps own Deployments; a no-op; a spinner.

Environment: KUBECONFIG; MODE work, noop or spin; COUNT objects; WORKERS at a time; SPIN runs per key in spin. Prints
one JSON line when COUNT different keys have been reconciled (in spin: each SPIN times), then runs until SIGTERM.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":  # as `python -m kopylite run peer:app`, which loads this file once more, by its name
    from kopylite.cli import main

    sys.argv[0] = "kopylite"
    raise SystemExit(main(["run", "peer:app", "--metrics-address=off", "--health-address=off", "--log-level=warning"]))

import collections
import json
import os

from pydantic import BaseModel

from kopylite import App, Context, CustomResource, Kind, Request, Result, Unstructured

MODE = os.environ["MODE"]
COUNT = int(os.environ.get("COUNT", "0"))
SPIN = int(os.environ.get("SPIN", "10"))
WORKERS = int(os.environ.get("WORKERS", "8"))


class MyAppSpec(BaseModel):
    image: str
    replicas: int = 1
    notes: str = ""


class MyAppStatus(BaseModel):
    ready_replicas: int = 0
    observed_generation: int = 0


class MyApp(CustomResource[MyAppSpec, MyAppStatus], group="example.com", version="v1"):
    """A web application."""


Deployment = Kind("apps/v1", "Deployment")
app = App("peer")
runs: collections.Counter[Request] = collections.Counter()
done: set[Request] = set()


def finished(request: Request) -> None:
    """Count a key that has run often enough; report when it was the last one."""
    if request not in done:
        done.add(request)
        if len(done) == COUNT:
            print(json.dumps({"event": "done", "reconciles": runs.total()}), flush=True)


def deployment_spec(myapp: MyApp) -> dict[str, object]:
    labels = {"app": myapp.name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": myapp.spec.image}]}}
    return {"replicas": myapp.spec.replicas, "selector": {"matchLabels": labels}, "template": pod}


async def work(ctx: Context, request: Request) -> Result | None:
    runs[request] += 1
    myapp = await ctx.client.find(MyApp, request)
    if myapp is None:
        return None

    def mutate(deployment: Unstructured) -> None:
        deployment["metadata"]["labels"] = {"app": request.name}
        deployment["spec"] = deployment_spec(myapp)

    deployment, _ = await ctx.client.create_or_update(Deployment, request, mutate, owner=myapp)
    status = {
        "readyReplicas": deployment.get("status", {}).get("readyReplicas", 0),
        "observedGeneration": myapp.generation,
    }
    await ctx.client.patch_status(myapp, status)
    finished(request)
    return None


async def noop(ctx: Context, request: Request) -> Result | None:
    runs[request] += 1
    await ctx.client.find(MyApp, request)
    finished(request)
    return None


async def spin(ctx: Context, request: Request) -> Result | None:
    runs[request] += 1
    await ctx.client.find(MyApp, request)
    if runs[request] < SPIN:
        return Result(requeue_after=0.001)
    finished(request)
    return None


reconcile = {"work": work, "noop": noop, "spin": spin}[MODE]
app.reconciler(MyApp, owns=[Deployment] if MODE == "work" else [], workers=WORKERS)(reconcile)
