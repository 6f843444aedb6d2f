"""Namespace rules of creation: nothing new in a namespace that is missing or going. Pure decisions on World."""

from __future__ import annotations

from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.world import World, qualified_details
from kopylite.errors import Cause, Forbidden, NotFound

IMMORTAL_NAMESPACES = ("default", "kube-system", "kube-public")


def check_namespace(world: World, resource: Resource, namespace: str, name: str) -> None:
    """Raises NotFound or Forbidden; access reviews may be asked anywhere."""
    if not resource.namespaced or resource.group == "authorization.k8s.io":
        return
    record = world.store.get("namespaces", namespace)
    if record is None:
        raise NotFound(f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"})
    if b'"deletionTimestamp"' in record.body and "deletionTimestamp" in record.decode()["metadata"]:
        going = "because it is being terminated"
        text = f"unable to create new content in namespace {namespace} {going}"
        cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        raise Forbidden(
            f'{resource.qualified} "{name}" is forbidden: {text}',
            details=qualified_details(resource, name),
            causes=(cause,),
        )
