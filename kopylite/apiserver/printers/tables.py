"""Tables: what `kubectl get` shows. Cells are computed here, ages included, as the real server does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kopylite.apiserver.resources.registry import Column, Resource

_SECOND, _MINUTE, _HOUR, _DAY, _YEAR = 1, 60, 3600, 86400, 365 * 86400


class Since(str):
    """A cell that is a time stamp and is shown as the time since then, in the place that `form` has for it."""

    form = "{}"


def name_cell(obj: dict[str, Any]) -> Any:
    return obj.get("metadata", {}).get("name", "")


def age_cell(obj: dict[str, Any]) -> Any:
    return Since(obj.get("metadata", {}).get("creationTimestamp", ""))


def created_cell(obj: dict[str, Any]) -> Any:
    return obj.get("metadata", {}).get("creationTimestamp")


_HIDDEN = {
    "daemonsets.apps": "deprecated.daemonset.template.generation",
    "horizontalpodautoscalers.autoscaling": "autoscaling.alpha.kubernetes.io/current-metrics",
}
NAME = Column("Name", "string", name_cell, "name")
AGE = Column("Age", "string", age_cell)
# What upstream shows of kinds without a printer of their own.
DEFAULT_COLUMNS = (NAME, Column("Created At", "date", created_cell))


class TableView:
    """The Table form of one resource.

    Args:
        version: of meta.k8s.io.
        include_object: what comes with each row: None, Metadata or Object.
        now: the moment that ages are counted from.
        texts: what describes a column that does not describe itself, by its name.
    """

    def __init__(
        self, resource: Resource, version: str, include_object: str, now: datetime, texts: Mapping[str, str]
    ) -> None:
        self._columns = resource.columns or DEFAULT_COLUMNS
        # Built-ins show the stamp itself in a column of type date, custom resources the time since.
        self._dates_are_ages = resource.custom
        self._api_version = f"meta.k8s.io/{version}"
        self._include_object = include_object
        self._now = now
        self._texts = texts
        self._hides = _HIDDEN.get(resource.storage, "")

    def table(
        self, objects: list[dict[str, Any]], list_metadata: dict[str, Any], *, definitions: bool = True
    ) -> dict[str, Any]:
        """A Table with a row for each object; `definitions` False: without column definitions, as in later events."""
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": list_metadata,
            **self.columns(definitions=definitions),
            "rows": [self.row(obj) for obj in objects],
        }

    def columns(self, *, definitions: bool = True) -> dict[str, Any]:
        """What a Table says of its columns."""
        return {"columnDefinitions": self._definitions() if definitions else None}

    def single(self, obj: dict[str, Any], *, definitions: bool = True) -> dict[str, Any]:
        """The Table of one object, as GET, writes and watch events give it."""
        version = obj.get("metadata", {}).get("resourceVersion", "")
        return self.table([obj], {"resourceVersion": version}, definitions=definitions)

    def _definitions(self) -> list[dict[str, Any]]:
        return [
            {
                "name": c.name,
                "type": c.type,
                "format": c.format,
                "description": c.description or self._texts.get(c.name, ""),
                "priority": c.priority,
            }
            for c in self._columns
        ]

    def row(self, obj: dict[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {"cells": [self._cell(column, obj) for column in self._columns]}
        if self._include_object == "Object":
            row["object"] = obj
        else:
            none = self._include_object == "None"
            row["object"] = None if none else partial_metadata(self._without_hidden(obj), self._api_version)
        return row

    def _without_hidden(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object without the annotation that stands for a field of another version, which rows do not have."""
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        if not self._hides or self._hides not in annotations:
            return obj
        kept = {name: text for name, text in annotations.items() if name != self._hides}
        metadata = {k: v for k, v in obj["metadata"].items() if k != "annotations"}
        return {**obj, "metadata": {**metadata, **({"annotations": kept} if kept else {})}}

    def _cell(self, column: Column, obj: dict[str, Any]) -> Any:
        value = column.cell(obj)
        if isinstance(value, Since):
            return value.form.format(age(value, self._now))
        if column.type == "date" and self._dates_are_ages:
            return age(value, self._now) if value is not None else None
        return value


def partial_metadata(obj: dict[str, Any], api_version: str) -> dict[str, Any]:
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj.get("metadata", {})}


def age(stamp: Any, now: datetime) -> str:
    """Time since an RFC 3339 stamp in kubectl's short form; `<unknown>` of what is no stamp."""
    if not stamp or not isinstance(stamp, str):
        return "<unknown>"
    try:
        then = datetime.fromisoformat(stamp)
    except ValueError:
        return "<invalid>"
    return short_duration((now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds())


def short_duration(exact: float) -> str:
    """A span in at most two units, as `duration.HumanDuration`: 45s, 2m30s, 5h, 3d4h, 2y10d."""
    if exact < -1:
        return "<invalid>"
    seconds = max(0, int(exact))
    minutes, hours, days, years = (seconds // unit for unit in (_MINUTE, _HOUR, _DAY, _YEAR))
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % _MINUTE, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 8 * 24:
        return _pair(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _pair(years, "y", days % 365, "d")
    return f"{years}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"
