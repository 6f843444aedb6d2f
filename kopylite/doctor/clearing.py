"""Removing one finalizer from one object, for those who know that nobody else will: what would be done, whether it may,
and how. The decisions are pure; `clear` carries them out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from kopylite.boundary import json_object
from kopylite.client import ResourceInfo, Transport, WriteOptions
from kopylite.client import verbs as build
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.doctor.deletions import BUILT_IN, managers, owner_of
from kopylite.doctor.findings import shown
from kopylite.doctor.reader import Object, Reader
from kopylite.doctor.wire import name, namespace, text, texts
from kopylite.errors import ApiError, Conflict, Invalid, KopyliteError, NotFound, TransportError, api_error
from kopylite.objects import ObjectKey

# Somebody who writes more often than so many times in a row is somebody to talk to.
TRIES = 10
PAUSE = 0.2


class AnotherObject(KopyliteError):
    """The object that was looked at is gone, and there is another one of its name."""


def refusals(
    obj: Object, finalizers: Sequence[str], alive: Collection[str] | None, *, force: bool, not_deleting: bool
) -> list[str]:
    """Why they are not to be removed; each says what would allow it. None: nothing speaks against it.

    Args:
        alive: names of operators that run; None: that is not known.
        force: whoever is alive, and whatever is protected.
        not_deleting: also from an object that nobody has asked to delete.
    """
    found: list[str] = []
    if not text(obj, "metadata", "deletionTimestamp") and not not_deleting:
        found.append("it is not being deleted, and what the finalizer stands for is in use: delete it first; or say "
                     "--not-deleting")  # fmt: skip
    by = managers(obj)
    for finalizer in [] if force else finalizers:
        if finalizer in BUILT_IN:
            what = f"is Kubernetes' own: {BUILT_IN[finalizer]}. Data can be lost without it; if you know better"
        elif alive is None:
            what = "is of an operator that may run: to look takes list on leases and deployments. If it does not"
        else:
            who, lives = owner_of(finalizer, by.get(finalizer, ""), alive)
            what = f"is of {who}: let it do its work, look into its log, or stop it first. If you know better"
            if not lives:
                continue
        found.append(f"{shown(finalizer)} {what}, say --force")
    return found


def consequences(obj: Object, finalizers: Sequence[str]) -> list[str]:
    """What follows, in words."""
    left = [each for each in texts(obj, "metadata", "finalizers") if each not in finalizers]
    found = [
        f"removes {shown(each)}: whatever it stands for outside of this object stays behind" for each in finalizers
    ]
    if left:
        found.append(f"leaves {', '.join(map(shown, left))}")
    elif text(obj, "metadata", "deletionTimestamp"):
        found.append("then none is left, and the object is gone at once, for good")
    return found


def steps(obj: Object, finalizers: Sequence[str]) -> list[dict[str, Any]]:
    """The JSON patch: it fails for another object of the name, and if anybody has changed the list."""
    present = texts(obj, "metadata", "finalizers")
    places = [index for index, each in enumerate(present) if each in finalizers]
    return [
        {"op": "test", "path": "/metadata/uid", "value": text(obj, "metadata", "uid")},
        {"op": "test", "path": "/metadata/finalizers", "value": present},
        *({"op": "remove", "path": f"/metadata/finalizers/{index}"} for index in reversed(places)),
    ]


async def clear(
    reader: Reader,
    resource: ResourceInfo,
    obj: Object,
    finalizers: Sequence[str],
    *,
    dry_run: bool,
    timeout: float,
    clock: Clock = SYSTEM_CLOCK,
) -> Object | None:
    """Remove finalizers from the object that was read, and no others, whoever else writes to it meanwhile.

    An answer that is lost is no failure: the object is read again, and shows whether it was carried out.

    Returns:
        The object as it is then; None: it is gone.

    Raises:
        AnotherObject: the object is gone, and there is a new one of its name, which was left alone.
        Conflict: others changed it ten times in a row.
        ApiError, TransportError: the server refuses, or is not reached.
    """
    uid, key = text(obj, "metadata", "uid"), ObjectKey(namespace(obj), name(obj))
    current: Object | None = obj
    failure: KopyliteError | None = None
    for attempt in range(TRIES):
        if attempt:
            await clock.sleep(PAUSE * clock.random() * attempt)
            try:
                current = await reader.find(resource.kind, key.name, key.namespace)
            except TransportError as error:
                failure = error
                continue
        if current is None:
            return None
        if text(current, "metadata", "uid") != uid:
            raise AnotherObject(f"{key} is another object now, and is left alone: the one that was looked at is gone")
        if not set(finalizers) & set(texts(current, "metadata", "finalizers")):
            return current
        try:
            return await _patch(reader.transport, resource, key, steps(current, finalizers), dry_run, timeout)
        except NotFound:
            return None
        except (Conflict, TransportError) as error:
            failure = error
    assert failure is not None
    raise failure


async def _patch(
    transport: Transport, resource: ResourceInfo, key: ObjectKey, patch: Any, dry_run: bool, timeout: float
) -> Object:
    options = WriteOptions(field_manager="kopylite-finalizers", dry_run=dry_run)
    request = build.patch(resource, key, json.dumps(patch).encode(), "json", None, options)
    answer = await transport.request(request, timeout=timeout)
    if answer.status < 300:
        return json_object(answer.body)
    error: ApiError = api_error(answer.status, answer.body, request=str(request))
    if isinstance(error, Invalid) and not error.causes:
        raise Conflict(error.message, details=error.details, request=error.request)  # a test of the patch failed
    raise error
