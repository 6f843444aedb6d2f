"""Parts of objects as the server tells them, whatever is there: what has another shape counts as absent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Object = Mapping[str, Any]


def part(value: object, *path: str) -> Any:
    """What lies at a path of maps, or None."""
    for step in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def mapping(value: object, *path: str) -> Object:
    """The map at a path; an empty one if there is none."""
    found = part(value, *path)
    return found if isinstance(found, Mapping) else {}


def maps(value: object, *path: str) -> list[Object]:
    """The maps in the list at a path."""
    found = part(value, *path)
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def texts(value: object, *path: str) -> list[str]:
    """The texts in the list at a path."""
    found = part(value, *path)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def text(value: object, *path: str) -> str:
    """The text at a path; "" if there is none."""
    found = part(value, *path)
    return found if isinstance(found, str) else ""


def number(value: object, *path: str) -> int | None:
    """The whole number at a path."""
    found = part(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def moment(value: str) -> datetime | None:
    """A time as the API writes it."""
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def age(value: str, now: datetime) -> float | None:
    """Seconds since a time of the API; negative for one to come; None: it is none."""
    found = moment(value)
    return None if found is None else (now - found).total_seconds()


def name(obj: object) -> str:
    return text(obj, "metadata", "name")


def namespace(obj: object) -> str:
    return text(obj, "metadata", "namespace")


def title(obj: object, kind: str = "") -> str:
    """An object for people: "Service shop/web"."""
    where = f"{namespace(obj)}/" if namespace(obj) else ""
    return f"{kind or text(obj, 'kind')} {where}{name(obj)}"


def conditions(obj: object) -> Iterator[tuple[str, str, str, str]]:
    """Type, status, reason and message of each condition of a status."""
    for each in maps(obj, "status", "conditions"):
        yield text(each, "type"), text(each, "status"), text(each, "reason"), text(each, "message")


def span(seconds: float) -> str:
    """A time span for people."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
