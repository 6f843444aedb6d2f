"""Needs: the rights that an operator cannot do without, from what its Apps declare and what they were seen to do.

What is watched is declared, so these rights are certain. What is written stands in the code of the reconciles: it was
recorded while tests ran, or the usual is assumed. Pure: nobody is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kopylite.client import Permission
from kopylite.controller import ControllerSpec, Watch
from kopylite.deploy.calls import ANY, ApiCall
from kopylite.deploy.hooks import webhook_permissions
from kopylite.deploy.recording import Recording
from kopylite.errors import UsageError
from kopylite.leaderelection.lease import LEASE
from kopylite.manager import Operator, Options
from kopylite.manager.elections import elects, lease_names, shards_of
from kopylite.manager.namespaces import NAMESPACE
from kopylite.objects import Kind, kind_of
from kopylite.reconcile.recorder import EVENT

READ = ("get", "list", "watch")
FOLLOW = ("list", "watch")
PUBLISH = ("create", "patch")
# What an elector does to a Lease that exists: it was shipped with the operator.
ELECT = ("get", "watch", "update")
# With shards each replica has a Lease of its own, besides, and takes those of the dead away.
SHARE = ("list", "create", "delete", *ELECT)
# Of --webhook-certs.
AUTO = "auto"
# Where Events about objects without a namespace go.
DEFAULT = "default"

# Assumed where nothing was recorded: `finalize` and `patch` on the own kind, `patch_status`, upserts of what it owns.
OWN_WRITES = ("patch",)
OWNED_WRITES = ("create", "update", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Needs:
    """The rights of a process that runs some Apps.

    Attributes:
        permissions: all of them; a namespace of "" means a ClusterRole, another one a Role there.
        leases: the names of the Leases that it elects leaders by, in its own namespace unless the options name one.
        assumed: the names of the Apps of which no calls were recorded, so that their writes are a guess.
    """

    permissions: frozenset[Permission]
    leases: tuple[str, ...]
    assumed: tuple[str, ...]


def needs_of(
    apps: Sequence[Operator],
    options: Options,
    home: str,
    recording: Recording | None = None,
    complete: Callable[[Kind], Kind] = kind_of,
) -> Needs:
    """The rights that these Apps need where they run with these options.

    Args:
        home: the namespace of the process: its Leases are there, unless the options name another, and its webhooks.
        recording: what the Apps were seen to do; None, or an App that is not in it: its writes are assumed.
        complete: fills in plural and scope of a kind; who can ask a server may know more than is known offline.

    Raises:
        UsageError: the plural of a kind is not known; names the kind.
    """
    leases = tuple(name for app in apps for name in lease_names(app, options))
    needed: set[Permission] = set()
    # Namespaces that nobody knows yet are all of the cluster's, as far as rules can say it.
    scope = options.scope
    if scope.live:
        needed.update(_all(FOLLOW, NAMESPACE.plural or "", NAMESPACE.group, [""]))
    assumed: list[str] = []
    for app in apps:
        declared = _Declared(app, () if scope.live else scope.names, complete)
        needed.update(declared.reads())
        needed.update(declared.finalizers())
        needed.update(declared.events())
        needed.update(declared.pauses())
        calls = recording.of(app.name) if recording else frozenset()
        if calls:
            needed.update(declared.seen(calls))
        else:
            assumed.append(app.name)
            needed.update(declared.assumed())
    where = options.lease_namespace or home
    needed.update(
        Permission(verb, LEASE.plural or "", LEASE.group, where, name=name) for name in leases for verb in ELECT
    )
    if any(elects(app, options) and shards_of(app, options) for app in apps):
        needed.update(_all(SHARE, LEASE.plural or "", LEASE.group, [where]))
    if options.webhook_manage:
        needed.update(webhook_permissions(apps, home, certificates=options.webhook_certs == AUTO))
    if leases:  # Events about the Lease
        needed.update(_all(PUBLISH, "events", EVENT.group, [where]))
    return Needs(_without_doubles(needed), leases, tuple(assumed))


class _Declared:
    """The rights that follow from the declarations of one App."""

    def __init__(self, app: Operator, namespaces: Sequence[str], complete: Callable[[Kind], Kind]) -> None:
        self._app = app
        self._namespaces = namespaces
        self._complete = complete
        specs = app.controllers
        self._watches = [
            *app.cached,
            *(watch for spec in specs for watch in (Watch(spec.kind), *spec.owns, *spec.watches)),
        ]
        self._in_no_namespace = {
            (kind.group, kind.plural) for kind in map(self._kind, self._watches) if kind.namespaced is False
        }
        self._watched = {(kind.group, kind.plural) for kind in map(self._kind, self._watches)}

    def reads(self) -> Iterator[Permission]:
        """Of everything that is mirrored; `get` for the reads that a cache cannot answer, and so go to the server."""
        for watch in self._watches:
            yield from self._of(self._kind(watch), READ, watch.namespace)

    def finalizers(self) -> Iterator[Permission]:
        """An owner reference that blocks the owner's deletion needs this, where that is enforced, as on OpenShift."""
        for spec in self._app.controllers:
            if spec.owns:
                yield from self._of(self._own(spec), ("update",), None, "/finalizers")

    def pauses(self) -> Iterator[Permission]:
        """For the condition of paused objects."""
        for spec in self._app.controllers:
            if spec.paused_condition:
                yield from self._of(self._own(spec), ("patch",), None, "/status")

    def events(self) -> Iterator[Permission]:
        """In the namespaces of the objects that they are about."""
        where = list(self._namespaces) or [""]
        if self._namespaces and self._in_no_namespace:
            where.append(DEFAULT)
        yield from _all(PUBLISH, "events", EVENT.group, where)

    def assumed(self) -> Iterator[Permission]:
        """What reconciles usually write."""
        for spec in self._app.controllers:
            own = self._own(spec)
            yield from self._of(own, OWN_WRITES, None)
            yield from self._of(own, ("patch",), None, "/status")
            for watch in spec.owns:
                yield from self._of(self._kind(watch), OWNED_WRITES, watch.namespace)

    def seen(self, calls: Iterable[ApiCall]) -> Iterator[Permission]:
        """What it was seen to do, in the namespaces that it is limited to here."""
        for call in calls:
            of = call.group, call.resource
            if of == (EVENT.group, EVENT.plural) and call.verb in PUBLISH:
                continue  # in its namespaces; of a recording, they may be others
            if call.namespace != ANY and of in self._watched - self._in_no_namespace and call.verb in ("list", "watch"):
                continue  # of a cache, in the namespaces that it was limited to then; what it watches is known
            namespaces = [call.namespace] if call.namespace != ANY and self._namespaces else self._namespaces or [""]
            yield from _all((call.verb,), call.resource, call.group, namespaces, call.name)

    def _of(
        self, kind: Kind, verbs: Iterable[str], namespace: str | None, subresource: str = ""
    ) -> Iterator[Permission]:
        if kind.namespaced is False:
            where: Sequence[str] = [""]
        else:
            where = [namespace] if namespace is not None else self._namespaces or [""]
        yield from _all(verbs, f"{kind.plural}{subresource}", kind.group, where)

    def _own(self, spec: ControllerSpec) -> Kind:
        return self._kind(Watch(spec.kind))

    def _kind(self, watch: Watch) -> Kind:
        kind = self._complete(kind_of(watch.kind))
        if kind.plural is None or (kind.namespaced is None and self._namespaces):
            raise UsageError(
                f"app {self._app.name!r}: the plural and the scope of {kind} are not known without a server, and "
                f"rules name them. Write: Kind({kind.api_version!r}, {kind.kind!r}, plural=..., namespaced=...)"
            )
        return kind


def _all(
    verbs: Iterable[str], resource: str, group: str, namespaces: Iterable[str], name: str = ""
) -> Iterator[Permission]:
    for namespace in namespaces:
        for verb in verbs:
            yield Permission(verb, resource, group, namespace, name=name)


def _without_doubles(permissions: set[Permission]) -> frozenset[Permission]:
    """Without those that another one covers, which is for all namespaces or for all names."""

    def wider(each: Permission) -> Iterator[Permission]:
        for namespace in {each.namespace, ""}:
            for name in {each.name, ""}:
                yield Permission(each.verb, each.resource, each.group, namespace, name=name)

    return frozenset(each for each in permissions if not any(one != each and one in permissions for one in wider(each)))
