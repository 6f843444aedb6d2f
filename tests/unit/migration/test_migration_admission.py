from __future__ import annotations

from typing import Any

import pytest

from kopylite import App, Review
from kopylite.errors import ApiError, TerminalError
from kopylite.migration.admission import review
from kopylite.migration.calling import Origin
from kopylite.migration.starting import call_at_start
from kopylite.objects import Kind, Unstructured
from kopylite.reconcile import Context, Retry
from kopylite.testing import EmbeddedCluster

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])
MAP = Kind("v1", "ConfigMap")
ORIGIN = Origin("shop.example.com")


async def test_handlers_of_admission_judge_and_change_what_is_written_and_those_of_the_start_are_tried_again() -> None:
    app, seen, starts = App("shop"), list[Any](), list[int]()

    def judge(operation: str, dryrun: bool, userinfo: Any, warnings: list[str], body: Any, **_: Any) -> None:
        seen.append((operation, dryrun, bool(userinfo["username"]), body["metadata"]["name"]))
        warnings.append("looked at")
        if body["data"]["a"] == "bad":
            raise TerminalError("no bad data")

    async def change(patch: Any, **_: Any) -> None:
        patch["data"] = {"added": "1"}
        patch.metadata.labels["touched"] = "yes"
        assert patch.spec == {}

    async def start(retry: int, settings: Any, **_: Any) -> None:
        settings.anything.at.all = 1
        starts.append(retry)
        if not retry:
            raise Retry("not yet", after=0.01)

    @app.on_start
    async def on_start(ctx: Context) -> None:
        await call_at_start(ctx, start, ORIGIN)

    @app.validator(MAP)
    async def validate(ctx: Context, asked: Review[Unstructured]) -> None:
        await review(ctx, asked, judge, ORIGIN, labels={"shop": "yes"})

    @app.mutator(MAP)
    async def mutate(ctx: Context, asked: Review[Unstructured]) -> None:
        await review(ctx, asked, change, ORIGIN, labels={"shop": "yes"})

    @app.reconciler(MAP)
    async def reconcile(ctx: Context, request: Any) -> None: ...

    def config_map(name: str, data: str, **labels: str) -> Unstructured:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        return Unstructured(apiVersion="v1", kind="ConfigMap", metadata=metadata, data={"a": data})

    async with EmbeddedCluster(controllers=False) as cluster, cluster.client() as client, cluster.running(app):
        assert starts == [0, 1]
        made = await client.create(config_map("good", "x", shop="yes"))
        assert made["data"] == {"a": "x", "added": "1"}
        assert made.labels == {"shop": "yes", "touched": "yes"}
        with pytest.raises(ApiError, match="no bad data"):
            await client.create(config_map("bad", "bad", shop="yes"))
        assert (await client.create(config_map("other", "bad")))["data"] == {"a": "bad"}
    assert seen == [("CREATE", False, True, "good"), ("CREATE", False, True, "bad")]
