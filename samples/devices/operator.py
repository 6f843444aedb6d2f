"""A Device gets a ConfigMap to boot from. Of many Devices, the work is shared among shards, and so is the cache.

Nothing here knows of shards but the status: a reconcile gets the keys of its own objects, wherever it runs.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from kopylite import App, Context, CustomResource, Kind, Request, Unstructured, watch


class DeviceSpec(BaseModel):
    model: str
    room: str = ""
    settings: dict[str, str] = {}


class DeviceStatus(BaseModel):
    shard: int | None = Field(default=None, description="That worked on it last; none where work is not shared.")


class Device(CustomResource[DeviceSpec, DeviceStatus], group="devices.example.com", version="v1"):
    """A thing with a plug."""


ConfigMap = Kind("v1", "ConfigMap")
MODEL = "devices.example.com/model"  # on a ConfigMap: its data are the settings of all devices of that model

app = App("devices")


async def devices_of_model(defaults: Unstructured, ctx: Context) -> list[Request]:
    """Every shard hears of a model's defaults, and runs those devices that are its own.

    The watch has no `labels=`: what it owns is of the same kind, so reads come from another cache, maybe an older one.
    """
    model = defaults.labels.get(MODEL)
    if model is None:
        return []
    devices = await ctx.client.list(Device, namespace=defaults.namespace)
    return [Request.of(device) for device in devices if device.spec.model == model]


@app.reconciler(Device, owns=[ConfigMap], watches=[watch(ConfigMap, map=devices_of_model)], workers=16)
async def reconcile(ctx: Context, request: Request) -> None:
    device = await ctx.client.find(Device, request)
    if device is None:
        return
    defaults = await ctx.client.list(ConfigMap, namespace=request.namespace, labels={MODEL: device.spec.model})
    settings: dict[str, str] = {}
    for each in sorted(defaults, key=lambda config_map: config_map.name):
        settings |= each.get("data") or {}
    settings |= {**device.spec.settings, "room": device.spec.room}

    def mutate(config_map: Unstructured) -> None:
        config_map["data"] = settings

    await ctx.client.create_or_update(ConfigMap, request, mutate, owner=device)
    await ctx.client.patch_status(device, DeviceStatus(shard=ctx.shard))
