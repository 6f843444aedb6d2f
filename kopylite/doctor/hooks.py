"""Webhooks that point nowhere: of admission and of the conversion of CRDs. Pure: where they point was looked up."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kopylite.doctor.certificates import validities
from kopylite.doctor.findings import Finding, FindingSeverity, command, kubectl
from kopylite.doctor.wire import Object, mapping, maps, name, number, part, span, text, texts
from kopylite.objects.selectors import OPERATORS, Requirement, Selector

CHECK = "webhooks"
# Groups whose objects the cluster itself lives by.
_VITAL = {"*", "", "apps", "batch", "coordination.k8s.io", "discovery.k8s.io", "rbac.authorization.k8s.io"}
_SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook.

    Attributes:
        where: the object that declares it.
        client: its clientConfig.
        fails: whether a write fails when it cannot be reached.
        resource, object: of the object, for commands.
    """

    where: str
    client: Object
    fails: bool
    resource: str
    object: str

    @property
    def service(self) -> tuple[str, str, int] | None:
        """Namespace, name and port of the Service that it is behind."""
        found = mapping(self.client, "service")
        if not found:
            return None
        port = number(found, "port")
        return text(found, "namespace"), text(found, "name"), 443 if port is None else port


@dataclass(frozen=True, slots=True)
class HookTarget:
    """What there is behind a Service.

    Attributes:
        service: the object; None: there is none.
        endpoints: how many are ready; None: that is not known, or the Service has no selector.
        authority: the certificate authority that the server behind it has, as PEM; b"": not known.
    """

    service: Object | None
    endpoints: int | None = None
    authority: bytes = b""


def hooks_of(configuration: Object, resource: str) -> list[Hook]:
    """The webhooks of a Validating- or MutatingWebhookConfiguration."""
    kind = {"validating": "ValidatingWebhookConfiguration", "mutating": "MutatingWebhookConfiguration"}
    title = f"{kind[resource[: resource.find('webhook')]]} {name(configuration)}"
    return [
        Hook(
            f"{title}, {text(each, 'name')}",
            mapping(each, "clientConfig"),
            text(each, "failurePolicy") != "Ignore",
            resource,
            name(configuration),
        )
        for each in maps(configuration, "webhooks")
    ]


def conversion_of(crd: Object) -> list[Hook]:
    """The conversion webhook of a CRD, if it has one."""
    if text(crd, "spec", "conversion", "strategy") != "Webhook":
        return []
    client = mapping(crd, "spec", "conversion", "webhook", "clientConfig")
    return [Hook(f"CustomResourceDefinition {name(crd)}, conversion", client, True, "crd", name(crd))]


def judge(hook: Hook, target: HookTarget | None, now: datetime) -> Iterator[Finding]:
    """What is wrong with a webhook. `target`: None where it is no Service's, or may not be read."""
    severity = FindingSeverity.ERROR if hook.fails else FindingSeverity.WARNING
    effect = "what it is asked about is refused" if hook.fails else "it is passed over"
    if hook.resource == "crd":
        effect = "objects in another version than the stored one cannot be read, nor can the namespace be deleted"
    remove = kubectl("delete", hook.resource, hook.object, "")
    if hook.resource == "crd":
        patch = '{"spec": {"conversion": {"strategy": "None", "webhook": null}}}'
        remove = (
            kubectl("patch", "crd", hook.object, "", "--type=merge", "-p", patch) + "    # if its versions are alike"
        )

    def found(what: str, fix: str) -> Finding:
        return Finding(severity, CHECK, hook.where, f"{what}: {effect}", fix)

    service = hook.service
    if service is not None and target is not None:
        namespace, named, port = service
        if target.service is None:
            yield found(f"its Service {namespace}/{named} does not exist", f"# bring its server back, or:\n{remove}")
            return
        if text(target.service, "spec", "type") != "ExternalName" and port not in _ports(target.service):
            ports = ", ".join(map(str, _ports(target.service)))
            yield found(f"its Service {namespace}/{named} has no port {port} (it has {ports})", _describe(hook))
        elif target.endpoints == 0:
            fix = (
                command("kubectl", "-n", namespace, "describe", "service", named)
                + "    # which pods are to be behind it?"
            )
            yield found(f"its Service {namespace}/{named} has no ready endpoint", f"{fix}\n# for good: {remove}")
    yield from _authority(hook, target, now, found)


