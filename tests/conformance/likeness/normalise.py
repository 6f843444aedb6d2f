"""Make the answers of two servers comparable: what is random or a matter of time becomes a name for itself.

Only values are replaced, never dropped, except the paths that a step ignores: a uid that is missing still differs
from one that is there. resourceVersions keep their order: each becomes its rank among all that the script saw.
"""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.likeness.player import Answer
from tests.conformance.likeness.script import Step

UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
SUFFIX = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
VERSION_KEYS = {"resourceVersion"}
AGE = re.compile(r"(?:\d+[smhd])+|<invalid>")


class Normaliser:
    """For the answers of one script from one server."""

    def __init__(self, answers: list[Answer]) -> None:
        found: set[int] = set()
        for answer in answers:
            _collect_versions(answer.body, found)
        self._ranks = {str(version): f"<rv {rank}>" for rank, version in enumerate(sorted(found))}
        self._uids: dict[str, str] = {}

    def __call__(self, step: Step, answer: Answer) -> dict[str, Any]:
        """The comparable form of an answer."""
        body = self._value("", answer.body)
        for path in step.ignore:
            _drop(body, path.split("."))
        return {
            "code": answer.code,
            "type": answer.content_type,
            "warnings": [self._text(w) for w in answer.warnings],
            "body": body,
            "failure": answer.failure,
        }

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._value(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            if key == "cells":
                return [AGE.sub("<age>", v) if isinstance(v, str) else v for v in map(self._cell, value)]
            return [self._value("", inner) for inner in value]
        if isinstance(value, str):
            if key in VERSION_KEYS:
                return self._ranks.get(value, value)
            if key == "continue" and value:
                return "<continue>"
            return self._text(value)
        return value

    def _cell(self, value: Any) -> Any:
        return self._value("", value)

    def _text(self, text: str) -> str:
        text = UUID.sub(lambda match: self._uids.setdefault(match[0], f"<uid {len(self._uids)}>"), text)
        text = TIME.sub("<time>", text)
        text = re.sub(r"\b\d{3,}\b", lambda match: self._ranks.get(match[0], match[0]), text)
        return SUFFIX.sub("-<random>", text)


def without_messages(comparable: dict[str, Any]) -> dict[str, Any]:
    """The same without the texts that are for people: messages are scored apart."""
    return {**comparable, "body": _strip_messages(comparable["body"]), "warnings": len(comparable["warnings"])}


def _strip_messages(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get("kind") == "Status":
            value = {k: v for k, v in value.items() if k != "message"}
            causes = (value.get("details") or {}).get("causes")
            if causes:
                bare = [{k: v for k, v in cause.items() if k != "message"} for cause in causes]
                value = {**value, "details": {**value["details"], "causes": bare}}
            return value
        return {name: _strip_messages(inner) for name, inner in value.items()}
    return [_strip_messages(inner) for inner in value] if isinstance(value, list) else value


def _collect_versions(value: Any, found: set[int]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in VERSION_KEYS and isinstance(inner, str) and inner.isdigit():
                found.add(int(inner))
            else:
                _collect_versions(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _collect_versions(inner, found)


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
            if path[0] in ("*", str(index)) and len(path) > 1:
                _drop(inner, path[1:])
