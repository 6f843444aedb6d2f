"""The checks of the cluster: what each reads, and to which judgement it hands that."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kopylite.client import Permission, ResourceInfo
from kopylite.doctor import definitions, deletions, hooks, ownership, servers
from kopylite.doctor.findings import Finding, Unchecked
from kopylite.doctor.hooks import Hook, HookTarget
from kopylite.doctor.reader import KindListing, NotAllowed, Object, Reader
from kopylite.doctor.rights import rule
from kopylite.doctor.wire import age, conditions, maps, name, namespace, number, part, text, texts
from kopylite.errors import KindNotFound, KopyliteError
from kopylite.objects import Kind, kind_of
from kopylite.webhooks.certificates import SECRET

CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
API_SERVICE = Kind("apiregistration.k8s.io/v1", "APIService", "apiservices", False)
FLOW_SCHEMA = Kind("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas", False)
VALIDATING = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False
)
MUTATING = Kind(
    "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False
)
SERVICE = Kind("v1", "Service", "services", True)
SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", True)
NAMESPACE = Kind("v1", "Namespace", "namespaces", False)
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases", True)
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments", True)

# What operators own, besides kinds of CRDs. Secrets and ConfigMaps too: only their metadata is asked for.
OWNED = (
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("v1", "Pod"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("networking.k8s.io/v1", "Ingress"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("policy/v1", "PodDisruptionBudget"),
)
# Owners that were not seen in a list and are asked for one by one.
LOOK_UPS = 200
# Kinds of CRDs of other people that are looked through.
MOST_KINDS = 200

FindingStream = AsyncGenerator[Finding | Unchecked, None]


@dataclass(slots=True)
class Ward:
    """What the checks have in common.

    Attributes:
        now: the server's time.
        kinds: those of the App, whose objects are looked at first.
        only: no others are.
        scanned: the metadata of all objects that were looked at, by kind; filled by `scan`.
    """

    reader: Reader
    now: datetime
    kinds: list[Kind] = field(default_factory=list)
    only: bool = False
    scanned: dict[Kind, tuple[ResourceInfo, KindListing]] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)


def unreadable(check: str, what: str, error: Exception) -> Unchecked:
    """Why something was not looked at."""
    if isinstance(error, NotAllowed):
        return Unchecked(check, f"these credentials may not read {what}", rule(error.permissions))
    return Unchecked(check, f"{what} could not be read: {error}")


async def check_definitions(ward: Ward) -> FindingStream:
    """All CRDs of the cluster."""
    found = await ward.reader.all(CRD)
    for crd in found.items:
        for finding in definitions.judge_stored(crd):
            yield finding
    if found.more:
        yield _more(definitions.CHECK, found)


async def check_api_services(ward: Ward) -> FindingStream:
    """Aggregated APIs."""
    for each in (await ward.reader.all(API_SERVICE)).items:
        for finding in servers.judge_api_service(each):
            yield finding


async def check_flow_schemas(ward: Ward) -> FindingStream:
    """Priorities of requests."""
    for each in (await ward.reader.all(FLOW_SCHEMA)).items:
        for finding in servers.judge_flow_schema(each):
            yield finding


async def check_webhooks(ward: Ward) -> FindingStream:
    """Webhooks of admission, and of conversion."""
    found: list[Hook] = []
    for kind in (VALIDATING, MUTATING):
        try:
            listing = await ward.reader.all(kind)
        except (NotAllowed, KopyliteError) as error:
            yield unreadable(hooks.CHECK, f"{kind.kind}s", error)
            continue
        for each in listing.items:
            found += hooks.hooks_of(each, kind.plural or "")
            for finding in hooks.judge_reach(each, kind.plural or ""):
                yield finding
    try:
        for crd in (await ward.reader.all(CRD)).items:
            found += hooks.conversion_of(crd)
    except (NotAllowed, KopyliteError) as error:
        yield unreadable(hooks.CHECK, "conversion webhooks", error)
    for hook in found:
        target = None
        try:
            target = await _target(ward.reader, hook)
        except (NotAllowed, KopyliteError) as error:
            yield unreadable(hooks.CHECK, f"the Service of {hook.where}", error)
        for finding in hooks.judge(hook, target, ward.now):
            yield finding


async def _target(reader: Reader, hook: Hook) -> HookTarget | None:
    place = hook.service
    if place is None:
        return None
    namespace_, named, _ = place
    service = await reader.find(SERVICE, named, namespace_) if named and namespace_ else None
    if service is None:
        return HookTarget(None)
    endpoints: int | None = None
    if part(service, "spec", "selector"):
        slices = await reader.within(SLICE, namespace_, f"kubernetes.io/service-name={named}")
        endpoints = sum(_ready(each) for each in slices.items)
    authority = b""
    try:
        # Where kopylite keeps the certificates of an App's webhooks; nothing else of it is looked at.
        secret = await reader.find(SECRET, f"{named}-certs", namespace_)
        authority = base64.b64decode(text(secret, "data", "ca.crt"))
    except (NotAllowed, KopyliteError, binascii.Error, ValueError):
        pass
    return HookTarget(service, endpoints, authority)


def _ready(endpoint_slice: Object) -> int:
    """Addresses of a slice that are ready; absent means ready."""
    return sum(
        len(texts(each, "addresses"))
        for each in maps(endpoint_slice, "endpoints")
        if part(each, "conditions", "ready") is not False
    )


async def check_namespaces(ward: Ward) -> FindingStream:
    """Namespaces that do not come to their end."""
    if ward.reader.namespaces:
        found = []
        for each in ward.reader.namespaces:
            obj = await ward.reader.find(NAMESPACE, each)
            if obj is None:
                yield Unchecked("namespaces", f"namespace {each} does not exist, so nothing in it was looked at")
            else:
                found.append(obj)
    else:
        found = (await ward.reader.all(NAMESPACE)).items
    for obj in found:
        for finding in deletions.judge_namespace(obj, ward.now):
            yield finding


async def scan(ward: Ward) -> FindingStream:
    """Read the metadata of all that may be owned, or wait for its end: the App's kinds, CRDs', and Kubernetes' own."""
    kinds = list(ward.kinds)
    if not ward.only:
        kinds += [kind_of(Kind(*each)) for each in OWNED]
        try:
            custom = [kind for crd in (await ward.reader.all(CRD)).items if (kind := _served(crd)) is not None]
            known = {kind.group_kind for kind in kinds}
            kinds += [kind for kind in custom[:MOST_KINDS] if kind.group_kind not in known]
            if len(custom) > MOST_KINDS:
                left = len(custom) - MOST_KINDS
                yield Unchecked("objects", f"{left} kinds of CRDs: at most {MOST_KINDS} are looked through")
        except (NotAllowed, KopyliteError) as error:
            yield unreadable("objects", "the kinds of CRDs", error)
    forbidden: list[Permission] = []
    for kind in dict.fromkeys(kinds):
        try:
            resource = await ward.reader.resource(kind)
            listing = await ward.reader.all(kind, metadata_only=True)
        except KindNotFound:
            continue  # of the App it is told elsewhere
        except NotAllowed as refused:
            forbidden += refused.permissions
            continue
        except KopyliteError as error:
            yield unreadable("objects", f"objects of kind {kind.kind}", error)
            continue
        ward.scanned[kind] = resource, listing
        if listing.more:
            yield _more("objects", listing)
    if forbidden:
        what = f"{len({*forbidden})} resources: whether their objects have finalizers or owners that are wrong"
        yield unreadable("objects", what, NotAllowed(forbidden))
    for problem in await look_who_lives(ward):
        yield problem


