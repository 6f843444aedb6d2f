"""A merge patch replaces a list that others add to: the subjects of a binding, without the version that was read."""

from typing import Any

from kopylite import App, Context, Kind, Request

Thing, RoleBinding = Kind("zoo.example.com/v1", "Thing"), Kind("rbac.authorization.k8s.io/v1", "RoleBinding")
bug, twin = App("stale-list-patch"), App("stale-list-patch-twin")


def subject_of(request: Request) -> dict[str, Any]:
    return {"kind": "ServiceAccount", "name": request.name, "namespace": request.namespace}


@bug.reconciler(Thing)
async def careless(ctx: Context, request: Request) -> None:
    if await ctx.client.find(Thing, request) is None:
        return
    binding = await ctx.client.get(RoleBinding, "members", namespace="default")
    subjects = binding.get("subjects") or []
    if subject_of(request) not in subjects:
        patch = {"subjects": [*subjects, subject_of(request)]}
        await ctx.client.patch(RoleBinding, "members", patch, namespace="default")


@twin.reconciler(Thing)
async def careful(ctx: Context, request: Request) -> None:
    if await ctx.client.find(Thing, request) is None:
        return
    binding = await ctx.client.get(RoleBinding, "members", namespace="default")
    subjects = binding.get("subjects") or []
    if subject_of(request) not in subjects:  # through the object: refused if the list is not as it was read
        await ctx.client.patch(binding, {"subjects": [*subjects, subject_of(request)]})
