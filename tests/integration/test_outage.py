"""An outage of the API server, seen from an operator: nothing gives up, and everything goes on when it is over."""

from __future__ import annotations

import pytest

from kopylite import App, Context, Kind, RateLimit, Request, Result
from kopylite.testing import EmbeddedCluster
from tests.operators import eventually

CONFIG_MAP = Kind("v1", "ConfigMap")
NAMESPACE = "default"


async def test_keys_that_failed_in_an_outage_run_when_the_server_answers_and_none_gives_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app, reached, runs = App("patient"), set[str](), dict[str, int]()

    # Without the wake-up, a key waits for 24 s at least.
    @app.reconciler(CONFIG_MAP, workers=10, max_retries=0, rate_limit=RateLimit(first=30.0, longest=1000.0))
    async def reconcile(ctx: Context, request: Request) -> Result:
        runs[request.name] = runs.get(request.name, 0) + 1
        await ctx.client.live.get(CONFIG_MAP, request)
        reached.add(request.name)
        return Result(requeue_after=0.1)

    names = {f"a{number}" for number in range(10)}
    async with EmbeddedCluster() as cluster, cluster.client() as client, cluster.running(app) as manager:
        for name in names:
            metadata = {"name": name, "namespace": NAMESPACE}
            await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await eventually(lambda: names <= reached, "all ran")
        await cluster.kill_api_server()
        unreached = manager.controllers[0]._settler.unreached
        await eventually(lambda: names <= {request.name for request in unreached}, "all failed", limit=40)
        assert manager.controllers[0].statistics().queue.failing >= len(names)
        reached.clear()
        await cluster.start_api_server()
        await eventually(lambda: names <= reached, "all ran again", limit=20)
        await eventually(lambda: not [*unreached], "none is left")
    assert "gave up" not in caplog.text
    assert caplog.text.count("the server was not reached") == 1
