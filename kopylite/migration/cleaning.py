"""Cleaning: takes kopf's marks off the objects of a cluster, one object after the other, and nothing else.

Each write names the version of the object that was looked at, so nobody's write is lost: where somebody wrote
meanwhile, it is looked at again. What was done is seen from the objects: a run that was broken off is run again.
"""

from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kopylite.boundary import json_object
from kopylite.client import ApiRequest, ResourceInfo, WriteOptions
from kopylite.client import verbs as build
from kopylite.client.codec import decode_list
from kopylite.client.verbs import PAGE_SIZE
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.doctor.reader import NotAllowed, Object, Reader
from kopylite.doctor.wire import name, namespace
from kopylite.errors import Conflict, Expired, KopyliteError, NotFound, TransportError
from kopylite.migration.traces import Marks, Traces, object_patch, status_patch, traces_of
from kopylite.objects import Kind, ObjectKey

# Somebody who writes more often than so many times in a row is somebody to talk to.
TRIES = 10
PAUSE = 0.2
MANAGER = "kopylite-migrate"


class CleaningState(enum.StrEnum):
    """What became of an object."""

    WOULD = "would be cleaned"
    CLEANED = "cleaned"
    HELD = "left: it is being deleted, and kopf's finalizer may guard something outside"
    GONE = "gone meanwhile"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One object that has, or had, marks of kopf."""

    kind: Kind
    key: ObjectKey
    traces: Traces
    state: CleaningState
    problem: str = ""


@dataclass(slots=True)
class Cleaning:
    """How objects are cleaned.

    Args:
        marks: by what names kopf marked them.
        write: do it; False: the server is asked nothing but what there is.
        release: also take the finalizer off objects that are being deleted: what it guards stays behind.
        timeout: of each request, in seconds.
    """

    reader: Reader
    marks: Marks = field(default_factory=Marks)
    write: bool = False
    release: bool = False
    timeout: float = 10.0
    clock: Clock = SYSTEM_CLOCK

    async def objects(self, kind: Kind) -> AsyncIterator[tuple[int, Cleaned | None]]:
        """Each object of a kind in turn: how many were looked at, and what became of it; None: it has no marks.

        Read page by page, and cleaned before the next page is asked for. A list that took longer than the server
        remembers begins anew: what is clean by then costs nothing but the reading.

        Raises:
            NotAllowed, KindNotFound, ApiError, TransportError: the list could not be read.
        """
        resource = await self.reader.resource(kind)
        seen = 0
        for where in self.reader.namespaces if resource.namespaced and self.reader.namespaces else ("",):
            async for obj in self._listed(resource, where):
                seen += 1
                traces = traces_of(obj, self.marks)
                yield seen, await self._object(resource, obj, traces) if traces else None

    async def _listed(self, resource: ResourceInfo, where: str) -> AsyncIterator[Object]:
        token, done = "", set[str]()
        while True:
            request = build.list_page(resource, where, limit=PAGE_SIZE, continue_token=token)
            try:
                page = decode_list((await self.reader.send(request)).body, resource.kind)
            except Expired:
                if not token:
                    raise
                token = ""
                continue
            for item in page.items:
                obj = json_object(bytes(item))
                uid = str((obj.get("metadata") or {}).get("uid"))
                if uid not in done:
                    done.add(uid)
                    yield obj
            token = page.continue_token
            if not token:
                return

    async def _object(self, resource: ResourceInfo, obj: Object, traces: Traces) -> Cleaned:
        key = ObjectKey(namespace(obj), name(obj))
        held = traces.guards and not self.release
        if not self.write or (held and not (traces.annotations or traces.status)):
            return Cleaned(resource.kind, key, traces, CleaningState.HELD if held else CleaningState.WOULD)
        try:
            state = await self._clean(resource, key, traces)
        except (NotAllowed, KopyliteError) as error:
            return Cleaned(resource.kind, key, traces, CleaningState.FAILED, str(error))
        return Cleaned(resource.kind, key, traces, state)

    async def _clean(self, resource: ResourceInfo, key: ObjectKey, first: Traces) -> CleaningState:
        """Take the marks off, looking again whenever somebody wrote in between, or an answer was lost."""
        current, failure = first, None
        for attempt in range(TRIES):
            if attempt:
                await self.clock.sleep(PAUSE * self.clock.random() * attempt)
            try:
                if attempt:
                    found = await self.reader.find(resource.kind, key.name, key.namespace)
                    current = traces_of(found, self.marks) if found else Traces()
                if current.uid != first.uid:
                    return CleaningState.GONE
                held = current.guards and not self.release
                if not current or (held and not current.annotations and not current.status):
                    return CleaningState.HELD if held else CleaningState.CLEANED
                if patch := status_patch(current):
                    current = await self._patched(resource, key, patch, "status")
                if patch := object_patch(current, release=not held):
                    current = await self._patched(resource, key, patch, None)
                return CleaningState.HELD if current.guards and not self.release else CleaningState.CLEANED
            except NotFound:
                return CleaningState.GONE
            except (Conflict, TransportError) as error:
                failure = error
        assert failure is not None
        raise failure

    async def _patched(
        self, resource: ResourceInfo, key: ObjectKey, patch: dict[str, Any], subresource: str | None
    ) -> Traces:
        """Send a patch; what is left of kopf in the object then. A kind without the sub-resource has it in itself."""
        body, options = json.dumps(patch).encode(), WriteOptions(field_manager=MANAGER)
        try:
            answer = await self._send(build.patch(resource, key, body, "merge", subresource, options))
        except NotFound:
            if subresource is None or await self.reader.find(resource.kind, key.name, key.namespace) is None:
                raise
            answer = await self._send(build.patch(resource, key, body, "merge", None, options))
        return traces_of(answer, self.marks)

    async def _send(self, request: ApiRequest) -> Object:
        return json_object((await self.reader.send(request)).body)


def totals(found: Sequence[Cleaned]) -> str:
    """How many became what."""
    counts = {state: sum(each.state is state for each in found) for state in CleaningState}
    return "; ".join(f"{count} {state.partition(':')[0]}" for state, count in counts.items() if count) or "nothing"
