"""An operator whose work is split: each run notes itself in the object, and that it begins and ends in its log.

Whether two processes have had one object at the same time is then to be seen in the history of that object.
"""

from __future__ import annotations

import os

from kopylite import App, Context, Kind, Request

CONFIG_MAP = Kind("v1", "ConfigMap", plural="configmaps", namespaced=True)
SECRET = Kind("v1", "Secret", plural="secrets", namespaced=True)
WRITER = os.environ.get("WRITER", "")
# A file to which all processes of a test append; a line is one write, so they do not mix.
RUNS = os.environ.get("RUNS", os.devnull)

app = App("sharded", shards=4)


def note(word: str, uid: str) -> None:
    with open(RUNS, "ab", buffering=0) as runs:
        runs.write(f"{word} {uid} {os.getpid()}\n".encode())


@app.reconciler(CONFIG_MAP, owns=[SECRET])
async def write(ctx: Context, request: Request) -> None:
    found = await ctx.client.find(CONFIG_MAP, request)
    if found is None or (found.get("data") or {}).get("wanted") is None:
        return
    done = found["data"].get("done")
    if done == found["data"]["wanted"]:
        return
    data = {"writer": WRITER, "shard": str(ctx.shard), "done": found["data"]["wanted"]}
    note("begins", found.uid)
    try:
        await ctx.client.live.patch(
            CONFIG_MAP, request, {"metadata": {"resourceVersion": found.resource_version}, "data": data}
        )
    finally:
        note("ends", found.uid)
