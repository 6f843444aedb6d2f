"""Validation of volumes made of files: items of secrets and config maps, downward API, projected sources. Pure."""

from __future__ import annotations

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_certificates import bundle_name, domain_key, signer_name
from kopylite.apiserver.builtin.validation_environment import VOLUME_FIELDS, field_ref, resource_field_ref
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported

_BAD_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_TWICE = "conflicting duplicate paths"
_LONGEST_CERTIFICATE, _LONGEST_KUBERNETES_CERTIFICATE = 91 * 86400, 86400


def _mode(holder: Object, path: str, field: str) -> Errors:
    mode = holder.get(field)
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(f"{path}.{field}", mode, _BAD_MODE)]


def items(source: Object, path: str) -> Errors:
    """The modes and files of a secret or config map."""
    return _mode(source, path, "defaultMode") + _files(source, path)


def _files(source: Object, path: str) -> Errors:
    found: Errors = []
    for index, item in enumerate(source.get("items") or ()):
        where = f"{path}.items[{index}]"
        found += [required(f"{where}.{field}") for field in ("key", "path") if not item.get(field)]
        found += checks.local_path(f"{where}.path", item.get("path", "")) + _mode(item, where, "mode")
    return found


def downward_api(source: Object, path: str) -> Errors:
    found = _mode(source, path, "defaultMode")
    return found + [e for item in source.get("items") or () for e in _downward_file(item, path)]


def _downward_file(item: Object, path: str) -> Errors:
    """The server names the volume and not the item."""
    name, field, resource = item.get("path", ""), item.get("fieldRef"), item.get("resourceFieldRef")
    found: Errors = [] if name else [required(f"{path}.path")]
    found += checks.local_path(f"{path}.path", name)
    if field is not None:
        found += field_ref(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", text))
    elif resource is not None:
        found += resource_field_ref(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + _mode(item, path, "mode")


def projected(source: Object, path: str) -> Errors:
    found = _mode(source, path, "defaultMode")
    taken: set[str] = set()
    for index, one in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if one.get(kind) is not None:
                found += _keys(one[kind], f"{where}.{kind}", path, taken)
        for item in (one.get("downwardAPI") or {}).get("items") or ():
            found += _downward_file(item, f"{where}.downwardAPI") + _once(item.get("path"), path, taken)
        if one.get("serviceAccountToken") is not None:
            found += _token(one["serviceAccountToken"], f"{where}.serviceAccountToken", path)
        if one.get("clusterTrustBundle") is not None:
            found += _trust_bundle(one["clusterTrustBundle"], f"{where}.clusterTrustBundle")
            found += _once(one["clusterTrustBundle"].get("path"), path, taken)
        if one.get("podCertificate") is not None:
            found += _certificate(one["podCertificate"], f"{where}.podCertificate", path, taken)
        if sum(value is not None for value in one.values()) > 1:
            found.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return found


def _once(name: str | None, path: str, taken: set[str], shown: str | None = None) -> Errors:
    if not name:
        return []
    found: Errors = [invalid(path, name if shown is None else shown, _TWICE)] if name in taken else []
    taken.add(name)
    return found


def _keys(source: Object, path: str, volume: str, taken: set[str]) -> Errors:
    name = source.get("name", "")
    found: Errors = [] if name else [required(f"{path}.name")]
    found += _files(source, path)
    return found + [e for item in source.get("items") or () for e in _once(item.get("path"), volume, taken, name)]


def _token(source: Object, path: str, volume: str) -> Errors:
    seconds, name = source.get("expirationSeconds"), source.get("path", "")
    where = f"{path}.expirationSeconds"
    found: Errors = [required(where)] if seconds is None else []
    if seconds is not None and seconds < 600:
        found.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    if seconds is not None and seconds > 2**32:
        found.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    return found + (checks.local_path(f"{volume}.path", name) if name else [required(f"{volume}.path")])


def _trust_bundle(source: Object, path: str) -> Errors:
    name, signer, selector = source.get("name"), source.get("signerName"), source.get("labelSelector")
    found: Errors = []
    if name is not None and signer is not None:
        found.append(invalid(path, source, "only one of name and signerName may be used"))
    elif name is not None:
        found += [] if name else [required(f"{path}.name", "must be a valid object name")]
        found += [invalid(f"{path}.name", name, f"not a valid clustertrustbundlename: {t}") for t in bundle_name(name)]
        if selector is not None:
            text = "labelSelector must be unset if name is specified"
            found.append(invalid(f"{path}.labelSelector", selector, text))
    elif signer is not None:
        found += [] if signer else [required(f"{path}.signerName", "must be a valid signer name")]
        found += signer_name(f"{path}.signerName", signer)
        found += checks.label_selector(selector, f"{path}.labelSelector")
    else:
        found.append(required(path, "either name or signerName must be specified"))
    file = source.get("path", "")
    return found + ([] if file else [required(f"{path}.path")]) + checks.local_path(f"{path}.path", file)


def _certificate(source: Object, path: str, volume: str, taken: set[str]) -> Errors:
    signer, key_type, seconds = (
        source.get("signerName", ""),
        source.get("keyType", ""),
        source.get("maxExpirationSeconds"),
    )
    found = signer_name(f"{path}.signerName", signer)
    found += [e for key in source.get("userAnnotations") or () for e in domain_key(f"{path}.userAnnotations", key)]
    if key_type not in _KEY_TYPES:
        found.append(unsupported(f"{path}.keyType", key_type, _KEY_TYPES))
    kubernetes = signer.startswith("kubernetes.io/")
    longest = _LONGEST_KUBERNETES_CERTIFICATE if kubernetes else _LONGEST_CERTIFICATE
    if seconds is not None and not 3600 <= seconds <= longest:
        text = "must be >= 3600" if seconds < 3600 else f"must be <= {longest}"
        where = f"{path}.maxExpirationSeconds"
        found.append(invalid(where, seconds, f"if provided, maxExpirationSeconds {text}"))
    for field in _CERTIFICATE_PATHS:
        if source.get(field):
            found += checks.local_path(f"{path}.{field}", source[field]) + _once(source[field], volume, taken)
    if not any(source.get(field) for field in _CERTIFICATE_PATHS):
        text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        found.append(required(path, text))
    return found
