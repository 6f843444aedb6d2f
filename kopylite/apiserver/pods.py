"""What is special about pods without a kubelet: binding to a node, and eviction."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from kopylite.apiserver.deletion import Deleter
from kopylite.apiserver.metadata import timestamp
from kopylite.apiserver.negotiation import accept_media, decode_body
from kopylite.apiserver.options import delete_options, write_options
from kopylite.apiserver.requests import Response
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes import PATCH_RETRIES, UpdatePolicy, Writer
from kopylite.errors import BadRequest, Conflict

_SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


class PodEndpoints:
    """Handlers of pods/binding and pods/eviction."""

    def __init__(self, world: World, writer: Writer, deleter: Deleter) -> None:
        self._world = world
        self._writer = writer
        self._deleter = deleter

    async def bind(self, call: Call) -> Response:
        """Assign a pod to a node, once. Raises NotFound, Conflict, BadRequest."""
        binding, _ = decode_body(call.request, "Binding")
        if (binding.get("metadata") or {}).get("name") != call.target.name:
            raise BadRequest("name in URL does not match name in Binding object")
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise BadRequest("target.name is required")

        def assign(live: dict[str, Any] | None) -> dict[str, Any]:
            assert live is not None, "a binding never creates"
            taken = live["spec"].get("nodeName")
            if taken:
                raise _assigned(call.target.name, taken)
            pod = copy.deepcopy(live)
            pod["spec"]["nodeName"] = node
            conditions = pod.setdefault("status", {}).setdefault("conditions", [])
            conditions.append(
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": timestamp(self._world.clock.now()),
                }
            )
            return pod

        options = write_options(call.request, "CreateOptions")
        await self._writer.update(call, assign, options, UpdatePolicy(PATCH_RETRIES, patch=True))
        return self._success(call)

    async def evict(self, call: Call) -> Response:
        """Delete a pod by the Eviction API. Disruption budgets are not weighed. Raises NotFound."""
        eviction, _ = decode_body(call.request, "Eviction")
        await self._deleter.delete(call, delete_options(call.request, eviction.get("deleteOptions")))
        return self._success(call)

    def _success(self, call: Call) -> Response:
        media = accept_media(call.request, views=False)
        return Response(201, media.finish(msgspec.json.encode(_SUCCESS)), media.type)


def _assigned(name: str, node: str) -> Conflict:
    text = f'Operation cannot be fulfilled on pods/binding "{name}": pod {name} is already assigned to node "{node}"'
    return Conflict(text, details={"name": name, "kind": "pods/binding"})
