"""The checks of an App: its kinds, its rights, its Leases, its objects and its own Deployment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from kopylite.client import Permission
from kopylite.controller import Watch
from kopylite.deploy import Recording, needs_of
from kopylite.doctor import definitions, deletions, leases, rights, workload
from kopylite.doctor.cluster import CRD, DEPLOYMENT, LEASE, FindingStream, Ward, address, unreadable
from kopylite.doctor.findings import Unchecked, command, error
from kopylite.doctor.reader import NotAllowed, Object
from kopylite.doctor.wire import conditions, mapping, name, namespace, number, part, text
from kopylite.errors import KindNotFound, KopyliteError, UsageError
from kopylite.manager import Operator, Options
from kopylite.manager.elections import elects, lease_names
from kopylite.objects import Kind, kind_of
from kopylite.triggers import PAUSED

POD = Kind("v1", "Pod", "pods", True)
NODE = Kind("v1", "Node", "nodes", False)
BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True)


@dataclass(slots=True)
class Subject:
    """The Apps that are looked at.

    Attributes:
        apps: what they declare.
        crds: of their classes, as `kopylite crd` writes them.
        target: MODULE:APP, for the commands.
        options: how they run.
        home: the namespace of their processes; "" if it is not known.
        user: "system:serviceaccount:NAMESPACE:NAME" whose rights are asked for; "": those of this kubeconfig.
        me: who this kubeconfig is, "" if that is not known.
        recording: of the calls that they make.
    """

    apps: Sequence[Operator]
    crds: Sequence[Object]
    target: str
    options: Options = field(default_factory=Options)
    home: str = ""
    user: str = ""
    me: str = ""
    recording: Recording | None = None
    served: dict[Kind, Kind] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.apps[0].name

    @property
    def kinds(self) -> list[Kind]:
        """All that they watch."""
        return kinds_of(self.apps)


def kinds_of(apps: Sequence[Operator]) -> list[Kind]:
    """All kinds that some Apps watch."""
    watches = [watch for app in apps for watch in app.cached]
    specs = [spec for app in apps for spec in app.controllers]
    watches += [watch for spec in specs for watch in (Watch(spec.kind), *spec.owns, *spec.watches)]
    return [*dict.fromkeys(kind_of(watch.kind) for watch in watches)]


async def check_kinds(subject: Subject, ward: Ward) -> FindingStream:
    """The CRDs of the code beside the cluster's, and whether each kind is served."""
    declared = set()
    for crd in subject.crds:
        declared.add((text(crd, "spec", "group"), text(crd, "spec", "names", "kind")))
        try:
            stored = await ward.reader.find(CRD, name(crd))
        except (NotAllowed, KopyliteError) as failure:
            yield unreadable(definitions.CHECK, f"CustomResourceDefinition {name(crd)}", failure)
            continue
        for finding in definitions.judge_declared(crd, stored, subject.target):
            yield finding
    for kind in subject.kinds:
        try:
            resource = await ward.reader.resources.find(kind, again=True)
            subject.served[kind] = Kind(kind.api_version, kind.kind, resource.plural, resource.namespaced)
        except KindNotFound:
            if tuple(kind.group_kind) not in declared:
                yield error(
                    definitions.CHECK,
                    str(kind),
                    "the App watches it, and the server does not serve it",
                    "install what brings its CRD, or correct apiVersion and kind in the code",
                )
        except KopyliteError as failure:
            yield unreadable(definitions.CHECK, f"whether {kind} is served", failure)


async def check_rights(subject: Subject, ward: Ward) -> FindingStream:
    """Each right that the Apps need, by an access review."""
    guessed: set[tuple[str, str]] = set()

    def complete(kind: Kind) -> Kind:
        known = kind_of(kind)
        found = subject.served.get(kind, known)
        if found.plural is not None and found.namespaced is not None:
            return found
        plural = f"{kind.kind.lower()}s"
        guessed.add((kind.group, plural))
        return Kind(kind.api_version, kind.kind, plural, True)

    home = subject.home or ward_home(subject)
    needs = needs_of(subject.apps, subject.options, home, subject.recording, complete)
    wanted = [
        each
        for each in sorted(needs.permissions, key=str)
        if (each.group, each.resource.partition("/")[0]) not in guessed
        and (subject.home or each.namespace != home or home in subject.options.namespaces)
    ]
    if not subject.home and needs.leases:
        what = "the rights on its Leases: where they are is not known; name it by --operator-namespace"
        yield Unchecked(rights.CHECK, what)
    missing: list[Permission] = []
    failures: list[Exception] = []

    async def ask(each: Permission) -> None:
        try:
            if not await _allowed(subject, ward, each):
                missing.append(each)
        except (NotAllowed, KopyliteError) as failure:
            failures.append(failure)

    async with anyio.create_task_group() as tasks:
        for each in wanted:
            tasks.start_soon(ask, each)
    missing.sort(key=wanted.index)
    for finding in rights.judge(missing, subject.name, subject.user or subject.me, needs.assumed):
        yield finding
    if failures:
        yield unreadable(rights.CHECK, f"{len(failures)} of the {len(wanted)} rights that the App needs", failures[0])


