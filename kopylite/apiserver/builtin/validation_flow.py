"""Validation of the kinds of flowcontrol.apiserver.k8s.io. Pure."""

from __future__ import annotations

import math

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, subdomain_errors

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}
_MOST_QUEUES = 10_000_000
_HASH_BITS = 60


def flow_schema(obj: Object) -> Errors:
    spec = obj["spec"]
    found: Errors = []
    precedence, path = spec["matchingPrecedence"], "spec.matchingPrecedence"
    if precedence <= 0:
        found.append(invalid(path, precedence, "must be a positive value"))
    if precedence > 10000:
        found.append(invalid(path, precedence, "must not be greater than 10000"))
    if precedence == 1 and obj["metadata"].get("name") != "exempt":
        found.append(invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown = checks.go_struct({"Type": method.get("type", "")})
        found.append(unsupported("spec.distinguisherMethod.type", shown, ("ByNamespace", "ByUser")))
    level = spec["priorityLevelConfiguration"]["name"]
    if level:
        found += checks.texts("spec.priorityLevelConfiguration.name", level, subdomain_errors(level))
    else:
        found.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        found += _rule(rule, f"spec.rules[{index}]")
    return found


def _rule(rule: Object, path: str) -> Errors:
    found: Errors = []
    subjects = rule.get("subjects") or ()
    if not subjects:
        found.append(required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        found += _subject(subject, f"{path}.subjects[{index}]")
    resources, urls = rule.get("resourceRules") or (), rule.get("nonResourceRules") or ()
    if not resources and not urls:
        found.append(required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
    for index, inner in enumerate(resources):
        found += _resource_rule(inner, f"{path}.resourceRules[{index}]")
    for index, inner in enumerate(urls):
        found += _url_rule(inner, f"{path}.nonResourceRules[{index}]")
    return found


def _subject(subject: Object, path: str) -> Errors:
    kind = subject["kind"]
    if kind not in _SUBJECTS:
        return [unsupported(f"{path}.kind", kind, sorted(_SUBJECTS))]
    field = _SUBJECTS[kind]
    value, where = subject.get(field), f"{path}.{field}"
    found: Errors = []
    if value is None:
        found.append(required(where, f"{field} is required when subject kind is '{kind}'"))
    elif not value["name"]:
        found.append(required(f"{where}.name"))
    elif field == "serviceAccount" and value["name"] != "*":
        found += checks.texts(f"{where}.name", value["name"], subdomain_errors(value["name"]))
    if field == "serviceAccount" and value is not None:
        space = value["namespace"]
        if space:
            found += checks.texts(f"{where}.namespace", space, label_errors(space))
        else:
            found.append(required(f"{where}.namespace", "must specify namespace for service account"))
    for other_kind, other in _SUBJECTS.items():
        if other != field and subject.get(other) is not None:
            found.append(forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'"))
    return found


def _verbs(rule: Object, path: str) -> Errors:
    verbs = rule.get("verbs") or []
    if not verbs:
        return [required(f"{path}.verbs", "verbs must contain at least one value")]
    if "*" in verbs:
        text = "if '*' is present, must not specify other verbs"
        return [invalid(f"{path}.verbs", verbs, text)] if len(verbs) > 1 else []
    return [] if set(verbs) <= set(_VERBS) else [unsupported(f"{path}.verbs", verbs, _VERBS)]


def _resource_rule(rule: Object, path: str) -> Errors:
    found = _verbs(rule, path)
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(field) or []
        if not values:
            found.append(required(f"{path}.{field}", f"resource rules must supply at least one {one}"))
        elif len(values) > 1 and "*" in values:
            found.append(invalid(f"{path}.{field}", values, f"if '*' is present, must not specify other {many}"))
    spaces, where = rule.get("namespaces") or [], f"{path}.namespaces"
    if not spaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        found.append(required(where, text))
    elif "*" in spaces:
        text = "if '*' is present, must not specify other namespaces"
        found += [invalid(where, spaces, text)] if len(spaces) > 1 else []
    else:
        intro = "each member of this list must be '*' or a DNS-1123 label; "
        for index, space in enumerate(spaces):
            found += checks.texts(f"{where}[{index}]", space, [intro + text for text in label_errors(space)])
    return found


def _url_rule(rule: Object, path: str) -> Errors:
    found = _verbs(rule, path)
    urls, where = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        return [*found, required(where, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        text = "if '*' is present, must not specify other non-resource URLs"
        return found + ([invalid(where, urls, text)] if len(urls) > 1 else [])
    for index, url in enumerate(urls):
        problem = _url_problem(url)
        found += [invalid(f"{where}[{index}]", url, problem)] if problem else []
    return found


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars == 1 and not url.endswith("/*")) else ""


def priority_level(obj: Object) -> Errors:
    spec = obj["spec"]
    kind, limited, exempt = spec["type"], spec.get("limited"), spec.get("exempt")
    found: Errors = []
    if (obj["metadata"].get("name") == "exempt") != (kind == "Exempt"):
        found.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            found.append(forbidden("spec.limited", ""))
        return found + _shares(exempt or {}, "spec.exempt")
    if kind == "Limited":
        if exempt is not None:
            found.append(forbidden("spec.exempt", ""))
        if limited is None:
            return [*found, required("spec.limited")]
        return found + _limited(limited, "spec.limited")
    found += [forbidden(f"spec.{field}", "") for field in ("exempt", "limited") if spec.get(field) is not None]
    found += _response((limited or {}).get("limitResponse") or {}, "spec.limited.limitResponse", plainly=True)
    return found + checks.one_of("spec.type", kind, ("Exempt", "Limited"), needed=True)


def _shares(level: Object, path: str) -> Errors:
    found: Errors = []
    shares = level.get("nominalConcurrencyShares")
    if shares is not None and shares < 0:
        found.append(invalid(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    return found + _lendable(level, path)


def _lendable(level: Object, path: str) -> Errors:
    percent = level.get("lendablePercent")
    return [] if percent is None else checks.in_range(f"{path}.lendablePercent", percent, 0, 100)


def _limited(level: Object, path: str) -> Errors:
    found = _shares({k: v for k, v in level.items() if k != "lendablePercent"}, path)
    found += _response(level["limitResponse"], f"{path}.limitResponse") + _lendable(level, path)
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        text = "if specified, must be a non-negative integer"
        found.append(invalid(f"{path}.borrowingLimitPercent", borrowing, text))
    return found


def _response(response: Object, path: str, *, plainly: bool = False) -> Errors:
    """Args: plainly: only what the types say, as where the level is of another type."""
    kind, queuing = response.get("type", ""), response.get("queuing")
    found: Errors = []
    if kind != "Queue" and queuing is not None:
        found.append(forbidden(f"{path}.queuing", ""))
    if kind == "Queue" and queuing is None:
        found.append(required(f"{path}.queuing"))
    if plainly:
        return found
    if kind == "Queue" and queuing is not None:
        found += _queuing(queuing, f"{path}.queuing")
    return found + checks.one_of(f"{path}.type", kind, ("Queue", "Reject"), needed=True)


def _queuing(queuing: Object, path: str) -> Errors:
    limit, queues, hand = queuing["queueLengthLimit"], queuing["queues"], queuing["handSize"]
    found: Errors = []
    if limit <= 0:
        found.append(invalid(f"{path}.queueLengthLimit", limit, "must be positive"))
    if queues <= 0:
        found.append(invalid(f"{path}.queues", queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        found.append(invalid(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    if hand <= 0:
        found.append(invalid(f"{path}.handSize", hand, "must be positive"))
    elif hand > queues:
        found.append(invalid(f"{path}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {_HASH_BITS}"
        found.append(invalid(f"{path}.handSize", hand, text))
    return found
