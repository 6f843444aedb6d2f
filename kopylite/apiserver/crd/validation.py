"""Validation of CustomResourceDefinitions, with the texts and paths of the real server. Pure.

The real server validates an internal form, in which schemas, sub-resources, columns and selectable fields that
are the same in all versions stand once, outside of the versions. Error paths show it:
`spec.validation.openAPIV3Schema` for a CRD with one version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from kopylite.apiserver.schema import field_errors as errors
from kopylite.apiserver.schema.definition import definition_errors
from kopylite.apiserver.schema.field_errors import FieldError, at, child
from kopylite.apiserver.schema.fieldpath import resolve_field
from kopylite.apiserver.schema.formats import conforms
from kopylite.apiserver.schema.go_schema import go_version
from kopylite.apiserver.schema.names import dns1035_errors, subdomain_errors

APPROVAL = "api-approved.kubernetes.io"
_APPROVAL_LINK = "see https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE = 8
_REVIEW_VERSIONS = ("v1", "v1beta1")
# Where the internal form keeps what all versions share: the member of a version, and its place in spec.
_SHARED = {
    "schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}  # fmt: skip

Crd = Mapping[str, Any]


def crd_errors(crd: Crd, old: Crd | None = None) -> list[FieldError]:
    """Everything wrong with a CRD except its metadata; with `old`, with the change of it too."""
    spec, status = crd["spec"], crd.get("status") or {}
    found: list[FieldError] = []
    if old is None:
        name, wanted = crd["metadata"].get("name", ""), f"{_names(spec).get('plural', '')}.{spec.get('group', '')}"
        if name != wanted:
            found.append(errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    found.extend(_spec_errors(spec, [] if old is None else _schemas(old["spec"])))
    if old is not None:
        found.extend(_immutable_errors(spec, old))
    found.extend(_name_errors(status.get("acceptedNames") or {}, "status.acceptedNames"))
    found.extend(_stored_version_errors(status.get("storedVersions") or [], spec.get("versions") or []))
    found.extend(_approval_errors(crd, old))
    if spec.get("preserveUnknownFields") and not (old is not None and old["spec"].get("preserveUnknownFields")):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(errors.invalid("spec.preserveUnknownFields", True, text))
    return found


def status_errors(crd: Crd) -> list[FieldError]:
    """What is wrong with a CRD written through `/status`."""
    return list(_name_errors((crd.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames"))


def condition(crd: Crd, kind: str) -> Mapping[str, Any] | None:
    """A condition of the CRD by its type."""
    for each in (crd.get("status") or {}).get("conditions") or ():
        if each.get("type") == kind:
            return dict(each)
    return None


def is_true(crd: Crd, kind: str) -> bool:
    found = condition(crd, kind)
    return found is not None and found.get("status") == "True"


def _names(spec: Mapping[str, Any]) -> dict[str, Any]:
    return spec.get("names") or {}


def _schemas(spec: Mapping[str, Any]) -> list[dict[str, Any] | None]:
    return [(version.get("schema") or {}).get("openAPIV3Schema") for version in spec.get("versions") or ()]


def _spec_errors(spec: Mapping[str, Any], stored: Sequence[dict[str, Any] | None]) -> Iterator[FieldError]:
    """Args: stored: schemas that are in the CRD already: what their rules cost is no error any more."""
    yield from _group_errors(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        yield errors.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield errors.unsupported("spec.scope", scope, ("Cluster", "Namespaced"))
    versions = spec.get("versions") or []
    shared = {
        member for member in _SHARED if versions and all(v.get(member) == versions[0].get(member) for v in versions)
    }
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield errors.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        yield from _version_errors(version, f"spec.versions[{index}]", shared, stored)
    yield from _version_list_errors(spec.get("versions"), shared)
    first = versions[0].get("name") if versions else ""
    if first and (problems := dns1035_errors(first)):
        yield errors.invalid("spec.version", first, ",".join(problems))
    for key in ("plural", "singular", "kind", "listKind"):
        if not _names(spec).get(key):
            yield errors.required(f"spec.names.{key}")
    yield from _name_errors(_names(spec), "spec.names")
    if versions:
        for member in _SHARED:
            if member in shared and versions[0].get(member) is not None:
                yield from _member_errors(member, versions[0], f"spec.{_SHARED[member]}", stored)
    yield from _conversion_errors(spec.get("conversion") or {})


def _group_errors(group: str) -> Iterator[FieldError]:
    if not group:
        yield errors.required("spec.group")
    elif problems := subdomain_errors(group):
        yield errors.invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _version_errors(
    version: Mapping[str, Any], path: str, shared: set[str], stored: Sequence[dict[str, Any] | None]
) -> Iterator[FieldError]:
    name = version.get("name") or ""
    if problems := dns1035_errors(name):
        yield errors.invalid(child(path, "name"), name, ",".join(problems))
    warning = version.get("deprecationWarning")
    for text in _deprecation_problems(bool(version.get("deprecated")), warning):
        yield errors.invalid(child(path, "deprecationWarning"), warning, text)
    for member in _SHARED:
        if member not in shared and version.get(member) is not None:
            yield from _member_errors(member, version, child(path, member), stored)


def _deprecation_problems(deprecated: bool, warning: str | None) -> list[str]:
    if warning is None:
        return []
    if not deprecated:
        return ["can only be set for deprecated versions"]
    found = ["must be <= 256 characters long"] if len(warning.encode()) > 256 else []
    if not warning:
        found.append("must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            at_byte = len(warning[:index].encode())
            text = f"must only contain printable UTF-8 characters; non-printable character found at index {at_byte}"
            found.append(text)
            break
    return found


def _version_list_errors(declared: list[dict[str, Any]] | None, shared: set[str]) -> Iterator[FieldError]:
    versions = declared or []
    shown = [go_version({k: v for k, v in version.items() if k not in shared}) for version in versions]
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield errors.invalid("spec.versions", shown, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield errors.invalid("spec.versions", None if declared is None else shown, text)


def _member_errors(
    member: str, version: Mapping[str, Any], path: str, stored: Sequence[dict[str, Any] | None]
) -> Iterator[FieldError]:
    """Of one of the members of a version that the internal form may keep elsewhere."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if member == "schema":
        if schema is not None:
            status = "status" in (version.get("subresources") or {})
            yield from definition_errors(
                schema, child(path, "openAPIV3Schema"), status=status, unchanged=schema in stored
            )
    elif member == "subresources":
        yield from _scale_errors(version["subresources"].get("scale"), child(path, "scale"))
    elif member == "additionalPrinterColumns":
        for index, column in enumerate(version[member]):
            yield from _column_errors(column, at(path, index))
    elif schema is not None:
        yield from _selectable_errors(version[member], schema, path)


