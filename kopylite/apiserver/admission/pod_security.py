"""The PodSecurity admission plug-in: what the labels of namespaces say about the pods in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.admission.pod_standards import LEVELS, PRIVILEGED, RESTRICTED, Violation, violations
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.schema.field_errors import FieldError, go_quote, invalid, invalid_error
from kopylite.apiserver.world import Admission, World

Object = dict[str, Any]
_PREFIX = "pod-security.kubernetes.io/"
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]{0,8})")
# Where each kind keeps the template of its pods.
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "podtemplates": ("template",),
    "replicationcontrollers": ("spec", "template"),
    "daemonsets.apps": ("spec", "template"),
    "deployments.apps": ("spec", "template"),
    "replicasets.apps": ("spec", "template"),
    "statefulsets.apps": ("spec", "template"),
    "jobs.batch": ("spec", "template"),
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template"),
}
_POD_ENDPOINTS = ("", "ephemeralcontainers", "resize")
# As upstream: no namespace with more pods is looked through.
_MOST_PODS = 3000


@dataclass(frozen=True, slots=True)
class Standard:
    """A level in a version: `latest`, or `v1.N`."""

    level: str = PRIVILEGED
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, minor: int, pod: Mapping[str, Any]) -> list[Violation]:
        """Args: minor: that of the server, which `latest` and all later ones mean."""
        wanted = minor if self.version == "latest" else min(int(self.version.removeprefix("v1.")), minor)
        return violations(self.level, wanted, (pod.get("metadata") or {}).get("annotations"), pod.get("spec") or {})


@dataclass(frozen=True, slots=True)
class Policy:
    """What a namespace asks for."""

    enforce: Standard
    warn: Standard


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace with these labels, and what is wrong with them."""
    errors: list[FieldError] = []
    found: dict[str, Standard] = {}
    for mode in ("enforce", "audit", "warn"):
        level = labels.get(_PREFIX + mode, PRIVILEGED)
        if level not in LEVELS:
            errors.append(_error(mode, level, f"must be one of {', '.join(LEVELS)}"))
            level = RESTRICTED if mode == "enforce" else PRIVILEGED
        version = labels.get(f"{_PREFIX}{mode}-version", "latest")
        if version != "latest" and not _VERSION.fullmatch(version):
            errors.append(_error(f"{mode}-version", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        found[mode] = Standard(level, version)
    enforce, warn = found["enforce"], found["warn"]
    if _PREFIX + "warn" not in labels and labels.get(_PREFIX + "enforce") in LEVELS and enforce.level != PRIVILEGED:
        given = f"{_PREFIX}warn-version" in labels
        warn = Standard(enforce.level, warn.version if given else enforce.version)
    return Policy(enforce, warn), errors


def _error(label: str, value: str, text: str) -> FieldError:
    return invalid(f"metadata.labels[{_PREFIX}{label}]", value, text)


class PodSecurity:
    """A validating plug-in. Audit labels are checked, and have no other effect: there is no audit log."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def __call__(self, admission: Admission) -> None:
        """Raises Forbidden, Invalid."""
        storage, obj = admission.call.resource.storage, admission.obj
        subresource = admission.call.target.subresource
        if obj is None:
            return
        if storage == "namespaces" and not subresource:
            self._namespace(admission, obj)
        elif storage == "pods" and subresource in _POD_ENDPOINTS:
            if admission.old is None or _is_significant(obj, admission.old):
                self._pod(admission, obj)
        elif storage in _TEMPLATES and not subresource:
            template: Any = obj
            for field in _TEMPLATES[storage]:
                template = (template or {}).get(field)
            if template:
                self._warn(admission, self._policy(admission).warn, template)

    def _policy(self, admission: Admission) -> Policy:
        namespace = self._world.lookup("", "namespaces", "", admission.call.target.namespace) or {}
        return policy_of((namespace.get("metadata") or {}).get("labels") or {})[0]

    def _pod(self, admission: Admission, pod: Object) -> None:
        policy = self._policy(admission)
        found = policy.enforce.violations(self._world.minor, pod)
        if found:
            raise forbidden(admission, f"violates PodSecurity {go_quote(str(policy.enforce))}: {_listed(found)}")
        self._warn(admission, policy.warn, pod)

    def _warn(self, admission: Admission, standard: Standard, pod: Object) -> None:
        found = standard.violations(self._world.minor, pod)
        if found:
            text = f"would violate PodSecurity {go_quote(str(standard))}: {_listed(found)}"
            admission.call.warnings.append(text)

    def _namespace(self, admission: Admission, namespace: Object) -> None:
        policy, errors = policy_of(namespace["metadata"].get("labels") or {})
        before = Policy(Standard(), Standard())
        if admission.old is not None:
            before, old_errors = policy_of(admission.old["metadata"].get("labels") or {})
            errors = [] if errors == old_errors else errors
        name = str(namespace["metadata"].get("name", ""))
        if errors:
            raise invalid_error("Namespace", "", name, errors)
        new, old = policy.enforce, before.enforce
        relaxed = new.version == old.version and LEVELS.index(new.level) <= LEVELS.index(old.level)
        if admission.old is not None and new != old and new.level != PRIVILEGED and not relaxed:
            admission.call.warnings.extend(self._pods_in(name, new))

    def _pods_in(self, namespace: str, standard: Standard) -> list[str]:
        """What pods that are there already break of a new standard."""
        store = self._world.store
        prefix = f"{namespace}/"
        records = list(store.collection("pods").scan(prefix, prefix, store.version))
        names: dict[str, list[str]] = defaultdict(list)
        for record in records[:_MOST_PODS]:
            pod = record.decode()
            found = standard.violations(self._world.minor, pod)
            if found:
                names[", ".join(violation.reason for violation in found)].append(pod["metadata"]["name"])
        warnings = []
        if len(records) > _MOST_PODS:
            text = f"new PodSecurity enforce level only checked against the first {_MOST_PODS} of {len(records)}"
            warnings.append(f"{text} existing pods")
        if names:
            shown = go_quote(str(standard))
            text = f"existing pods in namespace {go_quote(namespace)} violate the new PodSecurity enforce level {shown}"
            warnings.append(text)
        return warnings + sorted(_of_pods(pods, reason) for reason, pods in names.items())


def _of_pods(pods: list[str], reason: str) -> str:
    others = len(pods) - 1
    more = f" (and {others} other pod{'' if others == 1 else 's'})" if others else ""
    return f"{min(pods)}{more}: {reason}"


def _listed(found: list[Violation]) -> str:
    return ", ".join(map(str, found))


def _is_significant(pod: Object, old: Object) -> bool:
    """Whether an update changes what the standards look at: containers come or get another image."""
    for field in ("containers", "initContainers"):
        ours, theirs = pod["spec"].get(field) or [], old["spec"].get(field) or []
        if [c.get("image") for c in ours] != [c.get("image") for c in theirs]:
            return True
    images = {c["name"]: c.get("image") for c in old["spec"].get("ephemeralContainers") or ()}
    return any(
        c["name"] not in images or images[c["name"]] != c.get("image")
        for c in pod["spec"].get("ephemeralContainers") or ()
    )
