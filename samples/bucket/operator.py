"""A Bucket stands for a bucket in an object store outside of the cluster: made, watched over, and deleted with it."""

from __future__ import annotations

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
    if await finalize(ctx, Bucket, FINALIZER, delete_from_store):
        return None
    bucket = await ctx.client.get(Bucket, request)
    url, problem = await put_into_store(bucket)
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


async def put_into_store(bucket: Bucket) -> tuple[str | None, str]:
    """Make the bucket, or find it made: its URL, and what the store has against it.

    The uid names it: it was there before the bucket, and a new object of an old name is another bucket.
    """
    async with store() as session, session.put(f"/buckets/{bucket.uid}", json={"region": bucket.spec.region}) as reply:
        if reply.status == 422:
            return None, await reply.text()
        reply.raise_for_status()  # the store is ill: an exception, and so the next try comes by itself
        return (await reply.json())["url"], ""


async def delete_from_store(ctx: Context, bucket: Unstructured) -> None:
    """Called until it succeeds, so a bucket that is gone already is as good."""
    async with store() as session, session.delete(f"/buckets/{bucket.uid}") as reply:
        if reply.status != 404:
            reply.raise_for_status()


def store() -> aiohttp.ClientSession:
    """A session with the object store."""
    return aiohttp.ClientSession(os.environ.get("STORE_URL", "http://127.0.0.1:9000"), raise_for_status=False)
