"""Reviews: questions put to the server as objects that are never stored. What is allowed, and who am I."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kopylite.apiserver.access.access_attributes import access_target, attribute_errors, evaluation_error
from kopylite.apiserver.access.authentication import TokenIdentity, TokenRefused
from kopylite.apiserver.access.authorization import Authorizer
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import write_options
from kopylite.apiserver.request.request import Response, User
from kopylite.apiserver.schema.field_errors import FieldError, invalid_error
from kopylite.apiserver.world import Call, World
from kopylite.apiserver.writes.decoding import check_namespace_matches, read_typed
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.errors import BadRequest

_AUTHORIZATION, _AUTHENTICATION = "authorization.k8s.io", "authentication.k8s.io"


class Reviews:
    """Handlers of the review resources.

    Args:
        identify: whom a bearer token stands for, among some audiences; raises TokenRefused.
    """

    def __init__(
        self,
        world: World,
        authorizer: Authorizer,
        identify: Callable[[str, Sequence[str]], TokenIdentity],
    ) -> None:
        self._world = world
        self._authorizer = authorizer
        self._identify = identify

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
        """Raises Invalid, BadRequest."""
        review = self._read(call)
        spec, local = review["spec"], call.target.resource == "localsubjectaccessreviews"
        _refuse(attribute_errors(review, subject=True, local=local))
        extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
        return self._answer(call, review, self._access(user, spec))

    async def self_access(self, call: Call) -> Response:
        """Raises Invalid."""
        review = self._read(call)
        _refuse(attribute_errors(review))
        return self._answer(call, review, self._access(call.request.user, review["spec"]))

    async def self_rules(self, call: Call) -> Response:
        """Raises BadRequest."""
        review = self._read(call)
        namespace = review["spec"].get("namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        rules = self._authorizer.rules(call.request.user, namespace)
        status = {"resourceRules": rules.resources, "nonResourceRules": rules.paths, "incomplete": False}
        if rules.error:
            status["evaluationError"] = rules.error
        head = {"kind": review["kind"], "apiVersion": review["apiVersion"], "metadata": {}}
        return self._answer(call, {**head, "spec": {}}, status)

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
        try:
            user, audiences = self._identify(token.split(" ")[0], review["spec"].get("audiences") or ())
        except TokenRefused as refused:
            return self._answer(call, review, {"user": {}, "error": str(refused)})
        status = {"authenticated": True, "user": user.to_dict(), "audiences": list(audiences)}
        return self._answer(call, review, status)

    def _read(self, call: Call) -> dict[str, Any]:
        accept_media(call.request, views=False)  # before the body is looked at
        write_options(call.request, "CreateOptions")
        group = call.resource.group.partition(".")[0]
        name = f"io.k8s.api.{group}.{call.resource.version}.{call.resource.kind}"
        given = read_typed(call.request, name, call.resource.api_version)
        head = {"kind": call.resource.kind, "apiVersion": call.resource.api_version}
        metadata = {key: value for key, value in (given.get("metadata") or {}).items() if value}
        check_namespace_matches(call, metadata)
        if call.target.namespace:
            metadata["namespace"] = call.target.namespace
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
        decision = self._authorizer.authorize(user, access_target(spec))
        status: dict[str, Any] = {"allowed": decision.allowed}
        if decision.reason:
            status["reason"] = decision.reason
        if error := evaluation_error(spec):
            status["evaluationError"] = error
        return status


def _refuse(errors: list[FieldError]) -> None:
    if errors:
        # Upstream names no kind here.
        raise invalid_error("", _AUTHORIZATION, "", errors)
