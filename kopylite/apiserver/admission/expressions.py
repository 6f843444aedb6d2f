"""CEL in admission: the variables that expressions see, and the conditions under which a webhook or policy counts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kopylite.apiserver.admission.matching import name_of, namespace_of
from kopylite.apiserver.admission.reviews import request_of
from kopylite.apiserver.request.request import AUTHENTICATED, SERVICE_ACCOUNT, Target, User
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.cel.authz import Access, Asked, Decide
from kopylite.apiserver.schema.cel.budget import PER_MATCH, Budget
from kopylite.apiserver.schema.cel.program import CompileProblem, EvaluationFailed, OutOfBudget, Program
from kopylite.apiserver.schema.cel.shapes import DYN, Shape
from kopylite.apiserver.world import Admission

# From a user and what is asked: whether it is allowed, and why.
Authorize = Callable[[User, Target], tuple[bool, str]]
SCOPE: Mapping[str, Shape] = dict.fromkeys(("object", "oldObject", "request", "authorizer"), DYN)


class ConditionFailed(Exception):
    """A condition has no value; the text says which and why."""


@functools.lru_cache(maxsize=2048)
def compiled(expression: str, names: tuple[str, ...] = tuple(SCOPE)) -> Program:
    """An expression that sees variables of these names, their types unknown. Raises CompileProblem."""
    return Program(expression, dict.fromkeys(names, DYN))


def variables_of(
    admission: Admission, resource: Resource, objects: tuple[Any, Any], authorize: Authorize
) -> dict[str, Any]:
    """`object`, `oldObject`, `request` and `authorizer`, as expressions see them.

    Args:
        resource: in whose version the objects are.
    """
    obj, old = objects
    request = request_of(admission, resource, None, None, "")
    for name in ("uid", "object", "oldObject"):
        request.pop(name)
    for name in ("subResource", "requestSubResource", "name", "namespace"):
        request.setdefault(name, "")
    return {"object": obj, "oldObject": old, "request": request, "authorizer": _access(admission, authorize)}


def _access(admission: Admission, authorize: Authorize) -> Access:
    call = admission.call

    def decide(asked: Asked, verb: str) -> tuple[bool, str, str]:
        user = call.request.user
        if asked.account is not None:
            namespace, name = asked.account
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
            user = User(f"{SERVICE_ACCOUNT}:{namespace}:{name}".replace("::", ":"), groups)
        target = Target(
            verb,
            asked.path,
            asked.group,
            "*",
            asked.resource,
            asked.namespace,
            asked.name,
            asked.subresource,
        )
        return (*authorize(user, target), "")

    resource = call.resource
    about = Asked(
        group=resource.group,
        resource=resource.plural,
        subresource=call.target.subresource,
        namespace=namespace_of(admission),
        name=name_of(admission),
    )
    decided: Decide = decide
    return Access(decided, Asked(), {"requestResource": Access(decided, about)})


def conditions_match(
    conditions: Iterable[Mapping[str, Any]],
    variables: Mapping[str, Any],
    failure_policy: str,
    names: tuple[str, ...] = tuple(SCOPE),
) -> bool:
    """Whether all matchConditions are true.

    Raises:
        ConditionFailed: none is false, but some have no value, and the failure policy is Fail.
    """
    budget = Budget(PER_MATCH)
    failures = []
    for condition in conditions:
        expression = condition["expression"]
        try:
            if compiled(expression, names).evaluate(variables, budget) is False:
                return False
        except EvaluationFailed as failed:
            failures.append(f"expression '{expression}' resulted in error: {failed}")
        except CompileProblem as problem:
            failures.append(f"compilation error: compilation failed: {problem}")
        except OutOfBudget:
            failures.append(
                "validation failed due to running out of cost budget, no further validation rules will be run"
            )
            break
    if not failures:
        return True
    if failure_policy == "Ignore":
        return False
    raise ConditionFailed(failures[0] if len(failures) == 1 else f"[{', '.join(dict.fromkeys(failures))}]")
