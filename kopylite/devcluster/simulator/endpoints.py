"""EndpointSlices: the addresses behind each Service that selects pods."""

from __future__ import annotations

from typing import Any

from kopylite import App, Context, Kind, Request, Unstructured
from kopylite.controller import watch
from kopylite.devcluster.simulator.workloads import POD, absence_ends, controlled, is_ready

app = App("endpointslice-controller")

SERVICE = Kind("v1", "Service")
SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice")
_SERVICE_NAME, _MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"


async def _services_of(pod: Unstructured, ctx: Context) -> list[Request]:
    services = await ctx.client.list(SERVICE, namespace=pod.namespace)
    return [Request.of(service) for service in services if _selects(service, pod)]


def _selects(service: Unstructured, pod: Unstructured) -> bool:
    selector = service["spec"].get("selector") or {}
    return bool(selector) and bool(selector.items() <= pod.labels.items())


@app.reconciler(SERVICE, owns=[SLICE], watches=[watch(POD, map=_services_of)])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> None:
    """One slice for each Service: enough for as many pods as a developer has."""
    service = await ctx.client.find(SERVICE, request)
    if service is None or service.deletion_timestamp is not None or not service["spec"].get("selector"):
        return
    pods = [pod for pod in await ctx.client.list(POD, namespace=service.namespace) if _selects(service, pod)]
    endpoints = [_endpoint(pod) for pod in sorted(pods, key=lambda pod: pod.name) if _has_address(pod)]
    slices = await controlled(ctx, SLICE, service)
    labels = {_SERVICE_NAME: service.name, _MANAGED_BY: "endpointslice-controller.k8s.io"}
    if service["spec"].get("clusterIP") == "None":
        labels["service.kubernetes.io/headless"] = ""
    ports = [_port(port, pods) for port in service["spec"].get("ports", [])]
    wanted: dict[str, Any] = {"addressType": "IPv4", "endpoints": endpoints, "ports": ports}
    if not slices:
        metadata = {"generateName": f"{service.name}-", "namespace": service.namespace, "labels": labels}
        slice_ = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, **wanted}
        await ctx.client.create(Unstructured(slice_), owner=service)
        return

    def mutate(present: Unstructured) -> None:
        present["metadata"]["labels"] = {**present.labels, **labels}
        present.update(wanted)

    await ctx.client.create_or_update(SLICE, slices[0], mutate)


def _has_address(pod: Unstructured) -> bool:
    return bool(pod.status.get("podIP")) and pod.status.get("phase") == "Running"


def _endpoint(pod: Unstructured) -> dict[str, Any]:
    ready, going = is_ready(pod), pod.deletion_timestamp is not None
    endpoint = {
        "addresses": [pod.status["podIP"]],
        "conditions": {"ready": ready and not going, "serving": ready, "terminating": going},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
    }
    return endpoint | ({"hostname": pod["spec"]["hostname"]} if pod["spec"].get("subdomain") else {})


def _port(port: dict[str, Any], pods: list[Unstructured]) -> dict[str, Any]:
    """A Service's port as the pods have it: a named target port is looked up in the first pod that names it."""
    target = port.get("targetPort", port["port"])
    if isinstance(target, str):
        named = (
            p["containerPort"]
            for pod in pods
            for container in pod["spec"]["containers"]
            for p in container.get("ports", [])
            if p.get("name") == target
        )
        target = next(named, port["port"])
    return {"name": port.get("name", ""), "port": target, "protocol": port.get("protocol", "TCP")}
