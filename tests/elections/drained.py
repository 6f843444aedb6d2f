"""An operator whose reconciles take two writes and a pause between them: half-done is to be seen."""

from __future__ import annotations

import os

import anyio

from kopylite import App, Context, Kind, Request

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
WRITER = os.environ.get("WRITER", "")

app = App("writer", leader_election=True)


@app.reconciler(CONFIG_MAP, labels="elections=drain", workers=100)
async def write(ctx: Context, request: Request) -> None:
    config_map = await ctx.client.get(CONFIG_MAP, request)
    if config_map.get("data", {}).get("second"):
        return
    await ctx.client.live.patch(CONFIG_MAP, request, {"data": {"first": WRITER}})
    await anyio.sleep(3)
    await ctx.client.live.patch(CONFIG_MAP, request, {"data": {"second": WRITER}})
