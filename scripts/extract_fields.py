"""Write the facts about fields that clients need into the package's table, from the embedded API server's data.

    scripts/extract_fields.py

For each field of a built-in type that is more than a plain value: of what type it is, whether Go leaves its zero
value out, whether it is a quantity or a time, by which keys a list is merged, and which values the server gives
it by itself. A test compares the table with what this script makes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kopylite.apiserver.builtin import data
from kopylite.apiserver.builtin.scalars import Reading
from kopylite.apiserver.builtin.strategies import CODECS

TARGET = Path(__file__).parent.parent / "kopylite" / "client" / "builtin_fields.json"
SCALARS = {"string", "integer", "number", "boolean"}
TIMES = {"meta.v1.Time": 0, "meta.v1.MicroTime": 6}
# Fields of which only what is named may stay when one of them changes. The first is in the schema, as patch
# strategy; the other two are of the same form, and the server refuses their leftovers in the same way.
RETAIN_KEYS = {("apps.v1.DaemonSetSpec", "updateStrategy"), ("apps.v1.StatefulSetSpec", "updateStrategy")}

# Fields that the server fills in from another one beside them.
LIKE = {
    ("core.v1.ServicePort", "targetPort"): "port",
    ("core.v1.ContainerPort", "hostPort"): "containerPort",
    ("core.v1.PodSpec", "serviceAccount"): "serviceAccountName",
    ("core.v1.ResourceRequirements", "requests"): "limits",
    ("core.v1.LimitRangeItem", "default"): "max",
    ("core.v1.LimitRangeItem", "defaultRequest"): "default",
}
# Fields for which the server finds a value when it is given none.
ASSIGNED = {
    "core.v1.ServiceSpec": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"},
    "core.v1.ServicePort": {"nodePort"},
    "core.v1.PodSpec": {"nodeName", "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeName"},
    "batch.v1.JobSpec": {"selector"},
}
_SIMPLE_VOLUMES = ("configMap", "secret", "downwardAPI", "hostPath", "iscsi", "rbd", "azureDisk", "scaleIO", "emptyDir")
_PROJECTED = [{"serviceAccountToken": {}}, {"downwardAPI": {"items": [{"fieldRef": {}}]}}]
_POD: dict[str, Any] = {
    "containers": [
        {
            "name": "a",
            "image": "x",
            "ports": [{"containerPort": 1}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {}}}],
            "livenessProbe": {"httpGet": {"port": 1}},
            "readinessProbe": {"grpc": {"port": 1}},
        },
        {"name": "b", "image": "x:1"},
    ],
    "volumes": [
        *({"name": name, name: {}} for name in _SIMPLE_VOLUMES),
        {"name": "p", "projected": {"sources": _PROJECTED}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    ],
    "topologySpreadConstraints": [{}],
}
_TEMPLATE = {"spec": _POD}
# What the server is given to fill in, by kind: everything that has defaults, once in each form that has others.
SEEDS: dict[str, list[dict[str, Any]]] = {
    "v1 Pod": [{"spec": _POD}],
    "v1 ReplicationController": [{"spec": {"template": _TEMPLATE}}],
    "apps/v1 Deployment": [{"spec": {"selector": {}, "template": _TEMPLATE}}],
    "apps/v1 ReplicaSet": [{"spec": {"selector": {}, "template": _TEMPLATE}}],
    "apps/v1 DaemonSet": [{"spec": {"selector": {}, "template": _TEMPLATE}}],
    "apps/v1 StatefulSet": [{"spec": {"selector": {}, "template": _TEMPLATE, "volumeClaimTemplates": [{"spec": {}}]}}],
    "batch/v1 Job": [{"spec": {"template": _TEMPLATE}}],
    "batch/v1 CronJob": [{"spec": {"jobTemplate": {"spec": {"template": _TEMPLATE}}}}],
    "v1 Service": [
        {"spec": {"type": kind, "ports": [{"port": 1}]}} for kind in ("ClusterIP", "NodePort", "LoadBalancer")
    ] + [{"spec": {"sessionAffinity": "ClientIP"}}],
    "v1 PersistentVolumeClaim": [{"spec": {}}],
    "v1 PersistentVolume": [{"spec": {"hostPath": {}}}],
    "v1 Secret": [{}],
    "v1 Namespace": [{"spec": {}}],
    "networking.k8s.io/v1 NetworkPolicy": [{"spec": {"ingress": [{"ports": [{}]}]}}],
    "networking.k8s.io/v1 Ingress": [{"spec": {}}],
    "autoscaling/v2 HorizontalPodAutoscaler": [{"spec": {"behavior": {"scaleUp": {}, "scaleDown": {}}}}],
    "storage.k8s.io/v1 StorageClass": [{}],
    "storage.k8s.io/v1 CSIDriver": [{"spec": {}}],
    "rbac.authorization.k8s.io/v1 RoleBinding": [{"subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}],
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": [{"subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}],
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration": [
        {"webhooks": [{"clientConfig": {"service": {}}, "rules": [{}]}]}
    ],
    "admissionregistration.k8s.io/v1 MutatingWebhookConfiguration": [
        {"webhooks": [{"clientConfig": {"service": {}}, "rules": [{}]}]}
    ],
}  # fmt: skip


def short(name: str) -> str:
    return name.removeprefix("io.k8s.").removeprefix("api.").removeprefix("apimachinery.pkg.apis.")


def target_of(prop: Mapping[str, Any]) -> str:
    return short(CODECS.reference(prop))


def shape(prop: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of one value, whatever holds it."""
    target = target_of(prop)
    if target == "pkg.api.resource.Quantity" or target.endswith("resource.Quantity"):
        return {"quantity": True}
    if target in TIMES:
        return {"time": TIMES[target]}
    if target:
        schema = data.SCHEMAS[CODECS.reference(prop)]
        return {"of": target} if "properties" in schema else {}
    if prop.get("type") == "array":
        facts: dict[str, Any] = {"in": "list"}
        if prop.get("x-kubernetes-list-type") == "map":
            facts["keys"] = prop["x-kubernetes-list-map-keys"]
        elif prop.get("x-kubernetes-list-type") == "set":
            facts["keys"] = []
        inner = shape(prop["items"])
        return facts | ({"each": inner} if inner else {})
    if isinstance(prop.get("additionalProperties"), dict):
        inner = shape(prop["additionalProperties"])
        return {"in": "map"} | ({"each": inner} if inner else {})
    return {}


