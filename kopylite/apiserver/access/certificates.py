"""Certificates: who asked for one is noted, and only those with the right to a signer speak in its name."""

from __future__ import annotations

import base64
from typing import Any, Final

from kopylite.apiserver.access.authorization import Authorizer, refusal
from kopylite.apiserver.request.request import MASTERS, Target, User
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import Admission, Call

_GROUP: Final = "certificates.k8s.io"
_REQUESTS: Final = f"certificatesigningrequests.{_GROUP}"
_BUNDLES: Final = f"clustertrustbundles.{_GROUP}"
_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
# The OID 2.5.4.10 in DER.
_ORGANIZATION: Final = b"\x06\x03\x55\x04\x0a"
_REQUESTER: Final = ("username", "uid", "groups", "extra")


async def note_requester(admission: Admission) -> None:
    """A mutating plug-in: a request for a certificate says who asks, whatever it was sent with."""
    call, obj = admission.call, admission.obj
    if call.resource.storage != _REQUESTS or admission.operation != "CREATE" or obj is None:
        return
    spec = obj.setdefault("spec", {})
    for key in _REQUESTER:
        spec.pop(key, None)
    info = call.request.user.to_dict()
    spec.update({key: value for key in _REQUESTER if (value := info.get(key))})


class CertificateSigners:
    """A validating plug-in: requests are approved and signed, and bundles attested, by those who may."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def __call__(self, admission: Admission) -> None:
        """Raises Forbidden."""
        call, obj, old = admission.call, admission.obj, admission.old
        storage, part = call.resource.storage, call.target.subresource
        if obj is None or storage not in (_REQUESTS, _BUNDLES):
            return
        if storage == _REQUESTS and admission.operation == "CREATE" and not part:
            _check_subject(call, obj)
        spec = (old if old is not None and storage == _REQUESTS else obj).get("spec") or {}
        signer = str(spec.get("signerName", ""))
        verb, text = "", ""
        if storage == _BUNDLES:
            if signer and (old is None or old.get("spec") != obj.get("spec")):
                verb, text = "attest", "user not permitted to attest for signerName"
        elif old is not None and part == "approval":
            verb, text = "approve", "user not permitted to approve requests with signerName"
        elif old is not None and part == "status" and _signed(old) != _signed(obj):
            verb, text = "sign", "user not permitted to sign requests with signerName"
        if verb and not self._may(call.request.user, verb, signer):
            name = str(obj["metadata"].get("name", ""))
            raise refusal(call.resource.group, call.resource.plural, name, f"{text} {go_quote(signer)}")

    def _may(self, user: User, verb: str, signer: str) -> bool:
        """The right to one signer, or to all of its domain."""
        names = (signer, f"{signer.partition('/')[0]}/*")
        targets = (Target(verb, "", _GROUP, "*", "signers", name=name) for name in names)
        return any(self._authorizer.authorize(user, target).allowed for target in targets)


def _check_subject(call: Call, obj: dict[str, Any]) -> None:
    """Raises Forbidden: a client certificate would make a master of who asks for it."""
    spec = obj.get("spec") or {}
    if spec.get("signerName") == _CLIENT_SIGNER and MASTERS.encode() in _organizations(str(spec.get("request", ""))):
        text = f"use of {_CLIENT_SIGNER} signer with {MASTERS} group is not allowed"
        raise refusal(call.resource.group, call.resource.plural, str(obj["metadata"].get("name", "")), text)


def _organizations(request: str) -> list[bytes]:
    """The organizations in the subject of a valid request, base64 of PEM; each is a short string after its OID."""
    try:
        lines = base64.b64decode(request).decode("ascii", "replace").splitlines()
        der = base64.b64decode("".join(line for line in lines if ":" not in line and not line.startswith("-----")))
    except ValueError:
        return []
    parts = der.split(_ORGANIZATION)[1:]
    return [part[2 : 2 + part[1]] for part in parts if len(part) > 2]


def _signed(obj: dict[str, Any]) -> tuple[Any, Any]:
    status = obj.get("status") or {}
    return status.get("certificate"), status.get("conditions") or []
