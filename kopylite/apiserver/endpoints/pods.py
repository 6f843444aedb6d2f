"""What is special about pods without a kubelet: binding to a node, and eviction."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import msgspec

from kopylite.apiserver.deletion.deleter import Deleter
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import WriteQuery, delete_options, write_options
from kopylite.apiserver.request.request import Response
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes.decoding import check_namespace_matches, read_typed
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.apiserver.writes.writer import PATCH_RETRIES, UpdatePolicy, Writer
from kopylite.errors import BadRequest, Conflict

# The server's own part in these writes is nobody's field.
_UNOWNED = UpdatePolicy(PATCH_RETRIES, managed=True, patch=True)
_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodEndpoints:
    """Handlers of pods/binding and pods/eviction."""

    def __init__(self, world: World, writer: Writer, deleter: Deleter) -> None:
        self._world = world
        self._writer = writer
        self._deleter = deleter

    async def bind(self, call: Call) -> Response:
        """Assign a pod to a node, once; by pods/binding or by bindings. Raises NotFound, Conflict, BadRequest."""
        accept_media(call.request, views=False)  # before the body is looked at
        binding = read_typed(call.request, "io.k8s.api.core.v1.Binding", "v1")
        metadata, target = binding.get("metadata") or {}, binding.get("target") or {}
        check_namespace_matches(call, metadata)
        name = metadata.get("name") or ""
        if not call.target.name and not name:
            raise BadRequest("Name parameter required.")
        if call.target.name not in ("", name):
            raise BadRequest("name in URL does not match name in Binding object")
        # The real server tells these two with a 500.
        if target.get("kind") not in (None, "", "Node"):
            raise BadRequest(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
        node = target.get("name")
        if not node:
            raise BadRequest("target.name: Required value")
        call = self._of_pod(call, name)

        def assign(live: dict[str, Any] | None) -> dict[str, Any]:
            assert live is not None, "a binding never creates"
            taken = live["spec"].get("nodeName")
            if taken:
                raise _assigned(call.target.name, taken)
            pod = self._with_condition(live, "PodScheduled", {})
            pod["spec"]["nodeName"] = node
            return pod

        options = write_options(call.request, "CreateOptions")
        await self._writer.update(call, assign, options, _UNOWNED)
        return self._success(call)

    def _of_pod(self, call: Call, name: str) -> Call:
        """The call as one about pods/binding, whatever path it came by."""
        pods = self._world.registry.find("", "v1", "pods")
        assert pods is not None, "built in"
        target = replace(call.target, resource="pods", name=name, subresource="binding")
        return replace(call, resource=pods, target=target)

    async def evict(self, call: Call) -> Response:
        """Delete a pod by the Eviction API. Disruption budgets are not weighed. Raises NotFound."""
        accept_media(call.request, views=False)  # before the body is looked at
        eviction = read_typed(call.request, "io.k8s.api.policy.v1.Eviction", "policy/v1")
        deleting = delete_options(call.request, eviction.get("deleteOptions"))
        reason = {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}

        def disrupt(live: dict[str, Any] | None) -> dict[str, Any]:
            assert live is not None, "an eviction never creates"
            return self._with_condition(live, "DisruptionTarget", reason)

        status = replace(call, target=replace(call.target, subresource="status"))
        await self._writer.update(status, disrupt, WriteQuery(deleting.dry_run), _UNOWNED)
        await self._deleter.delete(call, deleting)
        return self._success(call)

    def _with_condition(self, live: dict[str, Any], kind: str, reason: dict[str, str]) -> dict[str, Any]:
        """A copy of the pod with a condition that is true from now on."""
        pod = copy.deepcopy(live)
        conditions = pod.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [condition for condition in conditions if condition["type"] != kind]
        since = {"lastProbeTime": None, "lastTransitionTime": timestamp(self._world.clock.now())}
        conditions.append({"type": kind, "status": "True", **since, **reason})
        return pod

    def _success(self, call: Call) -> Response:
        media = accept_media(call.request, views=False)
        return Response(201, media.finish(msgspec.json.encode(_SUCCESS)), media.type)


def _assigned(name: str, node: str) -> Conflict:
    text = f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} is already assigned to node "{node}"'
    return Conflict(text, details={"name": name, "kind": "pods/binding"})
