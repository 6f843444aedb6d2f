"""The ServiceAccount admission plug-in: gives each new pod an account, and mounts the account's token.

As plugin/pkg/admission/serviceaccount/admission.go.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kopylite.apiserver.world import Admission, World
from kopylite.apiserver.writes.metadata import generated_name
from kopylite.errors import Forbidden

_DEFAULT = "default"
_MIRROR = "kubernetes.io/config.mirror"
_VOLUME_PREFIX = "kube-api-access-"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
# An hour, and some seconds by which upstream tells such tokens from others.
_TOKEN_SECONDS = 3607
# In a new namespace the default account comes a moment after the namespace.
_TURNS, _TRIES, _TRY_SECONDS = 10, 10, 0.1


class ServiceAccountAdmission:
    """A mutating plug-in, for servers where something creates the accounts."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, admission: Admission) -> None:
        """Raises Forbidden: there is no such account."""
        call, pod = admission.call, admission.obj
        if call.resource.storage != "pods" or admission.operation != "CREATE" or call.target.subresource or not pod:
            return
        if _MIRROR in pod["metadata"].get("annotations", {}):
            return
        spec = pod["spec"]
        name = spec.get("serviceAccountName") or _DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = await self._account(call.target.namespace, name)
        if account is None:
            where = f"{call.target.namespace}/{name}"
            text = f'error looking up service account {where}: serviceaccount "{name}" not found'
            shown = str(pod["metadata"].get("name", ""))
            details = {"name": shown, "kind": "pods"}
            raise Forbidden(f'pods "{shown}" is forbidden: {text}', details={k: v for k, v in details.items() if v})
        automount = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
        if automount:
            self._mount(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]

    async def _account(self, namespace: str, name: str) -> dict[str, Any] | None:
        for attempt in range(_TURNS + _TRIES):
            found = self._world.lookup("", "serviceaccounts", namespace, name)
            if found is not None or name != _DEFAULT:
                return found
            if attempt < _TURNS:
                await asyncio.sleep(0)  # enough for a controller of this process
            else:
                await self._world.clock.sleep(_TRY_SECONDS)
        return None

    def _mount(self, spec: dict[str, Any]) -> None:
        containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        lacking = [
            container
            for container in containers
            if all(mount.get("mountPath") != _MOUNT_PATH for mount in container.get("volumeMounts", ()))
        ]
        if not lacking:
            return
        volume = generated_name(_VOLUME_PREFIX, self._world.clock)
        for container in lacking:
            mounts = container.setdefault("volumeMounts", [])
            mounts.append({"name": volume, "readOnly": True, "mountPath": _MOUNT_PATH})
        spec.setdefault("volumes", []).append({"name": volume, "projected": _projection()})


def _projection() -> dict[str, Any]:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    authority = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": authority},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }
