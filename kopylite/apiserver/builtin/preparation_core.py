"""What the server itself writes into objects of the core group, on create and on update. Pure.

Here is also what the server's standard admission plug-ins add: tolerations and priority of pods, protection
finalizers of volumes and claims, the taint of new nodes, default classes.
"""

from __future__ import annotations

import base64
from typing import Any

from kopylite.apiserver.builtin.validation_groups import SYSTEM_PRIORITIES
from kopylite.apiserver.patching.copying import copied
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.errors import Forbidden
from kopylite.objects.amounts import parse_quantity

Object = dict[str, Any]

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_RESIZABLE = ("containers", "initContainers")
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def create_pod(pod: Object, context: StrategyContext) -> None:
    spec = pod["spec"]
    status = pod["status"]
    status["phase"] = "Pending"
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": context.clock.now().strftime(_TIME),
            }
        ]
    status["qosClass"] = qos_class(spec)
    _set_priority(pod, context)
    add_tolerations(spec)


def add_tolerations(spec: Object) -> None:
    """A pod stays for five minutes on a node that is not ready, unless it says otherwise."""
    tolerations = spec.get("tolerations") or []
    for taint in (_NOT_READY, _UNREACHABLE):
        if not any(_tolerates(t, taint) for t in tolerations):
            tolerations.append({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    spec["tolerations"] = tolerations


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def _set_priority(pod: Object, context: StrategyContext) -> None:
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    classes = list(context.objects("priorityclasses.scheduling.k8s.io"))
    if name:
        found = next((c for c in classes if c["metadata"]["name"] == name), None)
        if found is None and name not in SYSTEM_PRIORITIES:
            who = pod["metadata"].get("name") or pod["metadata"].get("generateName", "")
            raise Forbidden(
                f'pods "{who}" is forbidden: no PriorityClass with name {name} was found',
                details={"name": who, "kind": "pods"},
            )
    else:
        defaults = [c for c in classes if c.get("globalDefault")]
        found = min(defaults, key=lambda c: c["value"], default=None)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value = found["value"] if found is not None else SYSTEM_PRIORITIES.get(name or "", 0)
    policy = (found or {}).get("preemptionPolicy", "PreemptLowerPriority")
    for field, computed, what in (
        ("priority", value, "integer value of priority"),
        ("preemptionPolicy", policy, "string value of PreemptionPolicy"),
    ):
        asked = spec.get(field)
        if asked is not None and asked != computed:
            who = pod["metadata"].get("name") or pod["metadata"].get("generateName", "")
            raise Forbidden(
                f'pods "{who}" is forbidden: the {what} ({asked}) must not be provided in pod spec; priority admission '
                f"controller computed {computed} from the given PriorityClass name",
                details={"name": who, "kind": "pods"},
            )
        spec[field] = computed


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by the cpu and memory of all containers (or of the pod as a whole)."""
    whole = spec.get("resources") or {}
    holders = (
        [whole]
        if whole.get("requests") or whole.get("limits")
        else [c.get("resources") or {} for c in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]]
    )
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    guaranteed = True
    for resources in holders:
        set_limits = set()
        for amounts, totals in ((resources.get("requests"), requests), (resources.get("limits"), limits)):
            for name, text in (amounts or {}).items():
                amount = parse_quantity(text).value
                if name in ("cpu", "memory") and amount > 0:
                    totals[name] = totals.get(name, 0) + amount
                    if totals is limits:
                        set_limits.add(name)
        guaranteed = guaranteed and set_limits == {"cpu", "memory"}
    if not requests and not limits:
        return "BestEffort"
    if guaranteed and all(limits.get(name) == amount for name, amount in requests.items()):
        return "Guaranteed" if len(requests) == len(limits) else "Burstable"
    return "Burstable"


def update_pod(pod: Object, old: Object, context: StrategyContext) -> None:
    # The scheduler's and kubelet's fields that a PUT of an older copy may lack are kept by admission.
    for field in ("priority", "preemptionPolicy"):
        if field in old["spec"]:
            pod["spec"].setdefault(field, old["spec"][field])
    add_tolerations(pod["spec"])


def update_pod_status(pod: Object, old: Object, context: StrategyContext) -> None:
    pod["status"].setdefault("qosClass", old["status"].get("qosClass", ""))
    _keep(pod["metadata"], old["metadata"], "ownerReferences")


def update_ephemeral_containers(pod: Object, old: Object, context: StrategyContext) -> None:
    containers = pod["spec"].get("ephemeralContainers")
    pod["spec"] = dict(old["spec"])
    if containers is not None:
        pod["spec"]["ephemeralContainers"] = containers
    pod["status"] = old["status"]


def resize_pod(pod: Object, old: Object, context: StrategyContext) -> None:
    """`/resize` takes the containers' resources and resize policies only."""
    wanted = {c["name"]: c for field in _RESIZABLE for c in pod["spec"].get(field) or ()}
    pod["spec"] = copied(old["spec"])
    pod["status"] = copied(old["status"])
    for container in (c for field in _RESIZABLE for c in pod["spec"].get(field) or ()):
        new = wanted.get(container["name"])
        if new is not None:
            container["resources"] = new["resources"]
            _keep(container, new, "resizePolicy")


def _keep(obj: Object, old: Object, field: str) -> None:
    """Give a field the old value, absence included."""
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def decode_secret(secret: Object) -> None:
    """Move stringData into data: it is write only."""
    texts = secret.pop("stringData", None)
    if texts:
        data = secret.setdefault("data", {})
        for key, text in texts.items():
            data[key] = base64.b64encode(text.encode()).decode()


def update_secret(secret: Object, old: Object, context: StrategyContext) -> None:
    secret.setdefault("type", old.get("type", "Opaque"))


def create_namespace(namespace: Object, context: StrategyContext) -> None:
    namespace["status"]["phase"] = "Active"
    finalizers = namespace["spec"].setdefault("finalizers", [])
    if "kubernetes" not in finalizers:
        finalizers.append("kubernetes")


def update_namespace(namespace: Object, old: Object, context: StrategyContext) -> None:
    _keep(namespace["spec"], old["spec"], "finalizers")


def finalize_namespace(namespace: Object, old: Object, context: StrategyContext) -> None:
    namespace["status"] = old["status"]


def create_persistent_volume(volume: Object, context: StrategyContext) -> None:
    volume["status"]["phase"] = "Pending"
    volume["status"]["lastPhaseTransitionTime"] = context.clock.now().strftime(_TIME)
    _add_finalizer(volume, "kubernetes.io/pv-protection")


def update_persistent_volume_status(volume: Object, old: Object, context: StrategyContext) -> None:
    status, before = volume["status"], old["status"]
    changed, ours = status.get("phase") != before.get("phase"), status.get("lastPhaseTransitionTime")
    if not changed and ours is None:
        _keep(status, before, "lastPhaseTransitionTime")
    elif changed and ours in (None, before.get("lastPhaseTransitionTime")):
        status["lastPhaseTransitionTime"] = context.clock.now().strftime(_TIME)


def create_service_account(account: Object, context: StrategyContext) -> None:
    """References to secrets have names only."""
    if account.get("secrets"):
        account["secrets"] = [{k: v for k, v in secret.items() if k == "name"} for secret in account["secrets"]]


def update_service_account(account: Object, old: Object, context: StrategyContext) -> None:
    create_service_account(account, context)


def create_persistent_volume_claim(claim: Object, context: StrategyContext) -> None:
    claim["status"]["phase"] = "Pending"
    _normalize_data_sources(claim["spec"])
    _add_finalizer(claim, "kubernetes.io/pvc-protection")
    legacy = "volume.beta.kubernetes.io/storage-class" in (claim["metadata"].get("annotations") or {})
    if "storageClassName" not in claim["spec"] and not legacy:
        name = _default_class("storageclasses.storage.k8s.io", "storageclass.kubernetes.io", context)
        if name:
            claim["spec"]["storageClassName"] = name


def update_persistent_volume_claim(claim: Object, old: Object, context: StrategyContext) -> None:
    """A bound claim grows only if its storage class allows that."""
    bound = (old.get("status") or {}).get("phase") == "Bound"
    wanted, known = (_requested(c["spec"]) for c in (claim, old))
    if not bound or not wanted or not known or parse_quantity(wanted).value <= parse_quantity(known).value:
        return
    name = old["spec"].get("storageClassName")
    for storage_class in context.objects("storageclasses.storage.k8s.io"):
        if storage_class["metadata"]["name"] == name and storage_class.get("allowVolumeExpansion"):
            return
    text = (
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
        "resize"
    )
    who = old["metadata"]["name"]
    raise Forbidden(
        f'persistentvolumeclaims "{who}" is forbidden: {text}', details={"name": who, "kind": "persistentvolumeclaims"}
    )


def _requested(spec: Object) -> str | None:
    storage: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return storage


def _normalize_data_sources(spec: Object) -> None:
    """A reference into another namespace belongs to a feature that is off; the old field knows two kinds only."""
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    known = {("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot")}
    if source is not None and reference is None and (source.get("apiGroup") or "", source.get("kind")) not in known:
        del spec["dataSource"]
        source = None
    if source and not reference:
        spec["dataSourceRef"] = dict(source)
    elif reference and not source and not reference.get("namespace"):
        spec["dataSource"] = {k: v for k, v in reference.items() if k != "namespace"}


def _default_class(storage: str, prefix: str, context: StrategyContext) -> str:
    """The name of the class that its annotation makes the default: the newest one, then by name; "" if none."""
    marked = [
        c["metadata"]
        for c in context.objects(storage)
        if (c["metadata"].get("annotations") or {}).get(f"{prefix}/is-default-class") == "true"
    ]
    marked.sort(key=lambda m: m["name"])
    newest = max(marked, key=lambda m: str(m.get("creationTimestamp", "")), default=None)
    return "" if newest is None else str(newest["name"])


def create_ingress(ingress: Object, context: StrategyContext) -> None:
    annotated = "kubernetes.io/ingress.class" in (ingress["metadata"].get("annotations") or {})
    if "ingressClassName" not in ingress["spec"] and not annotated:
        name = _default_class("ingressclasses.networking.k8s.io", "ingressclass.kubernetes.io", context)
        if name:
            ingress["spec"]["ingressClassName"] = name


def _add_finalizer(obj: Object, name: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if name not in finalizers:
        finalizers.append(name)


def decode_node(node: Object) -> None:
    """The older field and the newer list say the same; what is no more, or not yet, is dropped."""
    spec = node["spec"]
    for field in ("configSource", "podPreemptionPolicy"):
        spec.pop(field, None)
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDR"):
        spec["podCIDRs"][0] = spec["podCIDR"]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def create_node(node: Object, context: StrategyContext) -> None:
    taints = node["spec"].setdefault("taints", [])
    taint = {"key": _NOT_READY, "effect": "NoSchedule"}
    if not any(t.get("key") == _NOT_READY and t.get("effect") == "NoSchedule" for t in taints):
        taints.append(taint)
