"""Validation of the kinds of certificates.k8s.io, of APIServices and of storage migrations. Pure."""

from __future__ import annotations

import base64
import binascii
import re

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import (
    RawText,
    duplicate,
    forbidden,
    go_quote,
    invalid,
    required,
    too_long,
    unsupported,
)
from kopylite.apiserver.schema.names import dns1035_errors, label_errors, subdomain_errors

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
STATUSES = ("False", "True", "Unknown")
_SIGNER_TEXT = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----\r?\n(.*?)-----END \1-----", re.DOTALL)
_LARGEST_BUNDLE = 1024 * 1024
_OMITTED = "<value omitted>"


def signer_name(field: str, name: str) -> Errors:
    """`domain/path`: a domain of two labels or more, a path of subdomains."""
    if not name:
        return [required(field)]
    segments = name.split("/")
    if len(segments) != 2:
        return [invalid(field, name, _SIGNER_TEXT)]
    domain, path = segments
    found: Errors = [too_long(field, 253)] if len(domain.encode()) > 253 else []
    labels = domain.split(".")
    for label in labels:
        if problems := label_errors(label):
            found += checks.texts(field, domain, [f"validating label {go_quote(label)}: {text}" for text in problems])
            break
    if len(labels) < 2:
        found.append(invalid(field, domain, "should be a domain with at least two segments separated by dots"))
    if len(name.encode()) > 571:
        found.append(too_long(field, 571))
    for label in path.split("."):
        if problems := subdomain_errors(label):
            found += checks.texts(field, path, [f"validating label {go_quote(label)}: {text}" for text in problems])
            break
    return found


def blocks(text: str) -> list[tuple[str, bytes | None, bool]]:
    """The PEM blocks: their types, what they hold (None: no base64), whether they have headers."""
    found = []
    for match in _BLOCK.finditer(text):
        body = match[2]
        headers = ":" in body
        try:
            content = base64.b64decode("".join(body.rpartition("\n\n")[2].split()), validate=True)
        except (binascii.Error, ValueError):
            content = None
        found.append((match[1], content, headers))
    return found


