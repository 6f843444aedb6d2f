"""sweep_on_real: the plans of a sweep once more, on a real API server, and where that says something else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio

from kopylite.client import load_config
from kopylite.client.transport import HttpTransport
from kopylite.clock import SYSTEM_CLOCK
from kopylite.errors import UsageError
from kopylite.serving.address import is_loopback
from kopylite.sweep.engine import CRD_STORAGE, Settings, no_yardstick, sweep_source
from kopylite.sweep.oracles import Defect, judge, learn
from kopylite.sweep.plans import GENERATIONS, FaultPlan
from kopylite.sweep.pool import Died, Pool
from kopylite.sweep.realserver import INSIDE
from kopylite.sweep.realworld import RealPlace, remove_namespace, run_on_real, send
from kopylite.sweep.report import Report
from kopylite.sweep.runs import Prepared, SweepRun, prepare
from kopylite.sweep.scenario import Scenario
from kopylite.sweep.source import AppSource

REFERENCES = 2
PREFIX = "kopylite-sweep"
# Of real seconds, in which a CRD that was just made is served.
SERVED_SECONDS = 30.0
# Garbage collectors of clusters look for new kinds every 30 s.
COLLECTED_SECONDS = 35.0
# Its runs wait, and take little of a processor.
JOBS_FOR_EACH = 4
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def sweep_on_real(
    source: AppSource,
    scenario: Scenario,
    settings: Settings,
    kubeconfig: str | None,
    context: str,
    *,
    remote: bool,
    stopped: Callable[[], bool] = lambda: False,
) -> Report:
    """Sweep, and play the same plans on a real API server, too: in namespaces that are made for it and go with it.

    The report is that of the sweep; `differences` tells what the real server made of a plan that the sweep did not.

    Args:
        context: of the kubeconfig; it has to be named, since things are written there.
        remote: it may be on another machine.
        stopped: asked first before anything is written there, and now and then; True: clean up, and come back.

    Raises:
        UsageError: it is not for such a server, or the server refuses what a sweep needs.
        KubeconfigError: the context cannot be used.
    """
    _check(source, scenario)
    host = urlsplit(load_config(kubeconfig, context).server).hostname or ""
    if not remote and not is_loopback(host):
        raise UsageError(
            f"--real {context}: {host} is not this machine. A sweep makes namespaces {PREFIX}-* there, and CRDs that "
            "it does not have, and takes both away again; --real-remote says that this server may be used so"
        )
    verdicts: dict[FaultPlan, Defect | None] = {}
    report = sweep_source(source, scenario, replace(settings, verdict=verdicts.__setitem__))
    place = RealPlace(kubeconfig, context, f"{PREFIX}-{SYSTEM_CLOCK.uuid()[:6]}")
    if verdicts:
        _OnReal(prepare(source, scenario), place, settings, report, stopped).compare(verdicts)
    return report


def _check(source: AppSource, scenario: Scenario) -> None:
    if source.app.hooks or source.app.converters:
        raise UsageError("--real: the App has webhooks, which a real server would call for all namespaces")
    spaces = {step.obj["metadata"].get("namespace", "") for step in scenario.steps}
    if spaces - {INSIDE}:
        shown = ", ".join(space or "none" for space in sorted(spaces - {INSIDE}))
        raise UsageError(f"--real: all steps have to be in namespace {INSIDE}, which stands for one there: {shown}")


class _OnReal:
    def __init__(
        self,
        prepared: Prepared,
        place: RealPlace,
        settings: Settings,
        report: Report,
        stopped: Callable[[], bool],
    ) -> None:
        self._prepared = prepared
        self._place = place
        self._settings = settings
        self._report = report
        self._stopped = stopped
        self._made: list[str] = []

    def compare(self, verdicts: Mapping[FaultPlan, Defect | None]) -> None:
        """Play the plans, and tell the report of verdicts that are others."""
        began = SYSTEM_CLOCK.monotonic()
        if self._stopped():
            return
        try:
            anyio.run(self._begin)
            plans = [*(FaultPlan((), number) for number in range(REFERENCES)), FaultPlan((GENERATIONS,))]
            *runs, counted_otherwise = self._runs(plans)
            if self._stopped():
                return
            if (problem := no_yardstick([*runs, counted_otherwise])) is not None:
                self._report.differences.append(f"without any fault, on the real server the operator {problem.text}")
                return
            reference = learn(runs, counted_otherwise)
            different = [plan for plan, run in self._play(verdicts) if _differs(judge(run, reference), verdicts[plan])]
            for plan, run in self._play(different):  # once more: what was a matter of time is none
                if _differs(found := judge(run, reference), verdicts[plan]):
                    self._report.differences.append(_told(plan, found, verdicts[plan]))
        finally:
            anyio.run(self._end)
            self._report.on_real = len(verdicts)
            self._report.seconds += SYSTEM_CLOCK.monotonic() - began

    def _runs(self, plans: Sequence[FaultPlan]) -> list[SweepRun]:
        """In the order of the plans."""
        played = dict(self._play(plans))
        return [played.get(plan) or SweepRun(plan, died="it was stopped") for plan in plans]

    def _play(self, plans: Iterable[FaultPlan]) -> list[tuple[FaultPlan, SweepRun]]:
        pool: Pool[FaultPlan, SweepRun] = Pool(
            partial(run_on_real, self._prepared, self._place), JOBS_FOR_EACH * self._settings.jobs
        )
        return [
            (p, SweepRun(p, died=run.why) if isinstance(run, Died) else run)
            for p, run in pool.run(plans, self._goes_on)
        ]

    def _goes_on(self) -> bool:
        return not self._stopped()

    async def _begin(self) -> None:
        """Install what CRDs there are not yet."""
        async with self._place.transport() as transport:
            for record in self._prepared.store.collection(CRD_STORAGE).records.values():
                crd = record.decode()
                name = crd["metadata"]["name"]
                if await send(transport, "GET", f"{_CRDS}/{name}"):
                    continue
                body = {**{key: crd[key] for key in ("apiVersion", "kind", "spec")}, "metadata": {"name": name}}
                self._made.append(name)
                await send(transport, "POST", _CRDS, body)
                await _served(transport, crd)
        for _ in range(int(COLLECTED_SECONDS if self._made else 0)):
            if self._goes_on():
                await anyio.sleep(1.0)

    async def _end(self) -> None:
        """Take away what is left: namespaces of runs that did not end in order, and the CRDs that were made."""
        async with self._place.transport() as transport:
            for obj in json.loads(await send(transport, "GET", "/api/v1/namespaces"))["items"]:
                name, metadata = obj["metadata"]["name"], obj["metadata"]
                if name.startswith(self._place.prefix) and "deletionTimestamp" not in metadata:
                    records = self._prepared.store.collection(CRD_STORAGE).records.values()
                    paths = [_collection(record.decode(), name) for record in records]
                    await remove_namespace(transport, name, paths)
            for name in self._made:
                await send(transport, "DELETE", f"{_CRDS}/{name}")


async def _served(transport: HttpTransport, crd: dict[str, Any]) -> None:
    with anyio.fail_after(SERVED_SECONDS):
        while not await send(transport, "GET", _collection(crd, INSIDE)):  # noqa: ASYNC110
            await anyio.sleep(0.1)


def _collection(crd: dict[str, Any], namespace: str) -> str:
    spec = crd["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    space = f"/namespaces/{namespace}" if spec["scope"] == "Namespaced" else ""
    return f"/apis/{spec['group']}/{version}{space}/{spec['names']['plural']}"


def _differs(one: Defect | None, other: Defect | None) -> bool:
    return (one is None) != (other is None)


def _told(plan: FaultPlan, real: Defect | None, ours: Defect | None) -> str:
    """What is different, for people."""
    on_real, here = (f"it {each.text}" if each else "nothing is wrong" for each in (real, ours))
    return f"{plan}: on the real server {on_real}; on the embedded one {here}"
