"""Each sample through a few plans of its sweep, of which `make sweep-samples` plays all; the mark `operator_sweep`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kopylite.sweep import FaultPlan, Scene, sweep
from kopylite.sweep.plans import Spot
from samples.bucket import sweep as bucket
from samples.hello import operator as hello
from samples.myapp import operator as myapp
from samples.shop import operator as shop
from tests.unit.sweep import operators

SAMPLES = Path(__file__).parent.parent / "samples"
SWEPT = {"bucket": bucket.app, "myapp": myapp.app, "shop": shop.app}
# In a run of its own each: what was in its memory is gone.
STARTS = [FaultPlan((Spot("rerun", "start"),))]

pytestmark = pytest.mark.timeout(300)


def test_every_sample_is_swept() -> None:
    """By `make sweep-samples`; here those with features of their own, since each costs fifteen seconds of CPU."""
    samples = {path.parent.name for path in SAMPLES.glob("*/operator.py")}
    makefile = (SAMPLES.parent / "Makefile").read_text()
    swept = set(re.findall(r"sweep samples\.(\w+)\.\w+:app --scenario samples/\1/sweep\.yaml", makefile))
    assert swept == samples
    assert {"hello", *SWEPT} <= samples


@pytest.mark.parametrize("name", SWEPT)
async def test_nothing_is_found_in_a_sample(name: str) -> None:
    report = await sweep(SWEPT[name], SAMPLES / name / "sweep.yaml", plans=STARTS, budget=250)
    assert not report.findings, report
    assert report.plans == 1


@pytest.mark.operator_sweep(hello.app, faults="crash", budget="4m")
async def test_nothing_is_found_in_hello_by_a_marked_test_which_is_the_scenario(scene: Scene) -> None:
    metadata = {"name": "world", "namespace": "default"}
    await scene.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"name": "World"}})
    await scene.quiet()
    greeted = await scene.client.live.get(hello.ConfigMap, "world", namespace="default")
    assert greeted["data"]["greeting"] == "Hello, World!"


@pytest.mark.xfail(strict=True, raises=pytest.fail.Exception, reason="the operator is half done after a crash")
@pytest.mark.operator_sweep(operators.bug, faults="crash", budget="4m", crds=[operators.CRD])
async def test_a_marked_test_fails_by_what_is_found(scene: Scene) -> None:
    await scene.apply(operators.a_thing())
    await scene.quiet()
