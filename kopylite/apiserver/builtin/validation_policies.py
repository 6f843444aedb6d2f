"""Validation of admission policies and their bindings. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.admission_types import NAMESPACE, struct
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_hooks import HOOK_VARIABLES, conditions, expression, hook_rule
from kopylite.apiserver.schema.cel.functions import STRUCTS
from kopylite.apiserver.schema.cel.program import Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.schema.field_errors import duplicate, forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import dns1035_errors, label_key_errors, path_segment_errors, subdomain_errors

_RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
     "let", "loop", "package", "namespace", "return", "var", "void", "while"}
)  # fmt: skip
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_MUTATIONS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")


def _match_resources(match: Object | None, path: str) -> Errors:
    if match is None:
        return []
    found: Errors = checks.one_of(f"{path}.matchPolicy", match.get("matchPolicy"), ("Equivalent", "Exact"), needed=True)
    for field in ("namespaceSelector", "objectSelector"):
        found += checks.label_selector(match.get(field), f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            names = rule.get("resourceNames") or []
            for position, name in enumerate(names):
                found += checks.texts(f"{where}.resourceNames[{position}]", name, path_segment_errors(name))
                if name in names[:position]:
                    found.append(duplicate(f"{where}.resourceNames[{position}]", name))
            found += hook_rule(rule, where)
    return found


def _policy(spec: Object) -> Errors:
    """What both kinds of policies have in common, up to their variables."""
    found = checks.one_of("spec.failurePolicy", spec.get("failurePolicy"), ("Fail", "Ignore"), needed=True)
    if spec.get("paramKind") is not None:
        found += _param_kind(spec["paramKind"], "spec.paramKind")
    match = spec.get("matchConstraints")
    if match is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _match_resources(match, "spec.matchConstraints")
        if not match.get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
    return found


def _scope(spec: Object) -> dict[str, Shape]:
    """What expressions may name: parameters only where the policy has some."""
    params = {} if spec.get("paramKind") is None else {"params": DYN}
    return {**HOOK_VARIABLES, "namespaceObject": NAMESPACE, **params}


def _variables(spec: Object, scope: dict[str, Shape]) -> Errors:
    """Puts the variables of the policy into the scope; each sees those before it."""
    found = conditions(spec, "spec", scope)
    declared: dict[str, Shape] = {}
    if spec.get("variables") or "mutations" in spec:
        scope["variables"] = struct()
    for index, variable in enumerate(spec.get("variables") or ()):
        path, name, source = f"spec.variables[{index}]", variable["name"], variable["expression"]
        if not name.strip():
            found.append(required(f"{path}.name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            found.append(invalid(f"{path}.name", name, "must be a valid CEL identifier"))
        problems = expression(source, f"{path}.expression", scope, "expression is not specified")
        declared[name] = DYN if problems else Program(source, scope).shape
        scope["variables"] = struct(**declared)
        found += problems
    return found


def _param_kind(kind: Object, path: str) -> Errors:
    found: Errors = []
    api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    group, _, version = api_version.rpartition("/")
    where = f"{path}.apiVersion"
    if not api_version:
        found.append(required(where))
    elif api_version.count("/") > 1:
        found.append(invalid(where, api_version, f"unexpected GroupVersion string: {api_version}"))
    else:
        if group and (problems := subdomain_errors(group)):
            found.append(invalid(where, group, ",".join(problems)))
        if not version:
            found.append(invalid(where, api_version, "version must be specified"))
        elif problems := dns1035_errors(version):
            found.append(invalid(where, version, ",".join(problems)))
    if not name:
        found.append(required(f"{path}.kind"))
    elif problems := dns1035_errors(name.lower()):
        text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        found.append(invalid(f"{path}.kind", name, text))
    return found


def validating_policy(obj: Object) -> Errors:
    spec = obj["spec"]
    scope = _scope(spec)
    found = _policy(spec) + _variables(spec, scope)
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    if not validations and not annotations:
        text = "validations or auditAnnotations must contain at least one item"
        return [*found, required("spec.validations", text), required("spec.auditAnnotations", text)]
    for index, validation in enumerate(validations):
        found += _validation(validation, f"spec.validations[{index}]", scope)
    if len(annotations) > 20:
        text = "must not have more than 20 auditAnnotations"
        found.append(invalid("spec.auditAnnotations", list(annotations), text))
    keys: set[str] = set()
    for index, annotation in enumerate(annotations):
        path, key, name = f"spec.auditAnnotations[{index}]", annotation["key"], obj["metadata"].get("name", "")
        whole = f"{name}/{key}"
        if name:
            found += checks.texts(f"{path}.key", whole, label_key_errors(whole))
        else:
            found.append(invalid(f"{path}.key", key, "requires metadata.name be non-empty"))
        text = "valueExpression is not specified"
        where = f"{path}.valueExpression"
        found += expression(annotation["valueExpression"], where, scope, text, yields=("string", "null"))
        if key in keys:
            found.append(duplicate(f"{path}.key", key))
        keys.add(key)
    return found


def _validation(validation: Object, path: str, scope: Mapping[str, Shape]) -> Errors:
    text = "expression is not specified"
    found = expression(validation["expression"], f"{path}.expression", scope, text, yields=("bool",))
    message, computed = validation.get("message", ""), validation.get("messageExpression", "")
    if computed and not computed.strip():
        found.append(invalid(f"{path}.messageExpression", computed, "must be non-empty if specified"))
    elif computed:
        found += expression(computed, f"{path}.messageExpression", scope, yields=("string",))
    if message and not message.strip():
        found.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip() or "\r" in message.strip():
        found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    return found + checks.one_of(f"{path}.reason", validation.get("reason"), _REASONS)


def _mutable(match: Object | None, path: str) -> Errors:
    """Only writes can be mutated."""
    operations = [o for rule in (match or {}).get("resourceRules") or () for o in rule.get("operations") or ()]
    allowed = ("*", "CONNECT", "CREATE", "UPDATE")
    return [unsupported(f"{path}.resourceRules.operations", o, allowed) for o in operations if o not in allowed]


def mutating_policy(obj: Object) -> Errors:
    spec = obj["spec"]
    scope = _scope(spec)
    found = _policy(spec) + _mutable(spec.get("matchConstraints"), "spec.matchConstraints") + _variables(spec, scope)
    mutations = spec.get("mutations") or ()
    if not mutations:
        found.append(required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(mutations):
        path, kind = f"spec.mutations[{index}]", mutation["patchType"]
        if kind not in _MUTATIONS:
            found += checks.one_of(f"{path}.patchType", kind, tuple(_MUTATIONS), needed=True)
            continue
        ours = _MUTATIONS[kind]
        if mutation.get(ours) is None:
            found.append(required(f"{path}.{ours}", f"must be specified when patchType is {kind}"))
        else:
            source = mutation[ours].get("expression", "")
            found += expression(source, f"{path}.{ours}.expression", {**scope, **dict.fromkeys(STRUCTS, DYN)})
        other = next(field for field in _MUTATIONS.values() if field != ours)
        if mutation.get(other) is not None:
            text = f"must not be specified when patchType is {kind}"
            found.append(invalid(f"{path}.{other}", f"{{{other}}}", text))
    policies = ("IfNeeded", "Never")
    return found + checks.one_of("spec.reinvocationPolicy", spec.get("reinvocationPolicy"), policies, needed=True)


def _binding(spec: Object) -> Errors:
    name, reference = spec.get("policyName", ""), spec.get("paramRef")
    found: Errors = checks.texts("spec.policyName", name, subdomain_errors(name)) if name else []
    found += [] if name else [required("spec.policyName")]
    if reference is not None:
        found += _param_ref(reference, "spec.paramRef")
    return found + _match_resources(spec.get("matchResources"), "spec.matchResources")


def _param_ref(reference: Object, path: str) -> Errors:
    name, selector = reference.get("name", ""), reference.get("selector")
    found: Errors = []
    both = "name and selector are mutually exclusive"
    if name:
        found += checks.texts(f"{path}.name", name, path_segment_errors(name))
        found += [] if selector is None else [forbidden(f"{path}.name", both)]
    if selector is not None:
        found += checks.label_selector(selector, f"{path}.selector")
        found += [forbidden(f"{path}.selector", both)] if name else []
    elif not name:
        found.append(required(path, "one of name or selector must be specified"))
    where = f"{path}.parameterNotFoundAction"
    return found + checks.one_of(where, reference.get("parameterNotFoundAction"), ("Deny", "Allow"), needed=True)


def mutating_binding(obj: Object) -> Errors:
    return _binding(obj["spec"]) + _mutable(obj["spec"].get("matchResources"), "spec.matchResources")


def validating_binding(obj: Object) -> Errors:
    found = _binding(obj["spec"])
    actions, path = obj["spec"].get("validationActions") or [], "spec.validationActions"
    for index, action in enumerate(actions):
        if action not in ("Audit", "Deny", "Warn"):
            found.append(unsupported(f"{path}[{index}]", action, ("Audit", "Deny", "Warn")))
        if action in actions[:index]:
            found.append(duplicate(f"{path}[{index}]", action))
    if {"Deny", "Warn"} <= set(actions):
        text = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        found.append(invalid(path, actions, text))
    return found if actions else [*found, required(path)]
