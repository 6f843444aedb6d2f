"""A stand-in for an object store: `python -m samples.bucket.store` serves it on http://127.0.0.1:9000."""

from __future__ import annotations

import json
import sys

from aiohttp import web

REGIONS = ("north", "south")


def answer(buckets: dict[str, str], method: str, path: str, body: dict[str, str] | None) -> tuple[int, str]:
    """What the store does, without HTTP: the status and the text of an answer."""
    name = path.rpartition("/")[2]
    if method == "DELETE":
        return (204 if buckets.pop(name, None) else 404), ""
    region = (body or {}).get("region", "")
    if region not in REGIONS:
        return 422, f"there is no region {region}, only {' and '.join(REGIONS)}"
    buckets[name] = region
    return 200, json.dumps({"url": f"store://{region}/{name}"})


def make_store(buckets: dict[str, str]) -> web.Application:
    """PUT and DELETE /buckets/NAME; `buckets` holds the region of each."""

    async def put(request: web.Request) -> web.Response:
        status, text = answer(buckets, "PUT", request.path, await request.json())
        return web.Response(status=status, text=text)

    async def delete(request: web.Request) -> web.Response:
        return web.Response(status=answer(buckets, "DELETE", request.path, None)[0])

    async def show(request: web.Request) -> web.Response:
        return web.json_response(buckets)

    app = web.Application()
    app.add_routes([web.get("/buckets", show)])
    app.add_routes([web.put("/buckets/{name}", put), web.delete("/buckets/{name}", delete)])
    return app


if __name__ == "__main__":
    web.run_app(make_store({}), host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 9000)