def _scale_errors(scale: Mapping[str, Any] | None, path: str) -> Iterator[FieldError]:
    if scale is None:
        return
    for key, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        value, where = scale.get(key) or "", child(path, key)
        if not value:
            if key != "labelSelectorPath":
                yield errors.required(where)
        elif not value.startswith("."):
            yield errors.invalid(where, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            under = "either .spec or .status" if len(roots) > 1 else roots[0].rstrip(".")
            yield errors.invalid(where, value, f"should be a json path under {under}")


def _column_errors(column: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield errors.required(child(path, "name"))
    kind, text = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield errors.required(child(path, "type"), text)
    elif kind not in _COLUMN_TYPES:
        yield errors.invalid(child(path, "type"), kind, text)
    form = column.get("format") or ""
    if form and form not in _COLUMN_FORMATS:
        yield errors.invalid(child(path, "format"), form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    json_path = column.get("jsonPath") or ""
    if not json_path:
        yield errors.required(child(path, "JSONPath"))
    elif not json_path.startswith("."):
        yield errors.invalid(child(path, "JSONPath"), json_path, "must be a simple json path starting with .")


def _selectable_errors(fields: list[dict[str, Any]], schema: dict[str, Any], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, each in enumerate(fields):
        json_path, where = each.get("jsonPath") or "", child(at(path, index), "jsonPath")
        if not json_path:
            yield errors.required(where)
            continue
        try:
            resolved, leaf = resolve_field(json_path, schema, brackets=False)
        except ValueError as error:
            yield errors.invalid(where, json_path, f"is an invalid path: {error}")
            continue
        if resolved.partition(".")[0] == "metadata":
            yield errors.invalid(where, json_path, "must not point to fields in metadata")
        if leaf.get("type") not in ("string", "boolean", "integer"):
            text = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield errors.invalid(where, json_path, text)
        if resolved in seen:
            yield errors.duplicate(where, json_path)
        seen.add(resolved)
    if len(seen) > _MAX_SELECTABLE:
        yield errors.too_many(path, len(seen), _MAX_SELECTABLE)


def _name_errors(names: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for key in ("plural", "singular"):
        value = names.get(key) or ""
        if value and (problems := dns1035_errors(value)):
            yield errors.invalid(child(path, key), value, ",".join(problems))
    for key in ("kind", "listKind"):
        value = names.get(key) or ""
        if value and (problems := dns1035_errors(value.lower())):
            text = "may have mixed case, but should otherwise match: " + ",".join(problems)
            yield errors.invalid(child(path, key), value, text)
    for key in ("shortNames", "categories"):
        if key == "categories" and names.get("kind") and names["kind"] == names.get("listKind"):
            text = "kind and listKind may not be the same"
            yield errors.invalid(child(path, "listKind"), names["listKind"], text)
        for index, value in enumerate(names.get(key) or ()):
            if problems := dns1035_errors(value):
                yield errors.invalid(at(child(path, key), index), value, ",".join(problems))


def _conversion_errors(conversion: Mapping[str, Any]) -> Iterator[FieldError]:
    path, strategy = "spec.conversion", conversion.get("strategy") or ""
    if not strategy:
        yield errors.required(child(path, "strategy"))
    elif strategy not in ("None", "Webhook"):
        yield errors.unsupported(child(path, "strategy"), strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    client_path, versions_path = child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield errors.forbidden(client_path, text)
        if versions:
            yield errors.forbidden(versions_path, text)
        return
    if client is None:
        yield errors.required(client_path, "required when strategy is set to Webhook")
    else:
        yield from _client_errors(client, client_path)
    yield from _review_version_errors(versions, versions_path)


def _client_errors(client: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        parts, where, form = urlsplit(url), child(path, "url"), "; desired format: https://host[/path]"
        if parts.scheme != "https":
            yield errors.invalid(where, parts.scheme, f"'https' is the only allowed URL scheme{form}")
        if not parts.netloc:
            yield errors.invalid(where, parts.netloc, f"host must be specified{form}")
        if parts.fragment:
            yield errors.invalid(where, parts.fragment, "fragments are not permitted in the URL")
        if parts.query:
            yield errors.invalid(where, parts.query, "query parameters are not permitted in the URL")
    elif service is not None:
        for key in ("name", "namespace"):
            if not service.get(key):
                yield errors.required(child(child(path, "service"), key))
        port = service.get("port", 443)
        if not 1 <= port <= 65535:
            text = "port is not valid: must be between 1 and 65535, inclusive"
            yield errors.invalid(child(child(path, "service"), "port"), port, text)
        yield from _service_path_errors(service.get("path") or "/", child(child(path, "service"), "path"))


def _service_path_errors(url_path: str, path: str) -> Iterator[FieldError]:
    if url_path == "/":
        return
    if not url_path.startswith("/"):
        yield errors.invalid(path, url_path, "must start with a '/'")
    for index, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        problems = [f"]: {text}" for text in subdomain_errors(step)] if step else ["] may not be empty"]
        yield from (errors.invalid(path, url_path, f"segment[{index}{problem}") for problem in problems)


def _review_version_errors(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield errors.required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield errors.invalid(at(path, index), version, "duplicate version")
        else:
            for text in dns1035_errors(version):
                yield errors.invalid(at(path, index), version, text)
    if not set(versions) & set(_REVIEW_VERSIONS):
        yield errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


def _immutable_errors(spec: Mapping[str, Any], old: Crd) -> Iterator[FieldError]:
    before = old["spec"]
    pairs = [("spec.group", spec.get("group"), before.get("group"))]
    pairs.append(("spec.names.plural", _names(spec).get("plural"), _names(before).get("plural")))
    if is_true(old, "Established"):
        pairs.insert(0, ("spec.names.kind", _names(spec).get("kind"), _names(before).get("kind")))
        pairs.insert(0, ("spec.scope", spec.get("scope"), before.get("scope")))
    for field, new_value, old_value in pairs:
        if new_value != old_value:
            yield errors.invalid(field, new_value, "field is immutable")


def _stored_version_errors(stored: list[str], versions: list[dict[str, Any]]) -> Iterator[FieldError]:
    path = "status.storedVersions"
    if not stored:
        yield errors.invalid(path, None, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and (version.get("name") or "") not in stored:
            yield errors.invalid(path, stored, f"must have the storage version {version.get('name')}")
    present = {version.get("name") or "" for version in versions}
    for index, name in enumerate(stored):
        if name not in present:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} "
                f"and removes {name} from status.storedVersions"
            )
            yield errors.invalid(at(path, index), name, text)


def approval(crd: Crd) -> tuple[str, str] | None:
    """The state of the approval that a Kubernetes group needs, and a text; None for other groups."""
    group = crd["spec"].get("group") or ""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return None
    value = (crd["metadata"].get("annotations") or {}).get(APPROVAL) or ""
    needed = f"protected groups must have approval annotation {errors.go_quote(APPROVAL)}"
    if not value:
        return "Missing", f"{needed}, {_APPROVAL_LINK}"
    if value.startswith("unapproved"):
        return "Unapproved", f"not approved: {errors.go_quote(value)}"
    parts = urlsplit(value)
    if conforms("uri", value) and parts.scheme and parts.netloc:
        return "Approved", f"approved in {value}"
    return "Invalid", f'{needed} with either a URL or a reason starting with "unapproved", {_APPROVAL_LINK}'


def _approval_errors(crd: Crd, old: Crd | None) -> Iterator[FieldError]:
    state = approval(crd)
    if state is None:
        return
    before = approval(old) if old is not None else None
    if before is not None and before[0] == state[0]:
        return
    path = at("metadata.annotations", APPROVAL)
    if state[0] == "Missing":
        yield errors.required(path, state[1])
    elif state[0] == "Invalid":
        yield errors.invalid(path, crd["metadata"]["annotations"][APPROVAL], state[1])