async def look_who_lives(ward: Ward) -> list[Unchecked]:
    """Note which controllers run, as far as Deployments and Leases tell; returns what may not be seen of them."""
    problems = []
    for each in (DEPLOYMENT, LEASE):
        try:
            ward.alive |= set(_alive(each, (await ward.reader.all(each)).items, ward.now))
        except (NotAllowed, KopyliteError) as error:
            problems.append(unreadable(deletions.CHECK, f"which controllers run, by their {each.kind}s", error))
    return problems


def _alive(kind: Kind, items: list[Object], now: datetime) -> Iterator[str]:
    for obj in items:
        if kind is DEPLOYMENT and number(obj, "status", "readyReplicas"):
            yield name(obj)
        since = age(text(obj, "spec", "renewTime"), now) if kind is LEASE else None
        duration = number(obj, "spec", "leaseDurationSeconds") or 15
        if since is not None and since < 3 * duration and text(obj, "spec", "holderIdentity"):
            yield name(obj).partition("-shard-")[0]


async def check_deletions(ward: Ward) -> FindingStream:
    """Objects that wait for their finalizers."""
    for kind, (resource, listing) in ward.scanned.items():
        for obj in listing.items:
            for finding in deletions.judge(obj, kind.kind, address(resource), ward.now, ward.alive):
                yield finding


