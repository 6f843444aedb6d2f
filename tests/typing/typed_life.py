"""What editors and type checkers see of an App's hooks, tasks and state; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_type

from prometheus_client import Counter

from kopylite import App, Context, SyncContext

app = App("typed")
BUILDS = app.metrics.register(Counter("builds", "", registry=None))
assert_type(BUILDS, Counter)


class Pool:
    async def ping(self) -> bool:
        return True


@app.lifespan
async def pool(ctx: Context) -> AsyncIterator[Pool]:
    yield Pool()


@app.lifespan(stop_timeout=3)
@asynccontextmanager
async def by_a_manager(ctx: Context) -> AsyncIterator[None]:
    yield


@app.on_start
async def start(ctx: Context) -> None:
    ctx.state[Pool] = Pool()


@app.task(leader=False)
async def task(ctx: Context) -> None:
    assert_type(ctx.state[Pool], Pool)


@app.health("pool")
async def healthy(ctx: Context) -> bool:
    return await ctx.state[Pool].ping()


@app.ready("plain")
def ready(ctx: Context) -> str | None:
    return None


@app.task  # type: ignore[type-var]
def plain(ctx: Context) -> None: ...


def threaded(ctx: SyncContext) -> None:
    assert_type(ctx.state[Pool], Pool)


async def check() -> None:
    assert_type(await healthy(app_context()), bool)


def app_context() -> Context:
    raise NotImplementedError
