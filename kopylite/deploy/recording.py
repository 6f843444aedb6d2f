"""Recording: the calls that operators made while their tests ran, as a file that is kept beside the code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kopylite.deploy.calls import ApiCall
from kopylite.errors import UsageError
from kopylite.wholefiles import write_whole

VERSION = 1
_FIELDS = ("group", "resource", "verb", "namespace")
# Whose specs nobody can change.
_DONE_ONCE = {("", "pods"), ("batch", "jobs"), ("", "events"), ("events.k8s.io", "events")}


class Recording:
    """Which App made which calls. Small: each call is held once."""

    def __init__(self, calls: Mapping[str, Iterable[ApiCall]] | None = None) -> None:
        self._calls: dict[str, set[ApiCall]] = {app: set(made) for app, made in (calls or {}).items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recording) and self._calls == other._calls

    __hash__ = None  # type: ignore[assignment]  # it grows

    def note(self, app: str, calls: Iterable[ApiCall]) -> None:
        """Add calls of an App."""
        self._calls.setdefault(app, set()).update(calls)

    def merge(self, other: Recording) -> None:
        """Add all that another one holds."""
        for app, calls in other._calls.items():
            self.note(app, calls)

    def of(self, app: str) -> frozenset[ApiCall]:
        """The calls of an App; none if it was not recorded."""
        return frozenset(self._calls.get(app, ()))

    def never_changed(self, app: str) -> list[str]:
        """The resources that an App creates, and never changes: tests that do not go so far look like this."""
        calls = self.of(app)
        changed = {(call.group, call.resource) for call in calls if call.verb in ("update", "patch")}
        made = {(call.group, call.resource) for call in calls if call.verb == "create"}
        return sorted(resource for group, resource in made - changed - _DONE_ONCE if "/" not in resource)

    @property
    def apps(self) -> list[str]:
        return sorted(self._calls)

    def to_wire(self) -> dict[str, Any]:
        """As JSON has it; the same for the same calls."""
        apps = {app: [_wire(call) for call in sorted(calls)] for app, calls in sorted(self._calls.items())}
        return {"kopyliteRecording": VERSION, "apps": apps}

    @classmethod
    def of_wire(cls, wire: Any, where: str) -> Recording:
        """Read what `to_wire` wrote.

        Raises:
            UsageError: it is no recording; names `where` it came from.
        """
        try:
            if wire["kopyliteRecording"] != VERSION:
                raise UsageError(f"{where} is a recording of another version of kopylite; record it anew")
            return cls({app: {_call(entry) for entry in calls} for app, calls in wire["apps"].items()})
        except (KeyError, TypeError, AttributeError, ValueError):
            raise UsageError(
                f"{where} is no recording of calls: make one by `pytest --kopylite-rbac FILE`, or `kopylite run "
                "--record-rbac FILE`"
            ) from None

    @classmethod
    def read(cls, path: Path) -> Recording:
        """The recording in a file.

        Raises:
            UsageError: it cannot be read, or is none.
        """
        try:
            wire = json.loads(path.read_bytes())
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError):
            wire = None
        return cls.of_wire(wire, str(path))

    def add_to(self, path: Path) -> None:
        """Write it, together with what the file holds already: a run of some tests forgets nothing.

        Raises:
            UsageError: the file is something else, or cannot be written.
        """
        everything = Recording.read(path) if path.exists() else Recording()
        everything.merge(self)
        text = json.dumps(everything.to_wire(), indent=1) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_whole(path, text)


def _wire(call: ApiCall) -> dict[str, str]:
    wire = {field: getattr(call, field) for field in _FIELDS}
    return {**wire, "name": call.name} if call.name else wire


def _call(entry: Any) -> ApiCall:
    values = [*(entry[field] for field in _FIELDS), entry.get("name", "")]
    if not all(isinstance(value, str) for value in values) or not values[1] or not values[2]:
        raise ValueError(entry)
    return ApiCall(*values)
