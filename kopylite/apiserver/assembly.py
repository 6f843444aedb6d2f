"""ServerParts: built-in kinds, custom resources, special endpoints and documents, joined into one Core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.access import openid
from kopylite.apiserver.access.authentication import Authenticator
from kopylite.apiserver.access.authorization import AllowAll, Authorizer
from kopylite.apiserver.access.certificates import CertificateSigners, note_requester
from kopylite.apiserver.access.escalation import EscalationCheck
from kopylite.apiserver.access.openid import OpenId
from kopylite.apiserver.access.rbac import RbacAuthorizer
from kopylite.apiserver.access.reviews import Reviews
from kopylite.apiserver.access.signing import SigningKey
from kopylite.apiserver.access.token_requests import TokenRequests
from kopylite.apiserver.access.tokens import ServiceAccountTokens
from kopylite.apiserver.admission.conversion import Versions
from kopylite.apiserver.admission.limit_ranges import LimitRanger
from kopylite.apiserver.admission.mutating_policies import MutatingPolicies
from kopylite.apiserver.admission.pod_security import PodSecurity
from kopylite.apiserver.admission.quotas import Quotas
from kopylite.apiserver.admission.runtime_classes import RuntimeClasses
from kopylite.apiserver.admission.validating_policies import ValidatingPolicies
from kopylite.apiserver.admission.webhooks import Webhooks
from kopylite.apiserver.builtin.descriptions import describe, parameter_descriptions
from kopylite.apiserver.builtin.strategies import builtin_resources
from kopylite.apiserver.controllers.api_services import ApiServices
from kopylite.apiserver.core import Core
from kopylite.apiserver.crd.definitions import CrdStrategy
from kopylite.apiserver.crd.serving import STORAGE as CRD_STORAGE
from kopylite.apiserver.crd.serving import CrdServing
from kopylite.apiserver.endpoints import connections
from kopylite.apiserver.endpoints.index import PATHS, exactly, respond_index
from kopylite.apiserver.endpoints.metrics import respond_metrics
from kopylite.apiserver.endpoints.pods import PodEndpoints
from kopylite.apiserver.endpoints.scale import ScaleEndpoint
from kopylite.apiserver.endpoints.version import respond_health, respond_version
from kopylite.apiserver.openapi.documents import OpenApi
from kopylite.apiserver.openapi.endpoint import OpenApiEndpoint
from kopylite.apiserver.outbound.conversion import Converter
from kopylite.apiserver.outbound.hooks import HookClient
from kopylite.apiserver.printers.columns import columns_of
from kopylite.apiserver.request.request import User
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.world import World


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Who is let in, and whose rights count.

    Attributes:
        tokens: static bearer tokens.
        anonymous: let requests without credentials in.
        rbac: enforce Roles and bindings.
        services: where Services of webhooks are reached: a local port for "namespace/name" or "namespace/name:port".
    """

    tokens: Mapping[str, User] = field(default_factory=dict)
    anonymous: bool = False
    rbac: bool = False
    services: Mapping[str, int] = field(default_factory=dict)


class ServerParts:
    """The joined server.

    Args:
        is_ready: what /readyz says.

    Attributes:
        authenticator: knows users by their credentials.
        hooks: calls webhooks; to be closed.
    """

    def __init__(self, world: World, access: AccessOptions, *, is_ready: Callable[[], bool]) -> None:
        self.world = world
        context = StrategyContext(world.clock, self._objects, world.unfinished.of)
        for resource in builtin_resources(context):
            resource.columns = resource.columns or columns_of(resource.storage)
            if resource.storage == CRD_STORAGE:
                _join_crds(resource)
            world.registry.add(resource)
        rbac = RbacAuthorizer(world.store)
        authorizer: Authorizer = rbac if access.rbac else AllowAll()
        self.core = Core(world, authorizer)
        key = SigningKey(world.store)
        self._tokens = ServiceAccountTokens(world, key)
        self.openid = OpenId(key)
        self.authenticator = Authenticator(access.tokens, anonymous=access.anonymous, lookup=self._tokens.read)
        limits, classes = LimitRanger(world), RuntimeClasses(world)
        world.mutating += [limits.mutate, EscalationCheck(authorizer, rbac), classes.mutate, note_requester]
        world.validating += [limits.validate, PodSecurity(world), classes.validate, CertificateSigners(authorizer)]
        self.hooks = HookClient(world, access.services)
        world.convert = Converter(world, self.hooks)
        versions = Versions(world)
        webhooks = Webhooks(world, self.hooks, versions, authorizer.authorize)
        # Last, as upstream: they see what the plug-ins before made of the object.
        world.mutating += [MutatingPolicies(world, versions, authorizer.authorize), webhooks.mutate]
        world.validating += [
            webhooks.mutate_deletion,
            ValidatingPolicies(world, versions, authorizer.authorize),
            webhooks.validate,
            Quotas(world).admit,
        ]
        CrdServing(world, self.core.deleter)
        self.api_services = ApiServices(world)
        self._join_special(authorizer)
        for name in ("/healthz", "/livez", "/readyz"):
            self.core.documents[name] = lambda request: respond_health(request, is_ready)
        for name in (openid.CONFIGURATION, openid.KEYS):
            self.core.documents[name] = exactly(name, self.openid)
        self.core.documents["/metrics"] = exactly(
            "/metrics", lambda request: respond_metrics(request, world, self.core.metrics)
        )
        for name in PATHS:
            index = exactly(name, lambda request: respond_index(request, world.registry, self.core.documents))
            self.core.documents[name] = index
        openapi = OpenApi(world.registry, world.minor, describe, parameter_descriptions)
        self.core.documents["/openapi"] = OpenApiEndpoint(openapi)
        self.core.documents["/version"] = lambda request: respond_version(request, world.minor)

    def _join_special(self, authorizer: Authorizer) -> None:
        core = self.core
        pods = PodEndpoints(self.world, core.writer, core.deleter)
        reviews = Reviews(self.world, authorizer, self.authenticator.identify)
        core.special.update(reviews.handlers())
        core.special["*", "*", "scale"] = ScaleEndpoint(self.world, core.writer)
        core.special["", "serviceaccounts", "token"] = TokenRequests(self.world, self._tokens).create
        core.special.update(connections.handlers(self.world))
        core.special["", "pods", "binding"] = pods.bind
        core.special["", "bindings", ""] = pods.bind
        core.special["", "pods", "eviction"] = pods.evict

    def _objects(self, storage: str) -> Iterator[dict[str, Any]]:
        return (record.decode() for record in list(self.world.store.collection(storage).records.values()))


def _join_crds(resource: Resource) -> None:
    """Put the rules of CRDs around those of an ordinary built-in kind."""
    load = resource.load
    resource.load = lambda: CrdStrategy(load())


def assemble(world: World, access: AccessOptions, *, is_ready: Callable[[], bool]) -> ServerParts:
    return ServerParts(world, access, is_ready=is_ready)