async def _allowed(subject: Subject, ward: Ward, permission: Permission) -> bool:
    spec: dict[str, Any] = {"resourceAttributes": rights.attributes(permission)}
    if not subject.user:
        answer = await ward.reader.review("SelfSubjectAccessReview", spec)
        return part(answer, "status", "allowed") is True
    where = subject.user.split(":")[2]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{where}", "system:authenticated"]
    answer = await ward.reader.review("SubjectAccessReview", {**spec, "user": subject.user, "groups": groups})
    return part(answer, "status", "allowed") is True


def ward_home(subject: Subject) -> str:
    """Where the operator lives, if nothing says it: where `kopylite manifests` puts it."""
    return subject.options.lease_namespace or subject.name


async def check_account(subject: Subject, ward: Ward) -> FindingStream:
    """Whether the ServiceAccount is there whose rights are asked for."""
    if subject.user:
        _, _, where, account = subject.user.split(":", 3)
        if await ward.reader.find(Kind("v1", "ServiceAccount", "serviceaccounts", True), account, where) is None:
            yield error(
                rights.CHECK,
                f"ServiceAccount {where}/{account}",
                "it does not exist, so no pod starts as it",
                command("kubectl", "-n", where, "create", "serviceaccount", account),
            )


async def check_leases(subject: Subject, ward: Ward) -> FindingStream:
    """The Leases of the Apps."""
    names = [lease for app in subject.apps for lease in lease_names(app, subject.options)]
    for finding in leases.twice(names):
        yield finding
    home = subject.options.lease_namespace or subject.home
    seen: list[Object] = []
    for lease in dict.fromkeys(names):
        if home:
            found = await ward.reader.find(LEASE, lease, home)
            if found is None:
                yield leases.absent(lease, home)
            seen += [found] if found is not None else []
        else:
            seen += (await ward.reader.all(LEASE, fields=f"metadata.name={lease}")).items
    for each in seen:
        for finding in leases.judge(each, ward.now, await _pods(subject, ward, namespace(each))):
            yield finding
    if names:
        for where in {namespace(each) for each in seen}:
            for finding in leases.shards((await ward.reader.within(LEASE, where)).items):
                yield finding


async def _pods(subject: Subject, ward: Ward, where: str) -> list[str]:
    """The names of the operator's ready pods; none if they cannot be told."""
    try:
        deployment = await ward.reader.find(DEPLOYMENT, subject.name, where)
        labels: Mapping[str, Any] = mapping(deployment, "spec", "selector", "matchLabels")
        if not labels:
            return []
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = (await ward.reader.within(POD, where, selector)).items
    except (NotAllowed, KopyliteError):
        return []
    return sorted(name(pod) for pod in pods if _is_ready(pod))


def _is_ready(pod: Object) -> bool:
    return any(kind == "Ready" and status == "True" for kind, status, _, _ in conditions(pod))


async def check_paused(subject: Subject, ward: Ward) -> FindingStream:
    """Objects of the Apps that are paused."""
    for app in subject.apps:
        for spec in app.controllers:
            found = ward.scanned.get(kind_of(spec.kind))
            if found is not None:
                resource, listing = found
                for finding in deletions.judge_paused(listing.items, resource.kind.kind, address(resource), PAUSED):
                    yield finding


async def check_operator(subject: Subject, ward: Ward) -> FindingStream:
    """The operator's own Deployment, found by the App's name; what it tells of how the App runs counts from here on."""
    runs = await _has_nodes(ward)
    for app in subject.apps:
        if subject.home:
            one = await ward.reader.find(DEPLOYMENT, app.name, subject.home)
            found = [one] if one is not None else []
        else:
            found = (await ward.reader.all(DEPLOYMENT, fields=f"metadata.name={app.name}")).items
        _learn(subject, found)
        for deployment in found:
            observed = number(deployment, "status", "observedGeneration") is not None
            for finding in workload.judge(deployment, elects=elects(app, subject.options), runs=runs and observed):
                yield finding
            budget = None
            try:
                budget = await ward.reader.find(BUDGET, app.name, namespace(deployment))
            except (NotAllowed, KopyliteError) as failure:
                yield unreadable(workload.CHECK, f"PodDisruptionBudget {app.name}", failure)
            if budget is not None and runs:
                for finding in workload.judge_budget(budget, number(deployment, "spec", "replicas") or 1):
                    yield finding


def _learn(subject: Subject, found: Sequence[Object]) -> None:
    """Where an operator is, and how it is run, if one Deployment alone says so and no option does."""
    if len(found) != 1:
        return
    subject.home = subject.home or namespace(found[0])
    told, now = workload.settings_of(found[0]), subject.options
    scope: dict[str, Any] = {}
    if not now.namespaces and not now.namespaces_labelled:
        scope = {"namespaces": told.namespaces, "namespaces_labelled": told.labelled}
    with suppress(UsageError):  # what kopylite itself would not take either
        subject.options = replace(
            now,
            leader_election=told.leader_election if now.leader_election is None else now.leader_election,
            shards=told.shards if now.shards is None else now.shards,
            webhook_manage=told.webhook_manage or now.webhook_manage,
            **scope,
        )


async def _has_nodes(ward: Ward) -> bool:
    """Whether pods could run; if that may not be known, they can."""
    try:
        return bool((await ward.reader.all(NODE, metadata_only=True)).items)
    except (NotAllowed, KopyliteError):
        return True
