"""Reviews: questions put to the server as objects that are never stored. What is allowed, and who am I."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kopylite.apiserver.access.authorization import Authorizer
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import write_options
from kopylite.apiserver.request.request import Response, Target, User
from kopylite.apiserver.schema.field_errors import FieldError, invalid, invalid_error
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes.decoding import read_typed
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.errors import BadRequest

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


class Reviews:
    """Handlers of the review resources.

    Args:
        token_user: who a bearer token stands for.
        rules: what a user may do in a namespace, as (resourceRules, nonResourceRules).
    """

    def __init__(
        self,
        world: World,
        authorizer: Authorizer,
        token_user: Callable[[str], User | None],
        rules: Callable[[User, str], tuple[list[dict[str, Any]], list[dict[str, Any]]]],
    ) -> None:
        self._world = world
        self._authorizer = authorizer
        self._token_user = token_user
        self._rules = rules

    def handlers(self) -> dict[tuple[str, str, str], Callable[[Call], Any]]:
        """By (group, plural, sub-resource), as `Core.special` takes them."""
        return {
            (_AUTHORIZATION, "subjectaccessreviews", ""): self.subject_access,
            (_AUTHORIZATION, "localsubjectaccessreviews", ""): self.subject_access,
            (_AUTHORIZATION, "selfsubjectaccessreviews", ""): self.self_access,
            (_AUTHORIZATION, "selfsubjectrulesreviews", ""): self.self_rules,
            (_AUTHENTICATION, "selfsubjectreviews", ""): self.self_subject,
            (_AUTHENTICATION, "tokenreviews", ""): self.token,
        }

    async def subject_access(self, call: Call) -> Response:
        """Raises Invalid."""
        review = self._read(call)
        spec = review["spec"]
        errors = _attribute_errors(spec)
        if not spec.get("user") and not spec.get("groups"):
            errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
        namespace = (spec.get("resourceAttributes") or {}).get("namespace", "")
        if call.target.resource == "localsubjectaccessreviews" and namespace != call.target.namespace:
            errors.append(invalid("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace"))
        _refuse(errors)
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
        return self._answer(call, review, self._access(user, spec))

    async def self_access(self, call: Call) -> Response:
        """Raises Invalid."""
        review = self._read(call)
        _refuse(_attribute_errors(review["spec"]))
        return self._answer(call, review, self._access(call.request.user, review["spec"]))

    async def self_rules(self, call: Call) -> Response:
        """Raises BadRequest."""
        review = self._read(call)
        namespace = review["spec"].get("namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        resource_rules, other_rules = self._rules(call.request.user, namespace)
        status = {
            "resourceRules": resource_rules,
            "nonResourceRules": other_rules,
            "incomplete": False,
        }
        return self._answer(call, {**review, "spec": {}}, status)

    async def self_subject(self, call: Call) -> Response:
        review = self._read(call)
        review.pop("spec")
        review["metadata"]["creationTimestamp"] = timestamp(self._world.clock.now())
        return self._answer(call, review, {"userInfo": call.request.user.to_dict()})

    async def token(self, call: Call) -> Response:
        """Raises BadRequest."""
        review = self._read(call)
        token = review["spec"].get("token")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        user = self._token_user(token)
        if user is None:
            return self._answer(call, review, {"user": {}, "error": "invalid bearer token"})
        return self._answer(call, review, {"authenticated": True, "user": user.to_dict()})

    def _read(self, call: Call) -> dict[str, Any]:
        group = call.resource.group.partition(".")[0]
        given = read_typed(call.request, f"io.k8s.api.{group}.{call.resource.version}.{call.resource.kind}")
        head = {"kind": call.resource.kind, "apiVersion": call.resource.api_version}
        metadata = {key: value for key, value in (given.get("metadata") or {}).items() if value}
        review = {**head, "metadata": metadata, "spec": given.get("spec") or {}}
        if review["spec"] and call.target.resource != "selfsubjectrulesreviews":
            self._own_fields(call, review)
        return review

    def _own_fields(self, call: Call, review: dict[str, Any]) -> None:
        """Nothing of a review is kept, and yet the real server notes whose fields it has."""
        update_managed_fields(
            review,
            None,
            schema=call.resource.strategy.schema,
            manager=write_options(call.request, "CreateOptions").field_manager,
            api_version=call.resource.api_version,
            subresource="",
            now=timestamp(self._world.clock.now()),
        )

    def _answer(self, call: Call, review: dict[str, Any], status: dict[str, Any]) -> Response:
        media = accept_media(call.request, views=False)
        return Response(201, media.encode({**review, "status": status}), media.type)

    def _access(self, user: User, spec: dict[str, Any]) -> dict[str, Any]:
        """The status of an access review."""
        target = _target(spec)
        if not self._authorizer.allows(user, target):
            return {"allowed": False}
        reason = self._authorizer.reason(user, target)
        return {"allowed": True, "reason": reason} if reason else {"allowed": True}


def _target(spec: dict[str, Any]) -> Target:
    """What an access review asks about."""
    plain = spec.get("nonResourceAttributes")
    if plain:
        return Target(plain.get("verb", ""), plain.get("path", ""))
    wanted = spec["resourceAttributes"]
    return Target(
        wanted.get("verb", ""),
        "",
        wanted.get("group", ""),
        wanted.get("version", ""),
        wanted.get("resource", ""),
        wanted.get("namespace", ""),
        wanted.get("name", ""),
        wanted.get("subresource", ""),
    )


def _attribute_errors(spec: dict[str, Any]) -> list[FieldError]:
    if bool(spec.get("resourceAttributes")) != bool(spec.get("nonResourceAttributes")):
        return []
    text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return [invalid("spec", None, text)]


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        # Upstream names no kind here.
        raise invalid_error("", _AUTHORIZATION, "", errors)
