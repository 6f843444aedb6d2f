"""Calling webhooks: who is called about a request, in which order, and what becomes of their answers.

As apiserver's admission/plugin/webhook/mutating/dispatcher.go (one after the other) and validating/dispatcher.go.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio
import msgspec

from kopylite.apiserver.admission.conversion import Versions
from kopylite.apiserver.admission.expressions import Authorize, ConditionFailed, conditions_match, variables_of
from kopylite.apiserver.admission.matching import is_exempt, matched, selectors_match
from kopylite.apiserver.admission.refusals import forbidden
from kopylite.apiserver.admission.reviews import (
    VERSIONS,
    BadAnswer,
    ReviewVerdict,
    denial,
    read_answer,
    request_of,
    review_of,
)
from kopylite.apiserver.aside import aside
from kopylite.apiserver.outbound.hooks import DEFAULT_TIMEOUT, HookClient, HookFailed
from kopylite.apiserver.patching.json_patch import json_patch
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.schema.names import label_key_errors
from kopylite.apiserver.world import Admission, World
from kopylite.errors import ApiError, BadRequest, Cause, InternalError

Object = dict[str, Any]
_MUTATING, _VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
_GROUP = "admissionregistration.k8s.io"


class _CallFailed(Exception):
    """A webhook could not be asked; the failure policy decides what that means."""


@dataclass(frozen=True, slots=True)
class _Hook:
    """One webhook of one configuration."""

    configuration: str
    spec: Mapping[str, Any]
    index: int

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def key(self) -> tuple[str, str]:
        return self.configuration, self.name

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class Webhooks:
    """Two plug-ins, `mutate` and `validate`."""

    def __init__(self, world: World, client: HookClient, versions: Versions, authorize: Authorize) -> None:
        self._world = world
        self._client = client
        self._versions = versions
        self._authorize = authorize

    async def mutate(self, admission: Admission) -> None:
        """Call the mutating webhooks one after the other, each with what the ones before made of the object.

        Raises:
            ApiError: one denies the request, or cannot be asked and must not be ignored.
        """
        if is_exempt(admission.call.resource):
            return
        again = admission.reinvocation
        changed_by_others = again.round == 1 and again.seen is not None and again.seen != _encoded(admission.obj)
        if changed_by_others:
            again.require_previous()
        for hook in self._hooks(_MUTATING):
            resource = await self._concerned(hook, admission)
            if resource is None or (again.round == 1 and hook.key not in again.required):
                continue
            changed = False
            try:
                changed = await self._mutated(hook, admission, resource)
            except _CallFailed as failed:
                self._failed(hook, failed, admission, mutating=True)
            finally:
                _note(admission, hook, "mutation", {"mutated": changed})
            if changed:
                again.require_previous()
                again.wanted = True
            if hook.spec.get("reinvocationPolicy") == "IfNeeded":
                again.previous.add(hook.key)
        again.seen = _encoded(admission.obj)

    async def mutate_deletion(self, admission: Admission) -> None:
        if admission.operation == "DELETE":
            await self.mutate(admission)

    async def validate(self, admission: Admission) -> None:
        """Call the validating webhooks, all at once.

        Raises:
            ApiError: the first that denies the request, or cannot be asked and must not be ignored.
        """
        if is_exempt(admission.call.resource):
            return
        relevant: list[tuple[_Hook, Resource]] = []
        for hook in self._hooks(_VALIDATING):
            resource = await self._concerned(hook, admission)
            if resource is not None:
                relevant.append((replace(hook, index=len(relevant)), resource))
        errors: list[ApiError] = []

        async def ask(hook: _Hook, resource: Resource) -> None:
            try:
                await self._validated(hook, admission, resource)
            except _CallFailed as failed:
                try:
                    self._failed(hook, failed, admission, mutating=False)
                except ApiError as error:
                    errors.append(error)
            except ApiError as error:
                errors.append(error)

        if len(relevant) == 1:
            await ask(*relevant[0])
        else:
            async with anyio.create_task_group() as group:
                for each in relevant:
                    group.start_soon(ask, *each)
        if errors:
            raise errors[0]

    def _hooks(self, plural: str) -> Iterator[_Hook]:
        """In the order of the names of their configurations; as they are when the first is asked for."""
        records = self._world.store.collection(f"{plural}.{_GROUP}").records
        index = itertools.count()
        for record in [records[key] for key in sorted(records)]:
            configuration = record.decode()
            for spec in configuration.get("webhooks") or ():
                yield _Hook(configuration["metadata"]["name"], spec, next(index))

    async def _concerned(self, hook: _Hook, admission: Admission) -> Resource | None:
        """In whose version the webhook wants to see the request; None if it is not concerned. Raises ApiError."""
        spec = hook.spec
        found = matched(self._world, admission, spec.get("rules") or (), spec.get("matchPolicy", "Equivalent"))
        if found is None or not selectors_match(self._world, admission, spec):
            return None
        conditions = spec.get("matchConditions")
        if conditions:
            objects = await self._versions.both(admission, found.resource)
            variables = variables_of(admission, found.resource, objects, self._authorize)
            policy = spec.get("failurePolicy", "Fail")
            try:
                if not await aside(lambda: conditions_match(conditions, variables, policy)):
                    return None
            except ConditionFailed as failed:
                raise forbidden(admission, str(failed)) from None
        return found.resource

    async def _mutated(self, hook: _Hook, admission: Admission, resource: Resource) -> bool:
        """Ask a webhook and take its patch. Returns whether the object is another one now."""
        obj, old = await self._versions.both(admission, resource)
        verdict = await self._ask(hook, admission, resource, (obj, old), mutating=True)
        if not verdict.allowed:
            raise denial(hook.name, verdict.status)
        if not verdict.patch:
            return False
        if obj is None:
            text = f"admission webhook {go_quote(hook.name)} attempted to modify the object, which is not supported"
            raise _internal(f"{text} for this operation")
        try:
            patched = json_patch(obj, verdict.patch)
        except ApiError as error:
            raise _internal(error.message) from None
        if not isinstance(patched, dict):
            raise _internal("the patched object is no object")
        _note(admission, hook, "patch", {"patch": verdict.patch, "patchType": "JSONPatch"})
        return await self._versions.take(admission, resource, obj, patched)

    async def _validated(self, hook: _Hook, admission: Admission, resource: Resource) -> None:
        objects = await self._versions.both(admission, resource)
        verdict = await self._ask(hook, admission, resource, objects, mutating=False)
        if not verdict.allowed:
            raise denial(hook.name, verdict.status)

    async def _ask(
        self, hook: _Hook, admission: Admission, resource: Resource, objects: tuple[Any, Any], *, mutating: bool
    ) -> ReviewVerdict:
        effects = hook.spec.get("sideEffects")
        if admission.dry_run and effects not in ("None", "NoneOnDryRun"):
            raise BadRequest(f"admission webhook {go_quote(hook.name)} does not support dry run")
        version = next((v for v in hook.spec.get("admissionReviewVersions") or () if v in VERSIONS), None)
        if version is None:
            text = "webhook does not accept known AdmissionReview versions (v1, v1beta1)"
            raise _CallFailed(f"could not create admission objects: {text}")
        uid = str(self._world.clock.uuid())
        body = review_of(version, request_of(admission, resource, *objects, uid))
        timeout = float(hook.spec.get("timeoutSeconds") or DEFAULT_TIMEOUT)
        try:
            answer = await self._client.post(hook.spec["clientConfig"], body, timeout)
            verdict = read_answer(answer, version, uid, mutating=mutating)
        except HookFailed as failed:
            raise _CallFailed(f"failed to call webhook: {failed}") from failed
        except BadAnswer as bad:
            raise _CallFailed(str(bad)) from bad
        call = admission.call
        for key, text in verdict.audit.items():
            if "/" not in key and not label_key_errors(f"{hook.name}/{key}"):  # others are dropped, as upstream
                call.request.audit.setdefault(f"{hook.name}/{key}", text)
        call.warnings.extend(verdict.warnings)
        return verdict

    def _failed(self, hook: _Hook, failed: _CallFailed, admission: Admission, *, mutating: bool) -> None:
        """Raises InternalError, unless the webhook's failures are ignored."""
        if not hook.ignores_failures:
            raise _internal(f"failed calling webhook {go_quote(hook.name)}: {failed}") from failed
        kind = "mutation" if mutating else "validating"
        prefix = f"failed-open.{kind}.webhook.admission.k8s.io/round_{admission.reinvocation.round}_index_{hook.index}"
        admission.call.request.audit[prefix] = hook.name


def _note(admission: Admission, hook: _Hook, what: str, values: Object) -> None:
    """In the audit log: what a mutating webhook did."""
    key = f"{what}.webhook.admission.k8s.io/round_{admission.reinvocation.round}_index_{hook.index}"
    told = {"configuration": hook.configuration, "webhook": hook.name, **values}
    admission.call.request.audit.setdefault(key, msgspec.json.encode(told).decode())


def _internal(text: str) -> InternalError:
    return InternalError(f"Internal error occurred: {text}", causes=[Cause("", text)])


def _encoded(obj: Object | None) -> bytes:
    return msgspec.json.encode(obj, order="sorted")
