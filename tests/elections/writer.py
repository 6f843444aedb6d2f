"""An operator whose writes say who wrote: each run of the ConfigMap `job` puts this process's name into it.

Whether two processes have worked at once is then to be seen in the history of that one object.
"""

from __future__ import annotations

import os

from kopylite import App, Context, Kind, Request, Result

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
WRITER = os.environ.get("WRITER", "")
PAUSE = float(os.environ.get("PAUSE", "0.02"))

app = App("writer", leader_election=True)


@app.reconciler(CONFIG_MAP, labels="elections=job")
async def write(ctx: Context, request: Request) -> Result:
    await ctx.client.live.patch(CONFIG_MAP, request, {"data": {"writer": WRITER, "run": ctx.reconcile_id}})
    return Result(requeue_after=PAUSE)


@app.reconciler(CONFIG_MAP, name="everywhere", labels="elections=everywhere", leader=False)
async def note(ctx: Context, request: Request) -> None:
    await ctx.client.live.patch(CONFIG_MAP, request, {"data": {f"seen-by-{WRITER}": "yes"}})
