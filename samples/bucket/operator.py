"""A Bucket stands for a bucket in an object store outside of the cluster: made, watched over, and deleted with it."""

from __future__ import annotations

import json
import os

import aiohttp
from pydantic import BaseModel

from kopylite import (
    App,
    Condition,
    Conditions,
    Context,
    CustomResource,
    Request,
    Result,
    Unstructured,
    effect,
    finalize,
    set_condition,
)

FINALIZER = "storage.example.com/bucket"


class BucketSpec(BaseModel):
    region: str = "north"


class BucketStatus(BaseModel):
    url: str | None = None
    conditions: Conditions = []


class Bucket(CustomResource[BucketSpec, BucketStatus], group="storage.example.com", version="v1"):
    """A bucket in the object store."""


app = App("bucket")


@app.reconciler(Bucket, workers=4, timeout=60)
async def reconcile(ctx: Context, request: Request) -> Result | None:
    if await finalize(ctx, Bucket, FINALIZER, delete):
        return None
    bucket = await ctx.client.get(Bucket, request)
    url, problem = await put_into_store(bucket.uid, bucket.spec.region)
    ready = Condition(
        type="Ready",
        status="False" if problem else "True",
        reason="Refused" if problem else "Stored",
        message=problem,
        observed_generation=bucket.generation,
    )
    conditions = list(bucket.status.conditions)
    if set_condition(conditions, ready, now=ctx.now()):
        ctx.event(bucket, ready.reason, problem or f"the bucket is at {url}", type="Warning" if problem else "Normal")
    await ctx.client.patch_status(bucket, BucketStatus(url=url, conditions=conditions))
    return Result(requeue_after=30 if problem else 600)  # the store tells nobody when a bucket is lost


async def delete(ctx: Context, bucket: Unstructured) -> None:
    await delete_from_store(bucket.uid)


@effect(key="uid")
async def put_into_store(uid: str, region: str) -> tuple[str | None, str]:
    """Make the bucket, or find it made: its URL, and what the store has against it.

    The uid names it: it was there before the bucket, and a new object of an old name is another bucket.
    """
    status, text = await ask_store("PUT", f"/buckets/{uid}", {"region": region})
    return (None, text) if status == 422 else (json.loads(text)["url"], "")


@effect(key="uid")
async def delete_from_store(uid: str) -> None:
    """Called until it succeeds, so a bucket that is gone already is as good."""
    await ask_store("DELETE", f"/buckets/{uid}")


async def ask_store(method: str, path: str, body: dict[str, str] | None = None) -> tuple[int, str]:
    """A status and a text; where the store is ill, an exception, and so the next try comes by itself."""
    url = os.environ.get("STORE_URL", "http://127.0.0.1:9000")
    async with aiohttp.ClientSession(url) as session, session.request(method, path, json=body) as reply:
        if reply.status not in (404, 422):
            reply.raise_for_status()
        return reply.status, await reply.text()
