"""What an operator with webhooks looks after itself: its certificates, configurations and conversions. Pure.

The rights for that follow from the declarations, so they are no part of what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kopylite.client import ApiRequest, Permission
from kopylite.manager import Operator
from kopylite.webhooks.configurations import KINDS, WebhookPlace, conversion_of, converted_crds, service_name

ADMISSION = "admissionregistration.k8s.io"
SECRETS = "secrets"
# An apply reads what it has applied before, and makes what is not there; the server asks for that right by its name.
APPLY = ("create", "get", "patch")


def webhook_service(apps: Sequence[Operator]) -> str:
    """The name of the Service of the webhooks of a process; "": its Apps have none."""
    first = next((app for app in apps if app.hooks or app.converters), None)
    return "" if first is None else service_name(first.name)


def webhook_permissions(apps: Sequence[Operator], home: str, *, certificates: bool) -> Iterator[Permission]:
    """What `--webhook-manage` needs.

    Args:
        home: the namespace of the process.
        certificates: whether they are made by the process itself, and kept in a Secret.
    """
    if certificates and webhook_service(apps):
        yield Permission("create", SECRETS, "", home)  # a POST has no name that could be asked for
    for group, resource, name in _objects(apps):
        if resource == SECRETS:
            verbs: Sequence[str] = ("get", "update") if certificates else ()
        else:
            verbs = APPLY if group == ADMISSION else ("get", "patch")
        for verb in verbs:
            yield Permission(verb, resource, group, home if resource == SECRETS else "", name=name)


def is_housekeeping(apps: Sequence[Operator], request: ApiRequest) -> bool:
    """Whether a request, which no reconcile sends, is one of those that webhooks send for themselves."""
    *_, resource, name = ("", "", *request.path.split("/"))
    own = {(resource, name) for _, resource, name in _objects(apps)}
    if request.method == "POST" and name == SECRETS:
        return any(f'"name":"{secret}"'.encode() in (request.body or b"") for of, secret in own if of == SECRETS)
    return (resource, name) in own


def converted(crds: Sequence[dict[str, Any]], apps: Sequence[Operator], namespace: str) -> list[dict[str, Any]]:
    """CRDs with the conversion that the converters of some Apps do, in a namespace.

    Without an authority: the running operator adds its own, or cert-manager's cainjector does.
    """
    names = {name for app in apps for name in converted_crds(app.converters)}
    conversion = conversion_of(WebhookPlace(namespace, webhook_service(apps)))
    return [
        {**crd, "spec": {**crd["spec"], "conversion": conversion}} if crd["metadata"]["name"] in names else crd
        for crd in crds
    ]


def _objects(apps: Sequence[Operator]) -> Iterator[tuple[str, str, str]]:
    """Group, resource and name of what is read and written."""
    if service := webhook_service(apps):
        yield "", SECRETS, f"{service}-certs"
    for app in apps:
        for role, kind in KINDS.items():
            if any(spec.role == role for spec in app.hooks):
                yield ADMISSION, f"{kind.lower()}s", app.name
        for name in converted_crds(app.converters):
            yield "apiextensions.k8s.io", "customresourcedefinitions", name
