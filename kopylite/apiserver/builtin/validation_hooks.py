"""Validation of webhook configurations, and what admission policies have in common with them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.admission_types import REQUEST
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.cel.overloads import VALUE_NAMES, type_name
from kopylite.apiserver.schema.cel.program import CompileProblem, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.schema.field_errors import duplicate, invalid, required, too_many
from kopylite.apiserver.schema.names import (
    dns1035_errors,
    subdomain_errors,
)

HOOK_VARIABLES: Mapping[str, Shape] = {"object": DYN, "oldObject": DYN, "request": REQUEST, "authorizer": DYN}
_GO_NAMES = {"null": "null_type", **VALUE_NAMES}
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def mutating_webhooks(obj: Object) -> Errors:
    return _webhooks(obj, mutating=True)


def validating_webhooks(obj: Object) -> Errors:
    return _webhooks(obj, mutating=False)


def _webhooks(obj: Object, *, mutating: bool) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        found += _webhook(webhook, path)
        if mutating:
            policy = webhook.get("reinvocationPolicy")
            found += checks.one_of(f"{path}.reinvocationPolicy", policy, ("IfNeeded", "Never"))
        found += _hook_client(webhook["clientConfig"], f"{path}.clientConfig")
        found += _review_versions(webhook, path)
        if webhook["name"] in names:
            found.append(duplicate(f"{path}.name", webhook["name"]))
        names.add(webhook["name"])
    return found


def _webhook(webhook: Object, path: str) -> Errors:
    found: Errors = []
    name = webhook["name"]
    problems = subdomain_errors(name) if name else []
    found += checks.texts(f"{path}.name", name, problems) if name else [required(f"{path}.name")]
    if name and not problems and name.count(".") < 2:
        text = "should be a domain with at least three segments separated by dots"
        found.append(invalid(f"{path}.name", name, text))
    for index, rule in enumerate(webhook.get("rules") or ()):
        found += hook_rule(rule, f"{path}.rules[{index}]")
    found += checks.one_of(f"{path}.failurePolicy", webhook.get("failurePolicy"), ("Fail", "Ignore"))
    found += checks.one_of(f"{path}.matchPolicy", webhook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        found.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    else:
        found += checks.one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        found.append(invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds"))
    for field in ("namespaceSelector", "objectSelector"):
        found += checks.label_selector(webhook.get(field), f"{path}.{field}")
    return found + conditions(webhook, path, HOOK_VARIABLES)


def hook_rule(rule: Object, path: str) -> Errors:
    found: Errors = []
    operations = rule.get("operations") or ()
    if not operations:
        found.append(required(f"{path}.operations"))
    if len(operations) > 1 and "*" in operations:
        found.append(invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations"))
    for index, operation in enumerate(operations):
        found += checks.one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values: Any = rule.get(field) or ()
        if not values:
            found.append(required(f"{path}.{field}"))
        if len(values) > 1 and "*" in values:
            found.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {what}"))
        if field == "apiVersions":
            found += [required(f"{path}.{field}[{i}]") for i, value in enumerate(values) if not value]
    found += _resources(rule.get("resources") or [], f"{path}.resources")
    return found + checks.one_of(f"{path}.scope", rule.get("scope"), ("*", "Cluster", "Namespaced"))


def _resources(resources: list[str], path: str) -> Errors:
    found: Errors = [] if resources else [required(path)]
    whole: set[str] = set()
    anywhere: set[str] = set()
    for index, name in enumerate(resources):
        where = f"{path}[{index}]"
        if not name:
            found.append(required(where))
            continue
        resource, slash, sub = name.partition("/")
        if not slash:
            continue
        if resource in whole:
            found.append(invalid(where, name, f"if '{resource}/*' is present, must not specify {name}"))
        if sub in anywhere:
            found.append(invalid(where, name, f"if '*/{sub}' is present, must not specify {name}"))
        whole |= {resource} if sub == "*" else set()
        anywhere |= {sub} if resource == "*" else set()
    if len(resources) > 1 and "*/*" in resources:
        found.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in name and name != "*" for name in resources):
        text = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, text))
    return found


def _hook_client(client: Object, path: str) -> Errors:
    url, service = client.get("url"), client.get("service")
    found: Errors = []
    if url is not None and service is None:
        parts = urlsplit(url)
        form = "https://host[/path]"
        if parts.scheme != "https":
            text = f"'https' is the only allowed URL scheme; desired format: {form}"
            found.append(invalid(f"{path}.url", parts.scheme, text))
        if not parts.netloc:
            found.append(invalid(f"{path}.url", "", f"host must be specified; desired format: {form}"))
        return found
    if service is None or url is not None:
        return [required(path, "exactly one of url or service is required")]
    # The server takes the one for the other.
    for field, shown in (("namespace", "name"), ("name", "namespace")):
        if not service[field]:
            found.append(required(f"{path}.service.{shown}"))
    if service.get("path") is not None:
        found += _url_path(service["path"], f"{path}.service.path")
    return found + checks.port_number(f"{path}.service.port", service.get("port", 443))


def _url_path(text: str, path: str) -> Errors:
    if text in ("", "/"):
        return []
    if text == "//":
        return [invalid(path, text, "segment[0] may not be empty")]
    found: Errors = [] if text.startswith("/") else [invalid(path, text, "must start with a '/'")]
    steps = text[1:].removesuffix("/").split("/")
    for index, step in enumerate(steps):
        if not step:
            found.append(invalid(path, text, f"segment[{index}] may not be empty"))
            continue
        found += checks.texts(path, text, [f"segment[{index}]: {problem}" for problem in subdomain_errors(step)])
    return found


def _review_versions(webhook: Object, path: str) -> Errors:
    versions = webhook.get("admissionReviewVersions") or []
    where = f"{path}.admissionReviewVersions"
    if not versions:
        return [required(where, "must specify one of v1, v1beta1")]
    found: Errors = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(invalid(f"{where}[{index}]", version, "duplicate version"))
        else:
            found += checks.texts(f"{where}[{index}]", version, dns1035_errors(version))
    if not {"v1", "v1beta1"} & set(versions):
        found.append(invalid(where, versions, "must include at least one of v1, v1beta1"))
    return found


def conditions(owner: Object, path: str, variables: Mapping[str, Shape]) -> Errors:
    conditions = owner.get("matchConditions") or ()
    found: Errors = [too_many(f"{path}.matchConditions", len(conditions), 64)] if len(conditions) > 64 else []
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}.matchConditions[{index}]"
        found += expression(condition["expression"], f"{where}.expression", variables, yields=("bool",))
        name = condition["name"]
        found += checks.qualified_name(f"{where}.name", name) if name else [required(f"{where}.name")]
        if name and name in names:
            found.append(duplicate(f"{where}.name", name))
        names.add(name)
    return found


def expression(
    source: str, path: str, variables: Mapping[str, Shape], missing: str = "", *, yields: Sequence[str] = ()
) -> Errors:
    """A CEL expression: needed, of CEL's grammar, and of known names.

    Args:
        variables: what it sees, with the types.
        yields: the types that its value may have, as far as that is known before it is evaluated; none for any.
    """
    if not source.strip():
        return [required(path, missing)]
    try:
        program = Program(source, variables)
    except CompileProblem as problem:
        return [invalid(path, source, f"compilation failed: {problem}")]
    found = "dyn" if program.untyped else type_name(program.shape)
    if not yields or not found or found in yields:
        return []
    wanted = yields[0] if len(yields) == 1 else f"one of [{' '.join(_GO_NAMES.get(name, name) for name in yields)}]"
    return [invalid(path, source, f"must evaluate to {wanted} but got {_GO_NAMES.get(found, found)}")]
