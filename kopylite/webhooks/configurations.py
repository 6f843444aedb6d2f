"""Configurations: what the API server is told of an App's webhooks, derived from their declarations. Pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kopylite.errors import RegistrationError, UsageError
from kopylite.objects import Kind, adapter_of
from kopylite.webhooks.specs import ConverterSpec, Role, WebhookSpec

CONVERT_PATH = "/convert"
API_VERSION = "admissionregistration.k8s.io/v1"
KINDS: dict[Role, str] = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
# The name that the API server gives each namespace as a label.
NAMESPACE_NAME = "kubernetes.io/metadata.name"
# What a webhook could lock the cluster out of.
NEVER = "kube-system"

_URL = re.compile(r"https://(\[[0-9a-fA-F:]+\]|[^/:@?#\s]+)(:\d{1,5})?(/[^?#\s]*)?")


class HookEndpoint(msgspec.Struct, frozen=True):
    """One webhook of a configuration: functions that share their rules, in their order.

    Attributes:
        path: of its URL.
        name: as the configuration and the API server's messages have it.
    """

    role: Role
    specs: tuple[WebhookSpec, ...]
    path: str
    name: str


class WebhookPlace(msgspec.Struct, frozen=True):
    """Where the API server reaches the webhooks.

    Args:
        url: "https://host:port"; "": by a Service.
        service: "name", in `namespace`.
        bundle: PEM of the authorities that their certificate may be from; b"": filled in by somebody else.
        namespace: where the operator runs; by a Service, its own objects are no business of its webhooks.
    """

    namespace: str
    service: str
    url: str = ""
    bundle: bytes = b""

    def client_config(self, path: str) -> dict[str, Any]:
        """How one webhook is reached."""
        config: dict[str, Any]
        if self.url:
            config = {"url": f"{self.url.rstrip('/')}{path}"}
        else:
            config = {"service": {"name": self.service, "namespace": self.namespace, "path": path, "port": 443}}
        return config | ({"caBundle": base64.b64encode(self.bundle).decode()} if self.bundle else {})

    @property
    def hosts(self) -> list[str]:
        """The names that the certificate has to have."""
        if self.url:
            return [host_of(self.url)]
        name = f"{self.service}.{self.namespace}.svc"
        return [name, f"{name}.cluster.local", f"{self.service}.{self.namespace}"]


def service_name(app: str) -> str:
    """Of the Service, and (with "-certs") of the Secret; of several Apps in a process, the first with webhooks."""
    return f"{app}-webhooks"


def check_url(url: str) -> str:
    """A URL as it was given.

    Raises:
        UsageError: the API server takes it for none: it calls https only, without user, query and fragment.
    """
    if not _URL.fullmatch(url):
        raise UsageError(f"webhook URL {url!r} is not https://HOST[:PORT][/PATH]")
    return url


def host_of(url: str) -> str:
    match = _URL.fullmatch(url)
    return match[1].strip("[]") if match else ""


def with_port(url: str, port: int) -> str:
    """A URL with the port that is listened on where it names none."""
    match = _URL.fullmatch(url)
    if match is None or match[2]:
        return url
    return f"https://{match[1]}:{port}{match[3] or ''}"


def endpoints_of(specs: Iterable[WebhookSpec]) -> list[HookEndpoint]:
    """The webhooks of an App: functions for one kind with the same conditions share one, in their order."""
    groups: dict[str, list[WebhookSpec]] = {}
    for spec in specs:
        groups.setdefault(repr(_shared(spec)), []).append(spec)
    found: list[HookEndpoint] = []
    taken: set[str] = set()
    for group in groups.values():
        first = group[0]
        kind = adapter_of(first.kind).kind
        label: str = first.role
        path = f"/{first.role}-{kind.group.replace('.', '-')}-{kind.version}-{kind.kind.lower()}"
        number = 2
        if path in taken or first.name:
            path, label = f"{path}-{first.own_name}", f"{first.role}-{first.own_name}"
        while path in taken:
            path, label = f"{path}-{number}", f"{label}-{number}"
        taken.add(path)
        found.append(
            HookEndpoint(first.role, tuple(group), path, f"{label}.{kind.kind.lower()}.{kind.group or 'core'}")
        )
    return found


def _shared(spec: WebhookSpec) -> tuple[Any, ...]:
    """What functions of one webhook have in common."""
    kind = adapter_of(spec.kind).kind
    return (
        spec.role, kind.api_version, kind.kind, spec.match, spec.labels, spec.namespaces, spec.failure_policy,
        spec.timeout, spec.side_effects, spec.reinvoke, spec.name,
    )  # fmt: skip


def configurations_of(app: str, endpoints: Sequence[HookEndpoint], place: WebhookPlace) -> list[dict[str, Any]]:
    """The webhook configurations of an App, to be applied; none for a role that it has no function of.

    Raises:
        RegistrationError: the resource of a kind is not known.
    """
    found: list[dict[str, Any]] = []
    for role, kind in KINDS.items():
        webhooks = [_webhook(endpoint, place) for endpoint in endpoints if endpoint.role == role]
        if webhooks:
            found.append({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": app}, "webhooks": webhooks})
    return found


def _webhook(endpoint: HookEndpoint, place: WebhookPlace) -> dict[str, Any]:
    first = endpoint.specs[0]
    operations = {operation.upper(): None for spec in endpoint.specs for operation in spec.operations}
    below = {subresource: None for spec in endpoint.specs for subresource in spec.subresources}
    kind = _with_resource(first)
    resources = [f"{kind.plural}/{name}" if name else str(kind.plural) for name in below]
    scope = {True: "Namespaced", False: "Cluster", None: "*"}[kind.namespaced]
    webhook: dict[str, Any] = {
        "name": endpoint.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": place.client_config(endpoint.path),
        "rules": [
            {
                "apiGroups": [kind.group], "apiVersions": [kind.version], "operations": list(operations),
                "resources": resources, "scope": scope,
            }
        ],
        "failurePolicy": first.failure_policy,
        "matchPolicy": "Equivalent",
        "namespaceSelector": _namespaces(first, place),
        "objectSelector": _selector(first.labels),
        "sideEffects": first.side_effects,
        "timeoutSeconds": int(first.timeout),
    }  # fmt: skip
    if first.match:
        webhook["matchConditions"] = [{"name": name, "expression": text} for name, text in first.match.items()]
    if endpoint.role == "mutate":
        webhook["reinvocationPolicy"] = "IfNeeded" if first.reinvoke else "Never"
    return webhook


def _with_resource(spec: WebhookSpec) -> Kind:
    kind = adapter_of(spec.kind).kind
    if not kind.plural:
        raise RegistrationError(
            f"webhook {spec.own_name}: the resource of {kind} is not known; name it: Kind({kind.api_version!r}, "
            f"{kind.kind!r}, 'PLURAL', namespaced=True)"
        )
    return kind


def _namespaces(spec: WebhookSpec, place: WebhookPlace) -> dict[str, Any]:
    """Own namespace and kube-system are left out: an operator that is down must be able to come back."""
    out = [NEVER] if place.url else [NEVER, place.namespace]
    selector = _selector(spec.namespaces)
    names = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": list(dict.fromkeys(out))}
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), names]}


def _selector(selector: Mapping[str, Any] | None) -> dict[str, Any]:
    if not selector:
        return {}
    if selector.keys() <= {"matchLabels", "matchExpressions"}:
        return dict(selector)
    return {"matchLabels": dict(selector)}


def conversion_of(place: WebhookPlace) -> dict[str, Any]:
    """`spec.conversion` of a CRD whose versions an App converts."""
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": place.client_config(CONVERT_PATH)}
    return {"strategy": "Webhook", "webhook": webhook}


def converted_crds(converters: Iterable[ConverterSpec]) -> list[str]:
    """The names of the CRDs whose versions are converted.

    Raises:
        RegistrationError: the plural of a kind is not known.
    """
    names: dict[str, None] = {}
    for spec in converters:
        kind = adapter_of(spec.kind).kind
        if not kind.plural:
            raise RegistrationError(f"@app.converter: name the plural of {kind}: Kind(..., plural='...')")
        names[f"{kind.plural}.{kind.group}"] = None
    return list(names)


def service_of(app: str, place: WebhookPlace, port: int) -> dict[str, Any]:
    """The Service in front of the pods with the label app.kubernetes.io/name."""
    ports = [{"name": "webhooks", "port": 443, "protocol": "TCP", "targetPort": port}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": place.service, "namespace": place.namespace},
        "spec": {"selector": {"app.kubernetes.io/name": app}, "ports": ports},
    }