def _authority(hook: Hook, target: HookTarget | None, now: datetime, found: object) -> Iterator[Finding]:
    assert callable(found)
    given = text(hook.client, "caBundle")
    if not given:
        if hook.service is not None:
            fix = "put the authority of its certificate into caBundle (kopylite: --webhook-manage; "
            fix += "cert-manager: look at its cainjector)"
            yield found("it has no caBundle, and no public authority signs for a Service", fix)
        return
    try:
        bundle = base64.b64decode(given)
    except (binascii.Error, ValueError):
        bundle = b""
    all_of_them = validities(bundle)
    if not all_of_them:
        yield found("its caBundle holds no certificate", _describe(hook))
        return
    last = max(all_of_them, key=lambda each: each.ends)
    renew = (
        "renew the authority, and put the new one into caBundle beside the old one (kopylite: --webhook-manage does)"
    )
    if last.left(now) <= 0:
        yield found(f"its caBundle ended {span(-last.left(now))} ago", renew)
    elif last.ends_soon(now):
        yield Finding(FindingSeverity.WARNING, CHECK, hook.where, f"its caBundle ends in {span(last.left(now))}", renew)
    if target is not None and target.authority and not _shares(bundle, target.authority):
        fix = "put ca.crt of its Secret into caBundle (kopylite: run with --webhook-manage)"
        yield found("its caBundle is not the authority that its server's certificate is of", fix)


def judge_reach(configuration: Object, resource: str) -> Iterator[Finding]:
    """Webhooks that are asked about the cluster's own objects, and must answer: with them down, nothing heals."""
    found = zip(hooks_of(configuration, resource), maps(configuration, "webhooks"), strict=True)
    for index, (hook, each) in enumerate(found):
        if not hook.fails or part(each, "matchConditions") or mapping(each, "objectSelector"):
            continue
        if _selects(mapping(each, "namespaceSelector"), _SYSTEM) and any(map(_is_vital, maps(each, "rules"))):
            what = "failurePolicy Fail, and it is asked about objects of kube-system: when its server is down, "
            what += "the cluster cannot start the pods that would bring it back"
            yield Finding(FindingSeverity.WARNING, CHECK, hook.where, what, _exclude(configuration, resource, index))


def _exclude(configuration: Object, resource: str, index: int) -> str:
    """What keeps a webhook from kube-system, beside what its selector says already."""
    selector = dict(mapping(maps(configuration, "webhooks")[index], "namespaceSelector"))
    term = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
    selector["matchExpressions"] = [*maps(selector, "matchExpressions"), term]
    step = {"op": "add", "path": f"/webhooks/{index}/namespaceSelector", "value": selector}
    return kubectl("patch", resource, name(configuration), "", "--type=json", "-p", json.dumps([step]))


def _is_vital(rule: Object) -> bool:
    groups, resources = set(texts(rule, "apiGroups")), texts(rule, "resources")
    return bool(groups & _VITAL) and bool(resources) and text(rule, "scope") != "Cluster"


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a metav1.LabelSelector matches; an odd one matches nothing."""
    requirements = [
        Requirement(key, "=", frozenset([str(value)])) for key, value in mapping(selector, "matchLabels").items()
    ]
    for each in maps(selector, "matchExpressions"):
        operator = OPERATORS.get(text(each, "operator"))
        if operator is None:
            return False
        requirements.append(Requirement(text(each, "key"), operator, frozenset(texts(each, "values"))))
    return Selector(requirements).matches(labels)


def _ports(service: Object) -> Sequence[int]:
    return [found for each in maps(service, "spec", "ports") if (found := number(each, "port")) is not None]


def _shares(bundle: bytes, authority: bytes) -> bool:
    from kopylite.doctor.certificates import certificates

    return bool({*certificates(bundle)} & {*certificates(authority)})


def _describe(hook: Hook) -> str:
    return f"{kubectl('get', hook.resource, hook.object, '', '-o', 'yaml')}    # and mend its clientConfig"
