"""Conversion webhooks: objects of a CRD in another version than the stored one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from kopylite.apiserver.outbound.hooks import HookClient, HookFailed
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.schema.field_errors import go_quote
from kopylite.apiserver.world import World
from kopylite.errors import ApiError, InternalError

Object = dict[str, Any]
_GROUP = "apiextensions.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_TIMEOUT = 30.0


class Converter:
    """Asks the conversion webhook of a CRD."""

    def __init__(self, world: World, client: HookClient) -> None:
        self._world = world
        self._client = client

    async def __call__(self, objects: Sequence[Object], target: Resource) -> list[Object]:
        """The same objects in the version of a resource, pruned by its schema; those in it already stay.

        Raises:
            InternalError: the webhook gives no answer, or none that can be used.
        """
        others = [obj for obj in objects if obj["apiVersion"] != target.api_version]
        converted = iter(await self._converted(others, target) if others else ())
        return [obj if obj["apiVersion"] == target.api_version else next(converted) for obj in objects]

    async def _converted(self, objects: list[Object], target: Resource) -> list[Object]:
        assert target.conversion is not None, "only CRDs with a webhook convert by one"
        kind = f"{objects[0]['apiVersion']}, Kind={objects[0]['kind']}"
        answers = await self._ask(objects, target, kind)
        if len(answers) != len(objects):
            raise _failed(f"conversion webhook for {kind} returned {len(answers)} objects, expected {len(objects)}")
        return [_taken(before, after, target, kind) for before, after in zip(objects, answers, strict=True)]

    async def _ask(self, objects: list[Object], target: Resource, kind: str) -> list[Any]:
        conversion = target.conversion or {}
        version = next((v for v in conversion.get("conversionReviewVersions") or () if v in _VERSIONS), None)
        if version is None:
            raise _failed("no supported conversion review versions")
        uid = str(self._world.clock.uuid())
        request = {"uid": uid, "desiredAPIVersion": target.api_version, "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}
        try:
            body = await self._client.post(conversion["clientConfig"], msgspec.json.encode(review), _TIMEOUT)
            answer = msgspec.json.decode(body)
        except HookFailed as failed:
            raise _failed(f"conversion webhook for {kind} failed: {failed}") from failed
        except (ValueError, RecursionError) as wrong:
            raise _failed(f"conversion webhook for {kind} failed: {wrong}") from None
        problem, converted = _read(answer, version, uid)
        if problem:
            raise _failed(f"conversion webhook for {kind} failed: {problem}")
        return converted


def _read(answer: Any, version: str, uid: str) -> tuple[str, list[Any]]:
    """Why an answer cannot be used ("" if it can), and the objects in it."""
    review = answer if isinstance(answer, dict) else {}
    response = review.get("response")
    if version == "v1":
        wanted = f"{_GROUP}/v1, Kind=ConversionReview"
        found = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
        if found != wanted:
            return f"expected webhook response of {wanted}, got {found}", []
    if not isinstance(response, dict):
        return "no response provided", []
    if version == "v1" and response.get("uid", "") != uid:
        return f"expected response.uid={go_quote(uid)}, got {go_quote(str(response.get('uid', '')))}", []
    result = response.get("result")
    status = result if isinstance(result, dict) else {}
    if status.get("status") != "Success":
        return str(
            status.get("message") or f"response.result.status was '{status.get('status', '')}', not 'Success'"
        ), []
    converted = response.get("convertedObjects")
    return "", converted if isinstance(converted, list) else []


def _taken(before: Object, after: Any, target: Resource, kind: str) -> Object:
    """A converted object, with the metadata that a conversion must not change. Raises InternalError."""
    found = after if isinstance(after, dict) else {}
    text = f"conversion webhook for {kind} returned invalid object"
    if found.get("apiVersion") != target.api_version:
        shown = f"(expected {target.api_version}, received {found.get('apiVersion', '')})"
        raise _failed(f"{text} at index 0: invalid groupVersion {shown}")
    if found.get("kind") != before["kind"]:
        raise _failed(f"{text} at index 0: invalid kind (expected {before['kind']}, received {found.get('kind', '')})")
    metadata, old = found.get("metadata"), before.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _failed(f"conversion webhook for {kind} returned invalid metadata: missing metadata in converted object")
    for field, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if metadata.get(field, "") != old.get(field, ""):
            raise _failed(f"{text}: must have the same {word}: {old.get(field, '')} != {metadata.get(field, '')}")
    kept = copy.deepcopy(old)
    for field in ("labels", "annotations"):
        kept.pop(field, None)
        if metadata.get(field) is not None:
            kept[field] = metadata[field]
    made = {**found, "metadata": kept}
    try:
        target.strategy.decode(made)
    except ApiError as error:
        raise _failed(f"conversion webhook for {kind} returned invalid metadata: {error.message}") from None
    return made


def _failed(text: str) -> InternalError:
    return InternalError(text, reason="")
