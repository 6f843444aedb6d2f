"""Validation of Event in both groups. Pure.

Errors name the fields of the core group's form, whichever was sent.
"""

from __future__ import annotations

from collections.abc import Mapping

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import invalid, required
from kopylite.apiserver.schema.names import label_key_errors, subdomain_errors

_LONGEST, _LONGEST_NOTE = 128, 1024
_NEW = {
    "involvedObject": "regarding", "reason": "reason", "message": "note", "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp", "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount", "type": "type", "eventTime": "eventTime", "action": "action", "related": "related",
    "reportingController": "reportingController", "reportingInstance": "reportingInstance",
}  # fmt: skip
_CORE = {"reportingController": "reportingComponent"}


def core_event(obj: Object) -> Errors:
    return _any_event(obj, _CORE, "reportingComponent")


def _event(obj: Object) -> Errors:
    return _any_event(obj, _NEW, "reportingController")


def _any_event(obj: Object, names: Mapping[str, str], controller_field: str) -> Errors:
    """What both forms have in common. Args: names: of the fields that this form calls otherwise."""

    def value(field: str) -> str:
        return str(obj.get(names.get(field, field)) or "")

    space = obj["metadata"].get("namespace", "")
    involved = (obj.get(names.get("involvedObject", "involvedObject")) or {}).get("namespace", "")
    mismatch = [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    if not obj.get("eventTime"):
        return [] if space == (involved or "default") or not (space or involved) else mismatch
    found: Errors = [] if involved or space in ("default", "kube-system") else mismatch
    controller = value("reportingController")
    found += [] if controller else [required(controller_field)]
    found += checks.texts(controller_field, controller, label_key_errors(controller))
    for field in ("reportingInstance", "action", "reason"):
        found += [] if value(field) else [required(field)]
        if len(value(field).encode()) > _LONGEST:
            found.append(invalid(field, "", f"can have at most {_LONGEST} characters"))
    if len(value("message").encode()) > _LONGEST_NOTE:
        found.append(invalid("message", "", f"can have at most {_LONGEST_NOTE} characters"))
    return found


def new_event(obj: Object) -> Errors:
    """Of events.k8s.io."""
    found, name = _event(obj), obj["metadata"].get("name", "")
    found += checks.texts("metadata.name", name, subdomain_errors(name)) if name else []
    found += _series(obj)
    if not obj.get("eventTime"):
        found.append(required("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        found.append(invalid("type", "", f"has invalid value: {obj.get('type', '')}"))
    source = obj.get("deprecatedSource") or {}
    deprecated = {field: obj.get(_NEW[field]) for field in ("firstTimestamp", "lastTimestamp", "count")}
    deprecated["source"] = source.get("component") or source.get("host")
    return found + [invalid(field, "", "needs to be unset") for field, value in deprecated.items() if value]


def _series(obj: Object) -> Errors:
    series = obj.get("series")
    if series is None:
        return []
    found: Errors = []
    if (series.get("count") or 0) < 2:
        found.append(invalid("series.count", "", "should be at least 2"))
    return found if series.get("lastObservedTime") else [*found, required("series.lastObservedTime")]


def update_event(new: Object, old: Object) -> Errors:
    """Only the series of an event goes on."""
    found = _event(new) + (_series(new) if new.get("series") != old.get("series") else [])
    for shown, field in _NEW.items():
        found += checks.immutable(shown, new.get(field), old.get(field))
    return found
