"""HotLoops: notices an object that changes without end, and names the field that does.

The usual causes: a status that holds the time of the reconcile, so that each run causes the next; and two writers
that disagree about a field. Both look like a busy operator until somebody says which field it is.

Pure: changes and their times go in, a sentence comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kopylite.cache import Record
from kopylite.objects import Kind

# Ten changes a second, sustained: more than the rollout of a big Deployment, less than any loop without a brake.
CHANGES = 100
WINDOW_SECONDS = 10.0
# Changes that are looked into before the report: enough to see values come back.
SAMPLES = 8
# One object is reported once in this time.
QUIET_SECONDS = 300.0

MAX_VALUE = 40
MISSING = "nothing"


@dataclass(slots=True)
class _Suspect:
    """A changing object under the glass: how often each path changed, and to which values."""

    samples: int = 0
    paths: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[str]] = field(default_factory=dict)


class HotLoops:
    """Counts the changes of the objects of one kind. Memory is bounded by how many change within ten seconds."""

    __slots__ = ("_counts", "_kind", "_quiet_until", "_suspects", "_window_began")

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._window_began = 0.0
        # By uid: its hash is made only once.
        self._counts: dict[str, int] = {}
        self._suspects: dict[str, _Suspect] = {}
        self._quiet_until: dict[str, float] = {}

    def changed(self, old: Record, new: Record, now: float) -> str | None:
        """Count one change; returns the report when it is time for one. The hot path: nearly all end at `CHANGES`."""
        if now - self._window_began > WINDOW_SECONDS:
            self._begin_window(now)
        uid = new.uid
        count = self._counts.get(uid, 0) + 1
        self._counts[uid] = count
        if count <= CHANGES or uid in self._quiet_until:
            return None
        suspect = self._suspects.setdefault(uid, _Suspect())
        _examine(suspect, old, new, secret=self._kind.kind == "Secret")
        if suspect.samples < SAMPLES:
            return None
        self._quiet_until[uid] = now + QUIET_SECONDS
        del self._suspects[uid]
        return _report(f"{self._kind.kind} {new.key}", count, now - self._window_began, suspect)

    def _begin_window(self, now: float) -> None:
        self._window_began = now
        self._counts.clear()
        self._suspects.clear()
        self._quiet_until = {uid: until for uid, until in self._quiet_until.items() if until > now}


def _examine(suspect: _Suspect, old: Record, new: Record, *, secret: bool) -> None:
    suspect.samples += 1
    for path, value in differences(msgspec.json.decode(old.body), msgspec.json.decode(new.body)):
        suspect.paths[path] += 1
        suspect.values.setdefault(path, []).append("…" if secret else _short(value))


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The paths at which two objects differ, with the new values; without what changes at every write."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            inner = f"{path}.{name}" if path else name
            if inner not in ("metadata.resourceVersion", "metadata.generation"):
                yield from differences(old.get(name, MISSING), new.get(name, MISSING), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield path, new


def _report(name: str, count: int, seconds: float, suspect: _Suspect) -> str:
    fields = []
    for path, times in suspect.paths.most_common(3):
        values = suspect.values[path]
        if len(set(values)) <= times / 2:
            fields.append(f"{path} goes back and forth ({' → '.join(values[:4])}): two writers disagree about it")
        else:
            fields.append(f"{path} is new each time ({' → '.join(values[:3])})")
    return (
        f"hot loop: {name} changed {count} times in {seconds:.1f} s. "
        f"{'; '.join(fields) or 'No field differs'}. If this operator writes that, it should write it only when "
        "something else has changed"
    )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
