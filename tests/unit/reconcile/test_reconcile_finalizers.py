from __future__ import annotations

from typing import Any, cast

import pytest
from pydantic import BaseModel

from kopylite.errors import UsageError
from kopylite.objects import CustomResource, Kind, Unstructured
from kopylite.reconcile import Context, Environment, Request, finalize

NAME = "example.com/bucket"
OLD = "kopf.zalando.org/KopfFinalizerMarker"


class FakeClient:
    """Notes what would be written."""

    def __init__(self, stored: Unstructured | None = None) -> None:
        self.stored = stored
        self.calls: list[str] = []

    async def find(self, kind: Kind, request: Request) -> Unstructured | None:
        assert kind == Kind("example.com/v1", "Bucket", "buckets", True)
        return self.stored

    async def add_finalizer(self, obj: Any, name: str) -> Any:
        self.calls.append(f"add {name}")
        return obj

    async def remove_finalizer(self, obj: Any, *names: str) -> Any:
        self.calls.append(f"remove {' '.join(names)}")
        return obj


class Story:
    """One reconcile of an object with a finalizer."""

    def __init__(self, *finalizers: str, deleted: bool = False, fails: bool = False) -> None:
        self.client = FakeClient()
        self.fails = fails
        metadata: dict[str, Any] = {"name": "a", "namespace": "default", "finalizers": list(finalizers)}
        if deleted:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.obj = Unstructured(apiVersion="example.com/v1", kind="Widget", metadata=metadata)

    async def cleanup(self, ctx: Context, obj: Unstructured) -> None:
        assert obj is self.obj
        self.client.calls.append("cleanup")
        if self.fails:
            raise RuntimeError("bucket not empty")

    async def play(self) -> bool:
        ctx = Context(Environment("widget", cast("Any", self.client)), Request.of(self.obj))
        return await finalize(ctx, self.obj, NAME, self.cleanup, replaces=[OLD])


@pytest.mark.parametrize(
    ("story", "gone", "calls"),
    [
        (Story(), False, [f"add {NAME}"]),
        (Story(NAME), False, []),
        (Story("other"), False, [f"add {NAME}"]),
        (Story(NAME, "other", deleted=True), True, ["cleanup", f"remove {NAME}"]),
        (Story("other", deleted=True), True, []),
        (Story(deleted=True), True, []),
        (Story(OLD), False, [f"add {NAME}", f"remove {OLD}"]),
        (Story(OLD, NAME), False, [f"remove {OLD}"]),
        (Story(OLD, deleted=True), True, ["cleanup", f"remove {NAME} {OLD}"]),
        (Story(OLD, NAME, deleted=True), True, ["cleanup", f"remove {NAME} {OLD}"]),
    ],
    ids=[
        "lives without",
        "lives with",
        "lives with another",
        "deleted with",
        "deleted with another",
        "deleted",
        "lives with the old",
        "lives with both",
        "deleted with the old",
        "deleted with both",
    ],
)
async def test_the_flow(story: Story, gone: bool, calls: list[str]) -> None:
    assert await story.play() is gone
    assert story.client.calls == calls


async def test_a_text_is_no_list_of_finalizers() -> None:
    story = Story(NAME)
    ctx = Context(Environment("widget", cast("Any", story.client)), Request.of(story.obj))
    with pytest.raises(UsageError, match="a list of finalizers is meant"):
        await finalize(ctx, story.obj, NAME, story.cleanup, replaces=OLD)


async def test_a_cleanup_that_fails_keeps_the_finalizer_and_fails_the_reconcile() -> None:
    story = Story(NAME, deleted=True, fails=True)
    with pytest.raises(RuntimeError, match="bucket not empty"):
        await story.play()
    assert story.client.calls == ["cleanup"]


class BucketSpec(BaseModel):
    size: int


class Bucket(CustomResource[BucketSpec, None], group="example.com", version="v1"):
    pass


async def test_an_object_that_does_not_fit_its_model_is_finalized_as_it_is_stored() -> None:
    metadata = {"name": "a", "namespace": "default", "finalizers": [NAME], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    stored = Unstructured(apiVersion="example.com/v1", kind="Bucket", metadata=metadata, spec={"size": "huge"})
    client = FakeClient(stored)

    async def cleanup(ctx: Context, obj: Unstructured) -> None:
        client.calls.append(f"cleanup {obj.spec['size']}")

    ctx = Context(Environment("bucket", cast("Any", client)), Request("default", "a"))
    assert await finalize(ctx, Bucket, NAME, cleanup)
    assert client.calls == ["cleanup huge", f"remove {NAME}"]


async def test_of_an_object_that_is_gone_nothing_is_left_to_do() -> None:
    client = FakeClient(None)

    async def cleanup(ctx: Context, obj: Unstructured) -> None:
        raise AssertionError("there is nothing to clean up")

    ctx = Context(Environment("bucket", cast("Any", client)), Request("default", "a"))
    assert await finalize(ctx, Bucket, NAME, cleanup)
    assert client.calls == []