async def check_owners(ward: Ward) -> FindingStream:
    """Owner references."""
    by_uid = {
        text(obj, "metadata", "uid"): namespace(obj) for _, listing in ward.scanned.values() for obj in listing.items
    }
    known: dict[tuple[ownership.Reference, str], ownership.OwnerFacts | None] = {}
    looked_up = 0
    for kind, (resource, listing) in ward.scanned.items():
        for obj in listing.items:
            owners: dict[ownership.Reference, ownership.OwnerFacts] = {}
            for reference in ownership.references(obj):
                if by_uid.get(reference[3]) == namespace(obj) and reference[3]:
                    owner = await _kind_of_owner(ward.reader, reference)
                else:
                    key = reference, namespace(obj)
                    if key not in known:
                        looked_up += 1
                        known[key] = await _look_up(ward.reader, *key, by_uid) if looked_up <= LOOK_UPS else None
                    owner = known[key]
                if owner is not None:
                    owners[reference] = owner
            findings = list(ownership.judge(obj, kind.kind, address(resource), owners))
            if findings and await _still(ward.reader, kind, obj):
                for finding in findings:
                    yield finding
    if looked_up > LOOK_UPS:
        yield Unchecked(
            ownership.CHECK, f"{looked_up - LOOK_UPS} owners: at most {LOOK_UPS} are looked up; use -n NAMESPACE"
        )


async def _kind_of_owner(reader: Reader, reference: ownership.Reference) -> ownership.OwnerFacts | None:
    """Of an owner that is there: whether its reference can be followed."""
    version, kind, _, uid = reference
    try:
        resource = await reader.resource(Kind(version, kind))
    except (KindNotFound, ValueError):
        return ownership.OwnerFacts(served=False, other_version=await _other_version(reader, version, kind))
    except KopyliteError:
        return None
    return ownership.OwnerFacts(namespaced=resource.namespaced, uid=uid)


async def _look_up(
    reader: Reader, reference: ownership.Reference, where: str, seen: dict[str, str]
) -> ownership.OwnerFacts | None:
    version, kind_name, named, uid = reference
    owner = await _kind_of_owner(reader, reference)
    if owner is None or (owner.namespaced and not where and owner.served) or not (owner.served or owner.other_version):
        return owner
    try:
        kind = Kind(version if owner.served else owner.other_version, kind_name)
        namespaced = (await reader.resource(kind)).namespaced
        found = await reader.find(kind, named, where if namespaced else "", metadata_only=True)
    except (NotAllowed, KopyliteError):
        return None if owner.served else ownership.OwnerFacts(served=False)
    actual = text(found, "metadata", "uid")
    if not owner.served:
        # With a version that works, the collector would find that an owner is gone, and delete what it owns.
        return owner if actual == uid else ownership.OwnerFacts(served=False)
    return ownership.OwnerFacts(
        namespaced=owner.namespaced, uid=actual, elsewhere=None if actual == uid else seen.get(uid)
    )


async def _other_version(reader: Reader, version: str, kind: str) -> str:
    """A version of the group in which the kind is served; "" if there is none, or it may not be known."""
    group = _group(version)
    try:
        for crd in (await reader.all(CRD)).items:
            if text(crd, "spec", "group") == group and text(crd, "spec", "names", "kind") == kind:
                served = _served(crd)
                return served.api_version if served is not None else ""
    except (NotAllowed, KopyliteError):
        return ""
    return next((each for each, named in OWNED if named == kind and _group(each) == group), "")


def _group(version: str) -> str:
    return version.partition("/")[0] if "/" in version else ""


async def _still(reader: Reader, kind: Kind, obj: Object) -> bool:
    """Whether an object is as it was listed: what was just deleted, or adopted, is nobody's fault."""
    try:
        now = await reader.find(kind, name(obj), namespace(obj), metadata_only=True)
    except (NotAllowed, KopyliteError):
        return True
    return (
        now is not None
        and not text(now, "metadata", "deletionTimestamp")
        and (part(now, "metadata", "ownerReferences") == part(obj, "metadata", "ownerReferences"))
    )


def _served(crd: Object) -> Kind | None:
    """The kind of a CRD, in its stored version if that is served."""
    established = any(kind == "Established" and status == "True" for kind, status, _, _ in conditions(crd))
    served = [each for each in maps(crd, "spec", "versions") if part(each, "served") is True]
    served.sort(key=lambda each: part(each, "storage") is not True)
    if not established or not served:
        return None
    spec: Any = part(crd, "spec")
    version = f"{text(spec, 'group')}/{text(served[0], 'name')}"
    return Kind(
        version, text(spec, "names", "kind"), text(spec, "names", "plural"), text(spec, "scope") == "Namespaced"
    )


def address(resource: ResourceInfo) -> str:
    """A resource as kubectl takes it."""
    return f"{resource.plural}.{resource.kind.group}" if resource.kind.group else resource.plural


def _more(check: str, listing: KindListing) -> Unchecked:
    return Unchecked(
        check, f"more than {len(listing.items)} {listing.kind.kind}s: the rest was not looked at (--limit, -n)"
    )
