"""A stand-in for an object store: `python samples/bucket/store.py` serves it on http://127.0.0.1:9000."""

from __future__ import annotations

import sys

from aiohttp import web

REGIONS = ("north", "south")


def make_store(buckets: dict[str, str]) -> web.Application:
    """PUT and DELETE /buckets/NAME; `buckets` holds the region of each."""

    async def put(request: web.Request) -> web.Response:
        region = (await request.json())["region"]
        if region not in REGIONS:
            return web.Response(status=422, text=f"there is no region {region}, only {' and '.join(REGIONS)}")
        buckets[request.match_info["name"]] = region
        return web.json_response({"url": f"store://{region}/{request.match_info['name']}"})

    async def delete(request: web.Request) -> web.Response:
        return web.Response(status=204 if buckets.pop(request.match_info["name"], None) else 404)

    async def show(request: web.Request) -> web.Response:
        return web.json_response(buckets)

    app = web.Application()
    app.add_routes([web.get("/buckets", show)])
    app.add_routes([web.put("/buckets/{name}", put), web.delete("/buckets/{name}", delete)])
    return app


if __name__ == "__main__":
    web.run_app(make_store({}), host="127.0.0.1", port=int(sys.argv[1]) if len(sys.argv) > 1 else 9000)
