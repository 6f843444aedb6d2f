"""Webhooks of an App in its sweep: called on every write, whoever crashes."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from kopylite import App, Context, CustomResource, Request, Review
from kopylite.sweep import FaultPlan, Scenario, Scene, Step, sweep
from kopylite.sweep.plans import Spot


class PlanSpec(BaseModel):
    size: int = 1
    color: str = ""


class PlanStatus(BaseModel):
    shown: str = ""


class Plan(CustomResource[PlanSpec, PlanStatus], group="hooked.example.com", version="v1"):
    """What the webhooks judge."""


app = App("hooked")


@app.mutator(Plan)
async def complete(ctx: Context, review: Review[Plan]) -> None:
    review.object.spec.color = review.object.spec.color or "blue"


@app.validator(Plan)
async def check(ctx: Context, review: Review[Plan]) -> None:
    if review.object.spec.size > 9:
        review.deny("that is too big", field="spec.size")
    _ = 6 // review.object.spec.size  # nobody thought of nothing


@app.reconciler(Plan)
async def reconcile(ctx: Context, request: Request) -> None:
    plan = await ctx.client.find(Plan, request)
    if plan is not None:
        await ctx.client.patch_status(plan, {"shown": plan.spec.color})


def a_plan(size: int) -> dict[str, object]:
    metadata = {"name": "a", "namespace": "default"}
    return {"apiVersion": "hooked.example.com/v1", "kind": "Plan", "metadata": metadata, "spec": {"size": size}}


@pytest.mark.timeout(200)
async def test_webhooks_change_what_is_written_also_when_the_operator_has_crashed() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.apply(a_plan(1))
        await scene.quiet()
        stored = await scene.client.live.get(Plan, "a", namespace="default")
        assert (stored.spec.color, stored.status.shown) == ("blue", "blue")

    report = await sweep(app, Scenario(play=scenario), faults="crash", jobs=1)
    assert not report.findings, report
    assert report.plans == 1


async def test_a_step_that_a_webhook_refuses_is_a_finding() -> None:
    report = await sweep(app, Scenario((Step("apply", a_plan(10)),)), jobs=1)
    assert "that is too big" in report.findings[0].sentence


async def test_a_spec_that_a_webhook_refuses_is_none_and_one_that_breaks_it_is() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.apply(a_plan(1))
        await scene.quiet()

    def change(size: int) -> FaultPlan:
        key = "plans.hooked.example.com default/a"
        return FaultPlan((Spot("specs", "allowed", path=key, pointer="/spec/size", value=str(size)),))

    report = await sweep(app, Scenario(play=scenario), plans=[change(10), change(0)], jobs=1)
    [finding] = report.findings
    assert finding.plan == change(0).to_wire()
    assert (
        "a change of spec.size to 0 in the Plan default/a (after step 1), which its schema allows," in finding.sentence
    )
