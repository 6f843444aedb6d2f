"""Rules of names: DNS forms, label keys and values, as Kubernetes words them. Pure.

The words are those of apimachinery's util/validation/validation.go; what only one kind has stands in `builtin/`.
"""

from __future__ import annotations

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_NAME})?"
_DNS1123_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DNS1123_SUBDOMAIN = rf"{_DNS1123_LABEL}(\.{_DNS1123_LABEL})*"

_NAME_RE = re.compile(_NAME)
_LABEL_VALUE_RE = re.compile(_LABEL_VALUE)
_SUBDOMAIN_RE = re.compile(_DNS1123_SUBDOMAIN)
_LABEL_RE = re.compile(_DNS1123_LABEL)

_EXAMPLES = "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '" + _NAME + "')"
_CHARACTERS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_WITH_PREFIX = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DNS1123_SUBDOMAIN}')"
)
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_DNS1123_LABEL}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL_VALUE}')"
)


def _too_long(text: str, most: int, unit: str = "characters") -> list[str]:
    # Upstream counts bytes and calls them characters, in all but the newest of its texts.
    return [f"must be no more than {most} {unit}"] if len(text.encode("utf-8", "replace")) > most else []


def subdomain_errors(name: str) -> list[str]:
    """Why `name` is no DNS-1123 subdomain (at most 253 characters)."""
    errors = _too_long(name, 253)
    if not _SUBDOMAIN_RE.fullmatch(name):
        errors.append(_SUBDOMAIN_TEXT)
    return errors


def label_errors(name: str) -> list[str]:
    """Why `name` is no DNS-1123 label (at most 63 characters)."""
    errors = _too_long(name, 63)
    if not _LABEL_RE.fullmatch(name):
        errors.append("must not contain dots" if _SUBDOMAIN_RE.fullmatch(name) else _LABEL_TEXT)
    return errors


def label_key_errors(key: str) -> list[str]:
    """Why `key` is no qualified name: optional DNS subdomain prefix, slash, name of at most 63 characters."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {_CHARACTERS} {_EXAMPLES} {_WITH_PREFIX}"]
    errors = []
    if slash:
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors.extend(
                f"prefix part {text.replace('253 characters', '253 bytes')}" for text in subdomain_errors(prefix)
            )
    if not name:
        errors.append("name part must be non-empty")
    else:
        errors += [f"name part {text}" for text in _too_long(name, 63, "bytes")]
    if not _NAME_RE.fullmatch(name):
        errors.append(f"name part {_CHARACTERS} {_EXAMPLES}")
    return errors


def label_value_errors(value: str) -> list[str]:
    errors = _too_long(value, 63, "bytes")
    if not _LABEL_VALUE_RE.fullmatch(value):
        errors.append(_VALUE_TEXT)
    return errors


def path_segment_errors(name: str) -> list[str]:
    """Why `name` cannot be a segment of a URL path."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{char}'" for char in ("/", "%") if char in name]


_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS1035_RE = re.compile(_DNS1035_LABEL)
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    f"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_DNS1035_LABEL}')"
)


def dns1035_errors(name: str) -> list[str]:
    """Why `name` is no DNS-1035 label (at most 63 characters, starts with a letter)."""
    errors = _too_long(name, 63)
    if not _DNS1035_RE.fullmatch(name):
        errors.append(_DNS1035_TEXT)
    return errors