def fields_of(name: str) -> dict[str, Any]:
    schema = data.SCHEMAS[name]
    droppable = {*schema.get(data.OMIT, ()), *schema.get(data.ALWAYS, {})}
    found = {}
    for field, prop in (schema.get("properties") or {}).items():
        facts = shape(prop)
        if "in" in facts or (field in droppable and prop.get("type") in SCALARS):
            facts["zero"] = True
        if "retainKeys" in prop.get("x-kubernetes-patch-strategy", "") or (short(name), field) in RETAIN_KEYS:
            (facts["each"] if facts.get("in") else facts)["retain"] = True
        if prop.get("type") in SCALARS and prop.get("default") not in (None, "", 0):
            facts["defaults"] = [prop["default"]]
        if schema.get(data.ALWAYS, {}).get(field) == {}:
            facts["defaults"] = [{}]  # a struct that is always written
        if field in ASSIGNED.get(short(name), ()):
            facts["assigned"] = True
        if like := LIKE.get((short(name), field)):
            facts["like"] = like
        if facts:
            found[field] = facts
    return found


def note_defaults(types: dict[str, Any], name: str, before: Any, after: Any) -> None:
    """Note, with their types, the fields that the server has added to an object of a type."""
    properties = data.SCHEMAS[name].get("properties") or {}
    for field, value in after.items():
        prop = properties[field]
        if "like" in types[short(name)].get(field, {}):
            continue
        if field not in before or (before[field] in ({}, None) and value):
            values = types[short(name)].setdefault(field, {}).setdefault("defaults", [])
            if value not in values and value not in ("", None):
                values.append(value)
        inner = prop if CODECS.reference(prop) else prop.get("items") or prop.get("additionalProperties") or {}
        ref = CODECS.reference(inner)
        if not ref or "properties" not in data.SCHEMAS[ref]:
            continue
        pairs: Iterator[tuple[Any, Any]] = iter([(before.get(field), value)])
        if isinstance(value, list):
            pairs = zip(before.get(field) or [{}] * len(value), value, strict=True)
        for old, new in pairs:
            note_defaults(types, ref, old or {}, new or {})


def table() -> dict[str, Any]:
    names = {name for group in data.documents().values() for name in group}
    types = {short(name): fields_of(name) for name in sorted(names) if "properties" in data.SCHEMAS[name]}
    kinds = {
        f"{version} {kind}": short(name)
        for version in sorted(data.documents())
        for kind, name in sorted(data.kinds_of(version).items())
        if "properties" in data.SCHEMAS[name]
    }
    for where, seeds in SEEDS.items():
        version, _, kind = where.partition(" ")
        name = data.kinds_of(version)[kind]
        for seed in seeds:
            before = CODECS[name].decode(copy.deepcopy(seed), "", Reading())
            after = copy.deepcopy(before)
            CODECS[name].default(after)
            note_defaults(types, name, before, after)
    used = reachable(types, kinds.values())
    return {"kinds": kinds, "types": {name: types[name] for name in sorted(used)}}


def reachable(types: Mapping[str, Any], roots: Any) -> set[str]:
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in types:
            continue
        found.add(name)
        for facts in types[name].values():
            while facts:
                waiting.append(facts.get("of", ""))
                facts = facts.get("each")
    return found


def text() -> str:
    """The table as JSON, a kind or type on each line."""
    parts = (
        ",\n".join(f"{json.dumps(name)}:{json.dumps(facts, separators=(',', ':'))}" for name, facts in part.items())
        for part in table().values()
    )
    return '{{"kinds":{{\n{}\n}},"types":{{\n{}\n}}}}\n'.format(*parts)


if __name__ == "__main__":
    TARGET.write_text(text())