def request(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    try:
        text = base64.b64decode(spec.get("request") or "").decode("latin-1")
    except (binascii.Error, ValueError):
        text = ""
    if not any(kind == "CERTIFICATE REQUEST" for kind, _, _ in blocks(text)[:1]):
        found.append(invalid("spec.request", spec.get("request"), "PEM block type must be CERTIFICATE REQUEST"))
    usages = spec.get("usages") or []
    if not usages:
        found.append(required("spec.usages"))
    for index, usage in enumerate(usages):
        if usage not in _USAGES:
            found.append(unsupported(f"spec.usages[{index}]", usage, _USAGES))
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            found.append(duplicate(f"spec.usages[{index}]", usage))
    name = spec["signerName"]
    if name == "kubernetes.io/legacy-unknown":
        found.append(invalid("spec.signerName", name, "the legacy signerName is not allowed via this API version"))
    else:
        found += signer_name("spec.signerName", name)
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        found.append(invalid("spec.expirationSeconds", seconds, text))
    return found


def request_status(new: Object, old: Object) -> Errors:
    """What `/status` and `/approval` may write."""
    found: Errors = []
    seen: set[str] = set()
    for index, condition in enumerate(new["status"].get("conditions") or ()):
        path = f"status.conditions[{index}]"
        kind, status = condition["type"], condition.get("status", "")
        found += [] if kind else [required(f"{path}.type")]
        allowed = ("True",) if kind in ("Approved", "Denied", "Failed") else STATUSES
        found += checks.one_of(f"{path}.status", status, allowed, needed=True)
        if {"Approved", "Denied"} <= {*seen, kind} and kind in ("Approved", "Denied"):
            text = "Approved and Denied conditions are mutually exclusive"
            found.append(invalid("status.conditions", kind, text))
        if kind in seen:
            found.append(duplicate(f"{path}.type", kind))
        seen.add(kind)
    issued = new["status"].get("certificate")
    if issued and issued != old["status"].get("certificate"):
        found += _issued(issued)
    return found


def update_request_status(request: Object, old: Object) -> Errors:
    """What `/status` of a request for a certificate may not do."""
    path, found = "status.conditions", []
    for kind in ("Approved", "Denied", "Failed"):
        before, after = _conditions(old, kind), _conditions(request, kind)
        if len(after) < len(before):
            found.append(forbidden(path, f'updates may not remove a condition of type "{kind}"'))
        if len(after) > len(before) and kind != "Failed":
            found.append(forbidden(path, f'updates may not add a condition of type "{kind}"'))
    given = old["status"].get("certificate")
    if given and request["status"].get("certificate") != given:
        found.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
    return found


def _conditions(obj: Object, kind: str) -> list[Object]:
    return [c for c in obj["status"].get("conditions") or () if c.get("type") == kind]


def _issued(certificate: str) -> Errors:
    path, shown = "status.certificate", "<certificate data>"
    try:
        pem = blocks(base64.b64decode(certificate).decode("latin-1"))
    except (binascii.Error, ValueError):
        pem = []
    if not pem:
        return [invalid(path, shown, "must contain at least one CERTIFICATE PEM block")]
    for kind, _, headers in pem:
        if kind != "CERTIFICATE":
            return [invalid(path, shown, f"only CERTIFICATE PEM blocks are allowed, found {go_quote(kind)}")]
        if headers:
            return [invalid(path, shown, "no PEM block headers are permitted")]
    return []


def bundle_name(name: str) -> list[str]:
    """Why a name that a volume refers to can be no name of a bundle, be it a signer's or not."""
    return subdomain_errors(name.rpartition(":")[2])


def trust_bundle(obj: Object) -> Errors:
    spec = obj["spec"]
    name, signer = obj["metadata"].get("name", ""), spec.get("signerName", "")
    found: Errors = []
    path = "metadata.name"
    if signer:
        prefix = signer.replace("/", ":") + ":"
        if name.startswith(prefix):
            found += checks.texts(path, name, subdomain_errors(name[len(prefix) :]))
        else:
            text = f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
            found.append(invalid(path, name, text))
        found += signer_name("spec.signerName", signer)
    elif ":" in name:
        text = 'ClusterTrustBundle without signer name must not have ":" in its name'
        found.append(invalid(path, name, text))
    elif name:
        found += checks.texts(path, name, subdomain_errors(name))
    return found


def trust_anchors(obj: Object) -> Errors:
    """The certificates of a new bundle; those of a stored one are taken as they are."""
    text, path = obj["spec"]["trustBundle"], "spec.trustBundle"
    if len(text.encode()) > _LARGEST_BUNDLE:
        return [too_long(path, _LARGEST_BUNDLE)]
    found: Errors = []
    anchors: list[bytes] = []
    for index, (kind, content, headers) in enumerate(blocks(text)):
        if kind != "CERTIFICATE":
            found.append(invalid(path, _OMITTED, f"entry {index} has bad block type: {kind}"))
        elif headers:
            found.append(invalid(path, _OMITTED, f"entry {index} has PEM block headers"))
        elif not content or content[0] != 0x30:
            found.append(invalid(path, _OMITTED, f"entry {index} does not parse as X.509"))
        else:
            anchors.append(content)
    if found:
        return found
    if not anchors:
        return [invalid(path, _OMITTED, "at least one trust anchor must be provided")]
    doubled = [[str(i) for i, other in enumerate(anchors) if other == one] for one in dict.fromkeys(anchors)]
    texts = [f"duplicate trust anchor (indices [{' '.join(indices)}])" for indices in doubled if len(indices) > 1]
    return checks.texts(path, _OMITTED, texts)


def update_trust_bundle(new: Object, old: Object) -> Errors:
    ours, theirs = new["spec"], old["spec"]
    found = trust_anchors(new) if ours["trustBundle"] != theirs["trustBundle"] else []
    before = theirs.get("signerName", "")
    return found + checks.immutable("spec.signerName", ours.get("signerName", ""), before)


def pod_certificate(obj: Object) -> Errors:
    spec = obj["spec"]
    found = signer_name("spec.signerName", spec["signerName"])
    for field in ("podName", "serviceAccountName", "nodeName"):
        found += checks.texts(f"spec.{field}", spec[field], subdomain_errors(spec[field]))
        uid = {"podName": "podUID", "serviceAccountName": "serviceAccountUID", "nodeName": "nodeUID"}[field]
        if not spec[uid]:
            found.append(invalid(f"spec.{uid}", "", "must not be empty"))
        elif len(spec[uid].encode()) > 128:
            found.append(too_long(f"spec.{uid}", 128))
    seconds = spec.get("maxExpirationSeconds")
    if seconds is None:
        found.append(required("spec.maxExpirationSeconds", "must be set"))
    elif not 3600 <= seconds <= 7862400:
        text = "must be in the range [3600, 7862400]"
        found.append(invalid("spec.maxExpirationSeconds", seconds, text))
    stub, key, proof = (spec.get(name) for name in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession"))
    if bool(stub) == bool(key or proof):
        text = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        found.append(invalid("spec", RawText("null"), text))
    elif stub and not base64.b64decode(stub).startswith(b"\x30"):
        found.append(invalid("spec.stubPKCS10Request", stub, "must be a valid PKCS#10 CSR"))
    for name in spec.get("unverifiedUserAnnotations") or ():
        found += domain_key("spec.unverifiedUserAnnotations", name)
    return found


def domain_key(field: str, key: str) -> Errors:
    """A key of an annotation for the signer: `domain/name`."""
    if "/" not in key:
        return [invalid(field, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
    return checks.qualified_name(field, key.lower())


def update_pod_certificate(new: Object, old: Object) -> Errors:
    return checks.frozen("spec", new["spec"], old["spec"])


def api_service(obj: Object) -> Errors:
    spec = obj["spec"]
    group, version = spec.get("group", ""), spec.get("version", "")
    name, wanted = obj["metadata"].get("name", ""), f"{version}.{group}"
    found: Errors = []
    if name and name != wanted:
        found.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: {go_quote(wanted)}'))
    if not group:
        if version != "v1":
            text = "only v1 may have an empty group and it better be legacy kube"
            found.append(required("spec.group", text))
    else:
        found += checks.texts("spec.group", group, [",".join(p) for p in [subdomain_errors(group)] if p])
    found += checks.texts("spec.version", version, [",".join(p) for p in [dns1035_errors(version)] if p])
    for field, limit in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        if not 0 < spec[field] <= limit:
            found.append(invalid(f"spec.{field}", spec[field], f"must be positive and less than {limit}"))
    return found + _api_server(spec)


def _api_server(spec: Object) -> Errors:
    """Where the API is served; by this server itself without a service."""
    service, skips = spec.get("service"), spec.get("insecureSkipTLSVerify", False)
    found: Errors = []
    if service is None:
        if spec.get("caBundle"):
            shown = f"{len(base64.b64decode(spec['caBundle']))} bytes"
            found.append(invalid("spec.caBundle", shown, "local APIServices may not have a caBundle"))
        if skips:
            text = "local APIServices may not have insecureSkipTLSVerify"
            found.append(invalid("spec.insecureSkipTLSVerify", skips, text))
        return found
    for field in ("namespace", "name"):
        if not service.get(field):
            found.append(required(f"spec.service.{field}"))
    port = service.get("port")
    if port is not None and not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        found.append(invalid("spec.service.port", port, text))
    if skips and spec.get("caBundle"):
        text = "may not be true if caBundle is present"
        found.append(invalid("spec.insecureSkipTLSVerify", skips, text))
    return found


def statuses(new: Object, old: Object) -> Errors:
    """The status of each condition, which all kinds with conditions of their own check."""
    found: Errors = []
    for index, condition in enumerate(new.get("status", {}).get("conditions") or ()):
        path = f"status.conditions[{index}].status"
        found += checks.one_of(path, condition.get("status", ""), STATUSES, needed=True)
    return found


def migration(obj: Object) -> Errors:
    resource = obj["spec"]["resource"]
    group, name = resource.get("group", ""), resource.get("resource", "")
    found: Errors = []
    if name:
        found += checks.texts("spec.resource.resource", name, dns1035_errors(name))
    else:
        found.append(required("spec.resource.resource", "resource is required to be set"))
    return found + checks.subdomain("spec.resource.group", group)


def update_migration(new: Object, old: Object) -> Errors:
    resource = new["spec"]["resource"]
    if resource == old["spec"]["resource"]:
        return []
    shown = {"Resource": {"group": resource.get("group", ""), "resource": resource.get("resource", "")}}
    return [invalid("spec", checks.go_struct(shown), "field is immutable")]
