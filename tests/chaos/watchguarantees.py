"""What an informer has to deliver of a server's history: the nine watch guarantees that etcd tests itself for.

Its robustness tests check that a watch is ordered, unique, atomic, reliable, resumable, bookmarkable, filtered, and
right about what is new and what was before. Here they are asked of an informer, which may list again in between: then
it skips history, and what it tells has to lead from what it told before to what it lists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.storage.history import DELETED, StoredChange, StoredObject
from kopylite.cache import Delta, Informer
from kopylite.cache.record import Record
from kopylite.cache.steps import Replacement


@dataclass
class Told:
    """One delta, and the version that the informer had promised before it."""

    delta: Delta
    floor: int

    @property
    def name(self) -> str:
        record = self.delta.new or self.delta.old
        assert record is not None
        return record.name

    @property
    def version(self) -> int:
        record = self.delta.new or self.delta.old
        assert record is not None
        return int(record.resource_version)


@dataclass
class Segment:
    """What was told from one list to the next: by the list, and then by watches.

    Attributes:
        begin: the version of the list.
        end: up to which version everything was told, by events and bookmarks.
    """

    begin: int
    listed: list[Told] = field(default_factory=list)
    streamed: list[Told] = field(default_factory=list)
    end: int = 0


class Witness:
    """Writes down what an informer is told, what it tells, and what it promises."""

    def __init__(self, informer: Informer, label: str = "") -> None:
        self.informer, self.label = informer, label
        self.segments: list[Segment] = []
        self._listing = False
        self._replace, self._advanced = informer.replace, informer.advanced
        informer.replace, informer.advanced = self.replace, self.advanced  # type: ignore[method-assign]
        informer.add_handler(self.handle)

    async def replace(self, snapshot: Replacement) -> None:
        self.segments.append(Segment(int(snapshot.version), end=int(snapshot.version)))
        self._listing = True
        await self._replace(snapshot)
        self._listing = False

    def advanced(self, version: str) -> None:
        assert int(version) >= self.segments[-1].end, "bookmarkable: the version goes back"
        self.segments[-1].end = int(version)
        self._advanced(version)

    def handle(self, delta: Delta) -> None:
        segment = self.segments[-1]
        (segment.listed if self._listing else segment.streamed).append(Told(delta, segment.end))

    def check(self, history: list[StoredChange]) -> None:
        """All nine. Raises AssertionError."""
        known: dict[str, Record] = {}
        for segment in self.segments:
            self._check_list(segment, known, history)
            self._check_stream(segment, known, history)

    def matches(self, stored: StoredObject | None) -> bool:
        return stored is not None and (not self.label or (stored.labels or {}).get("watched") == self.label)

    def _check_list(self, segment: Segment, known: dict[str, Record], history: list[StoredChange]) -> None:
        """From what was told before to the state at the version of the list."""
        told = {(each.name, each.delta.new is None) for each in segment.listed}  # one made anew: its end, and the next
        assert len(told) == len(segment.listed), "unique: a list tells of an object twice"
        for each in segment.listed:
            self._apply(each, known)
        present = {name: stored for name, stored in state_at(history, segment.begin).items() if self.matches(stored)}
        assert {name: int(record.resource_version) for name, record in known.items()} == {
            name: stored.version for name, stored in present.items()
        }, "reliable: after a list, what was told is not what there was"

    def _check_stream(self, segment: Segment, known: dict[str, Record], history: list[StoredChange]) -> None:
        """Each change since the list that concerns the informer, once and in order, and nothing else."""
        expected = [c for c in history if segment.begin < c.version <= segment.end and self._concerns(c)]
        versions = [each.version for each in segment.streamed]
        assert versions == sorted(versions), "ordered: an older change was told after a newer one"
        assert len(versions) == len(set(versions)), "unique: a change was told twice"
        assert versions == [change.version for change in expected], "reliable, filtered: told is not what happened"
        for each, change in zip(segment.streamed, expected, strict=True):
            assert each.version > each.floor, "bookmarkable: a change was told after it was promised that all was told"
            gone = change.type == DELETED or not self.matches(change.record)
            assert (each.delta.new is None) == gone, "filtered: what leaves the selection is a delete"
            assert (each.delta.old is None) == (not self.matches(change.previous)), "created: news, or a change?"
            self._apply(each, known)
            if each.delta.new is not None:
                assert body_of(each.delta.new) == body_of(change.record), "atomic: it is not what was written"

    def _apply(self, each: Told, known: dict[str, Record]) -> None:
        """`old` has to be what was told before."""
        before, delta = known.get(each.name), each.delta
        if delta.new is not None:
            assert (before and before.resource_version) == (delta.old and delta.old.resource_version), "previous"
            assert before is None or int(before.resource_version) < each.version, "unique: nothing new"
            known[each.name] = delta.new
        else:
            assert before is not None, "previous: the end of what nobody was told of"
            del known[each.name]

    def _concerns(self, change: StoredChange) -> bool:
        now = change.type != DELETED and self.matches(change.record)
        return now or self.matches(change.previous)


def state_at(history: list[StoredChange], version: int) -> dict[str, StoredObject]:
    """What there was."""
    found: dict[str, StoredObject] = {}
    for change in history:
        if change.version > version:
            break
        if change.type == DELETED:
            found.pop(change.record.name, None)
        else:
            found[change.record.name] = change.record
    return found


def body_of(obj: Record | StoredObject) -> dict[str, Any]:
    """As it was written, but for what a cache leaves out."""
    body: dict[str, Any] = json.loads(obj.body)
    body["metadata"].pop("managedFields", None)
    return {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
