"""HotLoops: notices runs that cause each other without end, and names the field that keeps them going.

The usual causes: a status that holds the time of the reconcile, so that each run causes the next; and two controllers
that disagree about a field. Both look like a busy operator until somebody says which field it is.

It is judged by what runs cause, not by how fast objects change: a loop over many objects, on a slow server, or with
stamps of whole seconds changes each object seldom; a rollout changes one often, and is none. A run counts when it
and ten before it in a row were caused by such runs' own writes alone, and each changed again what it had changed before
(see `ChainLink.depth`). Of that, a controller's share of all its runs decides.

Pure: runs, changes and their times go in, sentences come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from kopylite.boundary import printable
from kopylite.cache import Record
from kopylite.objects import Kind
from kopylite.reconcile.chains import ChainLink
from kopylite.troubleshooting import Trouble

# A status converges in one run or two; a procedure of steps that each write the same object has five or six. A run of
# a longer chain counts.
DEPTH = 10
# From here on it is looked at what changes, so that there are samples when there is something to tell.
SUSPICIOUS = 6
# Runs that count before anything is told, and their share of all runs of the controller.
LEAST = 15
SHARE = 0.3
# All runs are counted by so many at a time: what was before fades.
WINDOW = 100
# A chain of such a length is a loop, however small its share of a busy controller is.
CERTAIN = 100
# The same where each run creates or deletes something, too: a procedure may have hundreds of objects to make.
CERTAIN_PROGRESS = 1000
# Told runs without a field wait for samples, until there are so many.
PATIENCE = 3 * LEAST
# A loop has ended when no run counted for so long, and for three times as long as between the last two.
OVER_SECONDS = 60.0
# What is longer than this is no pause between two runs of one loop.
LONGEST_PAUSE = 600.0

# Objects that are looked at, per controller, and how many of their changes: enough to see values come back.
SUSPECTS = 8
SAMPLES = 8
# Differences that are looked at in one change.
MAX_PATHS = 50
MAX_VALUE = 40
MAX_PATH = 200
MISSING = "nothing"


class _Suspect(msgspec.Struct):
    """A changing object under the glass: how often each path changed, and to which values."""

    name: str = ""
    version: str = ""
    samples: int = 0
    paths: Counter[str] = msgspec.field(default_factory=Counter)
    values: dict[str, list[str]] = msgspec.field(default_factory=dict)


class ControllerLoops:
    """Counts the runs of one controller.

    Args:
        name: of the controller.
        suspects: where the objects go that are to be looked at; shared by all.
        others: all controllers, by name.
    """

    __slots__ = (
        "_before",
        "_others",
        "_own",
        "_partner",
        "_pause",
        "_steps",
        "_suspects",
        "_told",
        "last",
        "name",
        "runs",
        "steps",
    )

    def __init__(self, name: str, suspects: dict[str, _Suspect], others: dict[str, ControllerLoops]) -> None:
        self.name = name
        self._others = others
        self.runs = 0
        # Runs that count, in all and of `runs`.
        self.steps = 0
        self._steps = 0
        self._suspects = suspects
        self._own: dict[str, None] = {}
        self._partner = ""
        self._told = False
        self.last = 0.0
        self._pause = 0.0
        self._before = 0.0

    def ran(self, step: ChainLink | None, now: float) -> str | None:
        """Count one run; returns what is to be told, once per loop. The hot path: nearly all runs write nothing."""
        self.runs += 1
        if self.runs >= WINDOW:
            self.runs //= 2
            self._steps //= 2
        if step is None or (step.depth < SUSPICIOUS and step.length < CERTAIN_PROGRESS):
            return None
        self._suspect(step)
        self._pause = now - self._before if now - self._before <= LONGEST_PAUSE else 0.0
        self._before = now
        if (step.progress or step.depth < DEPTH) and step.length < CERTAIN_PROGRESS:
            return None
        self._steps += 1
        self.steps += 1
        self.last = now
        self._partner = step.partner or self._partner
        certain = step.depth >= CERTAIN or step.length >= CERTAIN_PROGRESS
        if self._told or not (certain or (self._steps >= LEAST and self._steps >= SHARE * self.runs)):
            return None
        found = [self._suspects[uid] for uid in self._own if uid in self._suspects]
        seen = max(found, key=lambda one: one.samples, default=_Suspect())
        if seen.samples < 2 and self.steps < PATIENCE and not certain:
            return None
        self._told = True
        if self._partner in self._others:
            self._others[self._partner]._told = True  # it is named, and that is enough
        self._release()
        return self._report(seen)

    def over(self, now: float) -> str | None:
        """What is to be told of a loop that has ended since."""
        if not self.last or now - self.last < max(OVER_SECONDS, 3 * self._pause):
            return None
        told, steps = self._told, self.steps
        self._release()
        self._told, self.last, self.steps, self._steps, self._partner = False, 0.0, 0, 0, ""
        return f"the hot loop of controller {self.name} has ended, after {steps} runs" if told else None

    def _suspect(self, step: ChainLink) -> None:
        if self._told:
            return
        for cause in step.causes:
            if cause.uid not in self._own and len(self._own) < SUSPECTS:
                self._own[cause.uid] = None
                self._suspects.setdefault(cause.uid, _Suspect())

    def _release(self) -> None:
        for uid in self._own:
            self._suspects.pop(uid, None)
        self._own.clear()

    def _report(self, seen: _Suspect) -> str:
        others = f" and those of controller {self._partner}" if self._partner else ""
        example = f"; for example {seen.name}: {_fields(seen)}" if seen.name else ""
        return (
            f"hot loop: {self._steps} of the last {self.runs} runs of controller {self.name} were caused by nothing "
            f"but its own writes{others}, and wrote again{example}. Write only when something else has changed, and no "
            f"time or counter that is new in each run. See {Trouble.HOT_LOOP}"
        )


class HotLoops:
    """The loops of all controllers of a process. Memory is bounded by the number of controllers."""

    __slots__ = ("_controllers", "_suspects")

    def __init__(self) -> None:
        self._suspects: dict[str, _Suspect] = {}
        self._controllers: dict[str, ControllerLoops] = {}

    def controller(self, name: str) -> ControllerLoops:
        """The counter of a controller."""
        return self._controllers.setdefault(name, ControllerLoops(name, self._suspects, self._controllers))

    def changed(self, kind: Kind, old: Record, new: Record) -> None:
        """Look at one change, if its object is a suspect. The hot path: nearly none is."""
        suspect = self._suspects.get(new.uid) if self._suspects else None
        if suspect is None or suspect.samples >= SAMPLES or suspect.version == new.resource_version:
            return
        suspect.name, suspect.version = f"{kind.kind} {new.key}", new.resource_version
        _examine(suspect, old, new, secret=kind.kind == "Secret")

    def over(self, now: float) -> Iterator[str]:
        """What is to be told of loops that have ended. To be asked every few seconds."""
        for controller in self._controllers.values():
            if (text := controller.over(now)) is not None:
                yield text


def _examine(suspect: _Suspect, old: Record, new: Record, *, secret: bool) -> None:
    suspect.samples += 1
    try:
        changes = [*islice(differences(msgspec.json.decode(old.body), msgspec.json.decode(new.body)), MAX_PATHS)]
    except Exception:  # too deep for the decoder, or for us; the loop is told of without its field
        return
    for path, value in changes:
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


def _fields(suspect: _Suspect) -> str:
    fields = []
    for path, times in suspect.paths.most_common(3):
        values, name = suspect.values[path], printable(path, MAX_PATH)
        if len(set(values)) <= times / 2:
            fields.append(f"{name} goes back and forth ({' → '.join(values[:4])}): two writers disagree about it")
        else:
            fields.append(f"{name} is new each time ({' → '.join(values[:3])})")
    return "; ".join(fields) or "no field of it differs"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return printable(text, MAX_VALUE)
