"""Make the answers of two servers comparable: what is random or a matter of time becomes a name for itself.

Values are replaced, never dropped, except what a step says is not to be compared: a uid that is missing still differs
from one that is there.

- A uid gets a number, in the order of the script's answers.
- The resourceVersions of objects and events get their rank among all that the script saw, so their order stays.
- That of a list or a bookmark depends on what others write meanwhile; it says only whether it is at least as new as
  every object seen so far, and, with a continue token, whether it is that of the page before.
- Times of the day of the run get the number of their decimals; other times are data and stay.
- Entries of managedFields are sorted by name, with a note whether they were in their order, which depends on time.
- The namespace gets one name.
"""

from __future__ import annotations

import copy
import json
import re
from datetime import UTC, datetime
from typing import Any

from tests.conformance.likeness.player import Answer
from tests.conformance.likeness.script import Step

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?Z")
# What generateName appends, and the server to the volume with a pod's token; base names in the corpus end with "gen-".
SUFFIX = re.compile(r"(gen|kube-api-access)-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
# Texts that quote resourceVersions.
QUOTED_VERSIONS = re.compile(
    r'(?i)(resource ?version|current|record|precondition)(: | \(|\\*":\\*")(\d+)(?: \((\d+)\))?'
)
# Of the store, in errors about what it holds.
REVISION = re.compile(r"revision=\d+")
AGE = re.compile(r"(?:\d+[smhd])+|<invalid>")
DAY_SECONDS = 86400
VERSION = "resourceVersion"


class Normaliser:
    """For the answers of one script from one server."""

    def __init__(self, answers: list[Answer], namespace: str) -> None:
        found: set[int] = set()
        for answer in answers:
            _collect_versions(answer.body, found)
        self._ranks = {str(version): f"<rv {rank}>" for rank, version in enumerate(sorted(found))}
        self._namespace = namespace
        self._uids: dict[str, str] = {}
        self._newest = 0
        self._page = ""
        self._asked = ""
        self._now = datetime.now(UTC)

    def __call__(self, step: Step, answer: Answer) -> dict[str, Any]:
        """The comparable form of an answer. To be called in the order of the steps."""
        self._asked = f"{step.path} {step.body}"
        body = _pointed(copy.deepcopy(answer.body), step.part)
        self._lists(step, body)
        for path in step.ignore:
            _drop(body, path.split("."))
        body = self._value("", body)
        for path in step.unordered:
            _sort(body, path.split("."))
        return {
            "code": answer.code,
            "headers": {name: [self._text(v) for v in values] for name, values in answer.headers.items()},
            "body": _without(body, step.without),
            "failure": answer.failure,
        }

    def _lists(self, step: Step, body: Any) -> None:
        """Name the versions of lists and bookmarks, and note those of objects."""
        for document in body if isinstance(body, list) else [body]:
            if not isinstance(document, dict):
                continue
            obj = document.get("object") if "type" in document else document
            if not isinstance(obj, dict):
                continue
            if not _is_collection(document, obj):
                found: set[int] = set()
                _collect_versions(obj, found)
                self._newest = max(self._newest, *found, 0)
                continue
            for item in () if document.get("type") == "BOOKMARK" else obj.get("items") or obj.get("rows") or ():
                found = set()
                _collect_versions(item, found)
                self._newest = max(self._newest, *found, 0)
            self._name_list_version(step, obj)
            if document.get("type") == "BOOKMARK":
                for row in obj.get("rows") or ():
                    self._name_list_version(step, row["object"])

    def _name_list_version(self, step: Step, obj: dict[str, Any]) -> None:
        metadata = obj.get("metadata")
        version = metadata.get(VERSION) if isinstance(metadata, dict) else None
        if not isinstance(version, str) or not version.isdigit():
            return
        assert isinstance(metadata, dict)
        if "continue=" in step.path:
            metadata[VERSION] = "<that of the page before>" if version == self._page else "<another>"
        else:
            metadata[VERSION] = "<new>" if int(version) >= self._newest else "<old>"
        self._page = version

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            # Sorted: two servers may write the fields of an object in different orders.
            return {self._text(name): self._value(name, value[name]) for name in sorted(value)}
        if isinstance(value, list) and key == "managedFields":
            return self._managers(value)
        if isinstance(value, list):
            return [self._cell(v) if key == "cells" else self._value("", v) for v in value]
        if isinstance(value, str):
            if key == VERSION:
                return self._ranks.get(value, value)
            return "<continue>" if key == "continue" and value else self._text(value)
        return value

    def _managers(self, entries: list[Any]) -> list[Any]:
        """By name, and whether they were in the order that upstream puts them in, which depends on their seconds."""
        plain = [self._value("", entry) for entry in sorted(entries, key=lambda e: _manager_order(e, timed=False))]
        ordered = entries == sorted(entries, key=lambda e: _manager_order(e, timed=True))
        return [*plain, "<in order>" if ordered else "<not in order>"]

    def _cell(self, value: Any) -> Any:
        return "<age>" if isinstance(value, str) and AGE.fullmatch(value) else self._value("", value)

    def _text(self, text: str) -> str:
        text = text.replace(self._namespace, "<ns>")
        text = UUID.sub(lambda match: self._uids.setdefault(match[0], f"<uid {len(self._uids)}>"), text)
        text = TIME.sub(self._time, text)
        text = QUOTED_VERSIONS.sub(self._quoted, text)
        text = REVISION.sub("revision=<rv>", text)
        return SUFFIX.sub(r"\1-<random>", text)

    def _time(self, match: re.Match[str]) -> str:
        moment = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        if abs((moment - self._now).total_seconds()) > DAY_SECONDS:
            return match[0]
        return f"<time.{len(match[2])}>" if match[2] else "<time>"

    def _quoted(self, match: re.Match[str]) -> str:
        def name(version: str) -> str:
            # A version that no object had is the server's counter, unless the script made it up.
            return self._ranks.get(version, version if version in self._asked else "<rv>")

        second = f" ({name(match[4])})" if match[4] else ""
        return f"{match[1]}{match[2]}{name(match[3])}{second}"


def without_messages(comparable: dict[str, Any]) -> dict[str, Any]:
    """The same without the texts for people, which are scored apart: messages, warnings, descriptions of columns.

    Without the order of causes too: where upstream collects them from a Go map or from checks side by side, the real
    server itself answers one request now in this order and now in that.
    """
    headers = {**comparable["headers"], "Warning": len(comparable["headers"].get("Warning", ()))}
    return {**comparable, "headers": headers, "body": _strip_messages(comparable["body"])}


def _strip_messages(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "Status":
            value = {k: v for k, v in value.items() if k != "message"}
            causes = (value.get("details") or {}).get("causes")
            if causes:
                bare = [{k: v for k, v in cause.items() if k != "message"} for cause in causes]
                bare.sort(key=lambda cause: json.dumps(cause, sort_keys=True))
                value = {**value, "details": {**value["details"], "causes": bare}}
            return value
        if "columnDefinitions" in value:
            columns = [
                {k: v for k, v in column.items() if k != "description"} for column in value["columnDefinitions"] or ()
            ]
            value = {**value, "columnDefinitions": columns}
        return {name: _strip_messages(inner) for name, inner in value.items()}
    return [_strip_messages(inner) for inner in value] if isinstance(value, list) else value


def _manager_order(entry: dict[str, Any], *, timed: bool) -> list[str]:
    keys = ("operation", *(["time"] if timed else []), "manager", "apiVersion", "subresource")
    return [str(entry.get(key, "")) for key in keys]


def _is_collection(document: dict[str, Any], obj: dict[str, Any]) -> bool:
    if "type" in document and "object" in document:
        return bool(document["type"] == "BOOKMARK")
    return _is_list(obj)


def _is_list(obj: dict[str, Any]) -> bool:
    """In protobuf, an empty one has no items."""
    return "items" in obj or "rows" in obj or str(obj.get("kind")).endswith("List")


def _collect_versions(value: Any, found: set[int]) -> None:
    if isinstance(value, dict):
        if value.get("type") == "BOOKMARK":
            return
        for key, inner in value.items():
            if key == "metadata" and _is_list(value):
                continue
            if key == VERSION and isinstance(inner, str) and inner.isdigit():
                found.add(int(inner))
            else:
                _collect_versions(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _collect_versions(inner, found)


def _pointed(body: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(body, list):
            body = body[int(key)] if int(key) < len(body) else None
        else:
            body = body.get(key) if isinstance(body, dict) else None
    return body


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if not names:
        return value
    if isinstance(value, dict):
        # A name whose value is an object may be a field that is called so, as in a schema's properties.
        return {k: _without(v, names) for k, v in value.items() if k not in names or isinstance(v, dict)}
    return [_without(inner, names) for inner in value] if isinstance(value, list) else value


def _drop(value: Any, path: list[str]) -> None:
    """Remove what is at a dotted path; `*` stands for every key or entry."""
    if isinstance(value, dict):
        names = list(value) if path[0] == "*" else [path[0]]
        for name in names:
            if name in value:
                if len(path) == 1:
                    del value[name]
                else:
                    _drop(value[name], path[1:])
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if path[0] not in ("*", str(index)):
                continue
            if len(path) > 1:
                _drop(inner, path[1:])
            else:
                value[index] = "<ignored>"  # so that the entries after it keep their places


def _sort(value: Any, path: list[str]) -> None:
    """Sort the list at a dotted path; `*` stands for every entry of a list."""
    if not path:
        if isinstance(value, list):
            value.sort(key=lambda inner: json.dumps(inner, sort_keys=True))
    elif isinstance(value, list) and path[0] == "*":
        for inner in value:
            _sort(inner, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        _sort(value[path[0]], path[1:])
