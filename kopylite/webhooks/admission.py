"""Judge: a review goes through the App's functions, in the order of their declaration, and is answered."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import msgspec

from kopylite.boundary import WEBHOOK, CallFailed, Guard, printable, say, show
from kopylite.clock import Clock
from kopylite.errors import (
    DecodeError,
    EncodeError,
    ForgottenAwait,
    GatewayTimeout,
    InternalError,
    Invalid,
    RegistrationError,
    UsageError,
)
from kopylite.objects import Unstructured, wire_of
from kopylite.objects.wirevalues import wire_value
from kopylite.reconcile import Context, Environment, Request
from kopylite.reconcile.context import RUNNING
from kopylite.troubleshooting import Trouble
from kopylite.webhooks.edits import carried, patch_of
from kopylite.webhooks.review import Denied, Review, status_of
from kopylite.webhooks.reviews import AdmissionRequest, answer_to, present, request_of
from kopylite.webhooks.specs import WebhookSpec

logger = logging.getLogger("kopylite.webhooks")

# The answer has to be under way when the caller stops waiting.
SPARE_SECONDS = 0.5
SPARE_SHARE = 0.1


def deadline_of(timeout: float) -> float:
    """The seconds that functions have of the caller's."""
    return timeout - min(SPARE_SECONDS, timeout * SPARE_SHARE)


class _Refused(Exception):
    """The end of a review; `status` says why."""

    def __init__(self, status: dict[str, Any]) -> None:
        self.status = status
        super().__init__()


class Judge:
    """One endpoint: the functions of one role for one kind, which share their rules.

    Args:
        specs: in the order in which they are called.
        environment: of the contexts that the functions get.
        on_crash: told of each function that raised something else than Denied.
    """

    def __init__(
        self, specs: Sequence[WebhookSpec], environment: Environment, on_crash: Callable[[], None] = lambda: None
    ) -> None:
        self._environment = environment
        self._on_crash = on_crash
        self._guards = [(spec, self._guard(spec, environment.clock)) for spec in specs]

    def _guard(self, spec: WebhookSpec, clock: Clock) -> Guard[[Context, Review[Any]], Denied | None]:
        async def call(context: Context, review: Review[Any]) -> Denied | None:
            RUNNING.set(context)  # in a context of its own, which ends with the call: see Guard
            try:
                returned = await spec.function(context, review)
            except Denied as denied:
                return denied
            if returned is not None:
                raise UsageError(
                    f"it returned {show(returned)}; it has to return nothing: to refuse, `raise Denied(...)`; a "
                    "mutator edits review.object"
                )
            if context.forgotten:
                raise ForgottenAwait("; ".join(context.forgotten))
            return review.denial()

        return Guard(WEBHOOK, call, name=spec.own_name, now=clock.monotonic)

    async def answer(self, body: bytes, timeout: float) -> bytes:
        """The answer to the body of a call.

        Args:
            timeout: the caller's, in seconds.

        Raises:
            BadRequest: it is no review.
        """
        request = request_of(body)
        warnings: list[str] = []
        audit: dict[str, str] = {}
        try:
            with anyio.move_on_after(deadline_of(timeout)) as scope:
                patch = await self._reviewed(request, warnings, audit)
            if scope.cancelled_caught:
                text = f"the webhook was not done within {deadline_of(timeout):g} s; nothing was decided"
                logger.error("%s: %s. See %s", Review(request, Unstructured).shown(), text, Trouble.WEBHOOK)
                raise _Refused(GatewayTimeout(text).to_status())
            return answer_to(request.uid, patch=patch, warnings=warnings, audit=audit)
        except _Refused as refused:
            return answer_to(request.uid, status=refused.status, warnings=warnings, audit=audit)
        except Exception:  # of the machinery; an answer without a verdict could become an allow by failurePolicy
            logger.exception("a review could not be answered: %s", Review(request, Unstructured).shown())
            self._on_crash()
            status = InternalError("the webhook could not answer; the log of the operator says why").to_status()
            return answer_to(request.uid, status=status, warnings=warnings, audit=audit)

    async def _reviewed(
        self, request: AdmissionRequest, warnings: list[str], audit: dict[str, str]
    ) -> list[dict[str, Any]]:
        """The patch. Each function gets objects of its own; a mutator, with what those before it did."""
        came = present(request.object)
        begun = _decoded(came) if came else None
        now = begun
        for spec, guard in self._guards:
            if not spec.takes(request.operation.lower(), request.sub_resource):
                continue
            if now is not begun:
                request = replace_object(request, now)
            review: Review[Any] = Review(request, spec.kind, self._environment.client)
            review.warnings, review.audit = warnings, audit
            changes = spec.role == "mutate" and came is not None
            shown = self._wire(guard.name, review) if changes else None
            await self._call(guard, review)
            if changes:
                now = carried(now, shown, self._wire(guard.name, review))
        return patch_of(begun, now)

    def _wire(self, name: str, review: Review[Any]) -> Any:
        """The object as it is now. What a function put into it and is nothing that can be sent, is its fault."""
        try:
            # Through JSON: what the function goes on to change must not be in what it was shown.
            return msgspec.json.decode(msgspec.json.encode(wire_value(wire_of(review.object))))
        except DecodeError as error:
            raise _Refused(_misfit(error)) from None
        except (EncodeError, RegistrationError) as error:
            self._on_crash()
            text = printable(f"webhook {name}: what it made of the object cannot be sent: {say(error)}", 2000)
            logger.error("%s: %s", review.shown(), text)
            raise _Refused(InternalError(text).to_status()) from None

    async def _call(self, guard: Guard[[Context, Review[Any]], Denied | None], review: Review[Any]) -> None:
        about = Request(review.namespace, review.name)
        context = Context(self._environment, about, (review.shown(),))
        try:
            denied = await guard.run(review.shown(), context, review)
        except CallFailed as failed:
            if isinstance(failed.error, DecodeError):
                raise _Refused(_misfit(failed.error)) from None
            self._on_crash()
            guard.report(failed, review.shown())
            raise _Refused(self._crashed(guard.name, failed.error)) from None
        if denied is not None:
            raise _Refused(status_of(denied, review.request))

    def _crashed(self, name: str, error: BaseException) -> dict[str, Any]:
        """Its text is for the log: it may hold what the user who asks must not see."""
        text = f"webhook {name} failed with {type(error).__name__}; the log of {self._environment.controller} says why"
        return InternalError(text).to_status()


def replace_object(request: AdmissionRequest, now: Any) -> AdmissionRequest:
    """The same request about another state of the object."""
    changed: AdmissionRequest = msgspec.structs.replace(request, object=msgspec.Raw(msgspec.json.encode(now)))
    return changed


def _decoded(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _Refused(Invalid(f"the object cannot be read: {type(error).__name__}").to_status()) from None


def _misfit(error: DecodeError) -> dict[str, Any]:
    return Invalid(printable(str(error), 4000)).to_status()
