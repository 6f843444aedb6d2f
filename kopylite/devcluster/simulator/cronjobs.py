"""CronJobs: a Job at each time that is due, and no more of the old ones than wanted."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from kopylite import App, Context, Kind, Request, Result, Unstructured
from kopylite.devcluster.simulator.schedules import Schedule
from kopylite.devcluster.simulator.workloads import (
    JOB,
    absence_ends,
    condition_of,
    controlled,
    parse_time,
    stamp,
    write_status,
)
from kopylite.errors import AlreadyExists

app = App("cronjob-controller")

CRON_JOB = Kind("batch/v1", "CronJob")
# Upstream looks at no more times that were missed.
_MOST_MISSED = 100


@app.reconciler(CRON_JOB, owns=[JOB])
@absence_ends
async def reconcile(ctx: Context, request: Request) -> Result | None:
    """Start the Job that is due, tidy up, and wake for the next time."""
    cron = await ctx.client.find(CRON_JOB, request)
    if cron is None or cron.deletion_timestamp is not None:
        return None
    jobs = await controlled(ctx, JOB, cron)
    running = [job for job in jobs if not _ended(job)]
    spec, zone = cron["spec"], ZoneInfo(cron["spec"].get("timeZone") or "UTC")
    due, upcoming, last = None, None, cron.status.get("lastScheduleTime")
    if not spec.get("suspend"):
        schedule = Schedule.parse(spec["schedule"])
        began = parse_time(last or cron.metadata["creationTimestamp"]).astimezone(zone)
        due, upcoming = _times(schedule, began, ctx.now().astimezone(zone))
        if due is None and upcoming is None:
            problem = "time difference between two schedules is less than 1 second"
            ctx.event(cron, "InvalidSchedule", f"invalid schedule: {spec['schedule']} : {problem}", type="Warning")
    if due is not None and not _too_late(ctx, cron, due):
        started = await _start(ctx, cron, running, due)
        if started is not None:
            running, last = started, stamp(due)
    await _tidy(ctx, cron, jobs)
    ended = [str(job.status["completionTime"]) for job in jobs if job.status.get("completionTime")]
    active = [
        {"apiVersion": JOB.api_version, "kind": JOB.kind, "namespace": job.namespace, "name": job.name, "uid": job.uid}
        for job in running
    ]
    await write_status(
        ctx,
        cron,
        {
            "active": active or None,
            "lastScheduleTime": last,
            "lastSuccessfulTime": max(ended) if ended else cron.status.get("lastSuccessfulTime"),
        },
    )
    return Result(requeue_after=max(0.1, (upcoming - ctx.now()).total_seconds())) if upcoming else None


def _times(schedule: Schedule, began: datetime, now: datetime) -> tuple[datetime | None, datetime | None]:
    """The latest time since `began` that is due by now, and the next one."""
    due, upcoming = None, schedule.after(began)
    for _ in range(_MOST_MISSED):
        if upcoming is None or upcoming > now:
            return due, upcoming
        due, upcoming = upcoming, schedule.after(upcoming)
    return due, schedule.after(now)


def _too_late(ctx: Context, cron: Unstructured, due: datetime) -> bool:
    limit = cron["spec"].get("startingDeadlineSeconds")
    return limit is not None and (ctx.now() - due).total_seconds() > limit


async def _start(
    ctx: Context, cron: Unstructured, running: list[Unstructured], due: datetime
) -> list[Unstructured] | None:
    """The Jobs that run after the one for `due` was started; None if it may not be started yet."""
    policy, template = cron["spec"].get("concurrencyPolicy"), cron["spec"]["jobTemplate"]
    if running and policy == "Forbid":
        ctx.event(
            cron,
            "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is Forbid",
        )
        return None
    if running and policy == "Replace":
        for job in running:
            await ctx.client.delete(job, propagation="Background")
            ctx.event(cron, "SuccessfulDelete", f"Deleted job {job.name}")
        running = []
    metadata = template.get("metadata") or {}
    owner = {"apiVersion": CRON_JOB.api_version, "kind": CRON_JOB.kind, "name": cron.name, "uid": cron.uid}
    job = Unstructured(
        {
            "apiVersion": JOB.api_version,
            "kind": JOB.kind,
            "metadata": {
                # One name for each time: started twice, it is there already.
                "name": f"{cron.name}-{int(due.timestamp()) // 60}",
                "namespace": cron.namespace,
                "labels": metadata.get("labels") or {},
                "annotations": {
                    **(metadata.get("annotations") or {}),
                    "batch.kubernetes.io/cronjob-scheduled-timestamp": due.isoformat().replace("+00:00", "Z"),
                },
                "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
            },
            "spec": template["spec"],
        }
    )
    try:
        job = await ctx.client.create(job)
    except AlreadyExists:
        return running
    ctx.event(cron, "SuccessfulCreate", f"Created job {job.name}")
    return [*running, job]


async def _tidy(ctx: Context, cron: Unstructured, jobs: list[Unstructured]) -> None:
    """Keep as many finished Jobs as wanted, the newest."""
    for kind, field, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        finished = [job for job in jobs if condition_of(job, kind)]
        limit = cron["spec"].get(field, default)
        for job in finished[: max(0, len(finished) - limit)]:
            await ctx.client.delete(job, propagation="Background")


def _ended(job: Unstructured) -> bool:
    return bool(condition_of(job, "Complete") or condition_of(job, "Failed"))
