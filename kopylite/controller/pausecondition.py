"""The condition `Paused` in the status of objects: written when a pause begins and when it ends, for controllers that
ask for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kopylite.controller.pauses import Pauses
from kopylite.controller.spec import Reconcile
from kopylite.objects import Kind
from kopylite.reconcile.request import Request, Result
from kopylite.triggers import PAUSED

if TYPE_CHECKING:
    from kopylite.reconcile.context import Context

CONDITION: Final = "Paused"


def with_condition(reconcile: Reconcile, kind: Kind, pauses: Pauses) -> Reconcile:
    """A reconcile that keeps the condition, and runs the other one for objects that are not paused.

    An object that never was paused has no such condition. A write that fails is an error of the run, as any other.
    """

    async def told(ctx: Context, request: Request) -> Result | None:
        paused = request in pauses
        await _tell(ctx, kind, request, paused=paused)
        if paused:
            pauses.park(request, 0)
            return None
        return await reconcile(ctx, request)

    return told


async def _tell(ctx: Context, kind: Kind, request: Request, *, paused: bool) -> None:
    obj = await ctx.client.find(kind, request)
    if obj is None:
        return
    conditions = obj.get("status", {}).get("conditions") if isinstance(obj.get("status"), dict) else None
    found = [each for each in conditions if isinstance(each, dict)] if isinstance(conditions, list) else []
    old = next((each for each in found if each.get("type") == CONDITION), None)
    status = "True" if paused else "False"
    if old.get("status") == status if old is not None else not paused:
        return
    new: dict[str, Any] = {
        "type": CONDITION,
        "status": status,
        "reason": "Annotation" if paused else "NotPaused",
        "message": f"no reconcile runs while the annotation {PAUSED} is there" if paused else "",
        "lastTransitionTime": ctx.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if obj.generation:  # not every kind has one
        new["observedGeneration"] = obj.generation
    listed = [new if each is old else each for each in found] if old is not None else [*found, new]
    await ctx.client.patch_status(obj, {"conditions": listed})
