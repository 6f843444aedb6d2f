"""Jobs: pods until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

import copy
from typing import Any

import anyio

from kopylite import App, Context, Request, Result, Unstructured
from kopylite.devcluster.simulator.workloads import (
    JOB,
    POD,
    absence_ends,
    condition_of,
    controlled,
    counts,
    create_pod,
    is_active,
    is_ready,
    parse_time,
    stamp,
    write_status,
)

app = App("job-controller")

INDEX = "batch.kubernetes.io/job-completion-index"
REACHED = ("CompletionsReached", "Reached expected number of succeeded pods")
TOO_MANY = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
TOO_LONG = ("DeadlineExceeded", "Job was active longer than specified deadline")
SUSPENDED = ("JobSuspended", "Job suspended")
RESUMED = ("JobResumed", "Job resumed")


@app.reconciler(JOB, owns=[POD])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Start pods, count how they end, and finish the Job."""
    job = await ctx.client.find(JOB, request)
    if job is None or job.deletion_timestamp is not None:
        return None
    pods = await controlled(ctx, POD, job)
    if _finished(job):
        return await _expire(ctx, job)
    spec, status = job["spec"], copy.deepcopy(job.status)
    succeeded = sum(pod.status.get("phase") == "Succeeded" for pod in pods)
    failed = sum(pod.status.get("phase") == "Failed" for pod in pods)
    active = [pod for pod in pods if is_active(pod)]
    conditions: list[dict[str, Any]] = status.get("conditions") or []
    verdict = _verdict(ctx, job, succeeded, failed, len(active))
    suspended = bool(spec.get("suspend"))
    if verdict is None and not suspended:
        active += await _start(ctx, job, pods, active, succeeded)
    else:
        for pod in active:
            await ctx.client.delete(pod)
        active = []
    _suspension(ctx, conditions, suspended)
    if verdict is not None:
        conditions += _end(ctx, job, verdict)
    desired: dict[str, Any] = {
        "startTime": None if suspended else status.get("startTime") or stamp(ctx.now()),
        "completionTime": stamp(ctx.now()) if verdict == REACHED else None,
        "conditions": conditions or None,
        "ready": sum(is_ready(pod) for pod in active),
        "terminating": sum(pod.deletion_timestamp is not None for pod in pods),
        "uncountedTerminatedPods": {},
        **counts(active=len(active), succeeded=succeeded, failed=failed),
        "completedIndexes": _ranges(_succeeded_indexes(pods)) if spec.get("completionMode") == "Indexed" else None,
    }
    await write_status(ctx, job, desired)
    return _wake(ctx, job)


def _verdict(ctx: Context, job: Unstructured, succeeded: int, failed: int, active: int) -> tuple[str, str] | None:
    """How the Job ends, if it does now."""
    spec, completions = job["spec"], job["spec"].get("completions")
    if failed > spec.get("backoffLimit", 6):
        return TOO_MANY
    limit, began = spec.get("activeDeadlineSeconds"), job.status.get("startTime")
    if limit and began and (ctx.now() - parse_time(began)).total_seconds() >= limit:
        return TOO_LONG
    # Without a number, the first success says that the work is done.
    enough = succeeded >= completions if completions is not None else bool(succeeded) and not active
    return REACHED if enough else None


async def _start(
    ctx: Context, job: Unstructured, pods: list[Unstructured], active: list[Unstructured], succeeded: int
) -> list[Unstructured]:
    """Start as many pods as may run, and are needed."""
    spec = job["spec"]
    needed = spec["parallelism"]
    if spec.get("completions") is not None:
        needed = min(needed, spec["completions"] - succeeded)
    elif succeeded:
        needed = 0
    missing = max(0, needed - sum(pod.status.get("phase") not in ("Succeeded", "Failed") for pod in pods))
    started: list[Unstructured] = []
    taken = _succeeded_indexes(pods) | {int(pod.annotations[INDEX]) for pod in active if INDEX in pod.annotations}
    free = [index for index in range(spec.get("completions") or 0) if index not in taken]

    async def start(number: int) -> None:
        template, extra = spec["template"], {}
        name = f"{job.name}-"
        if spec.get("completionMode") == "Indexed":
            extra = {"annotations": {INDEX: str(free[number])}, "labels": {INDEX: str(free[number])}}
            name = f"{job.name}-{free[number]}-"
        pod = await create_pod(ctx, job, template, generateName=name, **extra)
        if pod is not None:
            started.append(pod)
            ctx.event(job, "SuccessfulCreate", f"Created pod: {pod.name}")

    async with anyio.create_task_group() as tasks:
        for number in range(missing):
            tasks.start_soon(start, number)
    return started


def _end(ctx: Context, job: Unstructured, verdict: tuple[str, str]) -> list[dict[str, Any]]:
    reason, message = verdict
    kinds = ("SuccessCriteriaMet", "Complete") if verdict == REACHED else ("FailureTarget", "Failed")
    if verdict == REACHED:
        ctx.event(job, "Completed", "Job completed")
    else:
        ctx.event(job, reason, message, type="Warning")
    return [_condition(ctx, kind, "True", reason, message) for kind in kinds]


def _suspension(ctx: Context, conditions: list[dict[str, Any]], suspended: bool) -> None:
    present = next((c for c in conditions if c["type"] == "Suspended"), None)
    if present is None and suspended:
        conditions.append(_condition(ctx, "Suspended", "True", *SUSPENDED))
    elif present is not None and (present["status"] == "True") != suspended:
        texts = SUSPENDED if suspended else RESUMED
        conditions[conditions.index(present)] = _condition(ctx, "Suspended", str(suspended), *texts)


def _condition(ctx: Context, kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    now = stamp(ctx.now())
    times = {"lastProbeTime": now, "lastTransitionTime": now}
    return {"type": kind, "status": status, "reason": reason, "message": message, **times}


def _finished(job: Unstructured) -> bool:
    return any(condition_of(job, kind).get("status") == "True" for kind in ("Complete", "Failed"))


async def _expire(ctx: Context, job: Unstructured) -> Result | None:
    """Delete a finished Job when its time is over."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None:
        return None
    end = condition_of(job, "Complete") or condition_of(job, "Failed")
    left = seconds - (ctx.now() - parse_time(end["lastTransitionTime"])).total_seconds()
    if left > 0:
        return Result(requeue_after=left)
    await ctx.client.delete(job, propagation="Foreground")
    return None


def _wake(ctx: Context, job: Unstructured) -> Result | None:
    limit = job["spec"].get("activeDeadlineSeconds")
    if not limit:
        return None
    began = parse_time(job.status.get("startTime") or stamp(ctx.now()))
    return Result(requeue_after=max(0.1, limit - (ctx.now() - began).total_seconds()))


def _succeeded_indexes(pods: list[Unstructured]) -> set[int]:
    done = (pod for pod in pods if pod.status.get("phase") == "Succeeded" and INDEX in pod.annotations)
    return {int(pod.annotations[INDEX]) for pod in done}


def _ranges(indexes: set[int]) -> str | None:
    """As `completedIndexes` writes them: "0,2-4,7"."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1].append(index)
        else:
            parts.append([index])
    texts = (str(p[0]) if len(p) == 1 else f"{p[0]},{p[1]}" if len(p) == 2 else f"{p[0]}-{p[-1]}" for p in parts)
    return ",".join(texts) or None
