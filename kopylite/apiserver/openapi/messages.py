"""Messages of protobuf for documents that were made to be JSON: what key becomes which field. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kopylite.apiserver.openapi.sharing import NodeSteps, joined
from kopylite.apiserver.request.protobuf.wire import block, double, integer
from kopylite.objects.yamlwrite import to_go_yaml

# Of a value, the content of a field, or the field with its tag.
MessageEncoder = Callable[[Any], bytes]


def message(fields: Mapping[str, MessageEncoder], *, extensions: int = 0) -> MessageEncoder:
    """The content of a message.

    Args:
        fields: by the key in JSON, in the order of their numbers.
        extensions: the number of the field that takes the keys that begin with `x-`; the last one.
    """

    def encode(value: Mapping[str, Any]) -> bytes:
        found = [field(value[key]) for key, field in fields.items() if key in value]
        if extensions:
            found += [one_named(extensions, key, any_value(value[key])) for key in value if key.startswith("x-")]
        return b"".join(found)

    return encode


def text(number: int) -> MessageEncoder:
    return lambda value: block(number, value.encode()) if value else b""


def whole(number: int) -> MessageEncoder:
    """An integer or a boolean; zero is not written."""
    return lambda value: integer(number, int(value)) if value else b""


def real(number: int) -> MessageEncoder:
    return lambda value: double(number, value) if value else b""


def inner(number: int, content: MessageEncoder) -> MessageEncoder:
    """A field that is a message."""
    return lambda value: block(number, content(value))


def each(number: int, content: MessageEncoder) -> MessageEncoder:
    """A list of messages."""
    return lambda values: b"".join([block(number, content(value)) for value in values])


def texts(number: int) -> MessageEncoder:
    return lambda values: b"".join([block(number, value.encode()) for value in values])


def named(number: int, content: MessageEncoder) -> MessageEncoder:
    """A map: a list of messages that have a name and a value."""
    return lambda values: b"".join([one_named(number, name, content(value)) for name, value in values.items()])


def named_in_steps(number: int, content: MessageEncoder, values: Mapping[str, Any]) -> NodeSteps[bytes]:
    """What `named` makes, a step for each name."""
    return joined(values, lambda name, value: one_named(number, name, content(value)))


def any_value(value: Any) -> bytes:
    """A value of free form is kept as YAML."""
    return _yaml(msgspec.json.encode(value))


@lru_cache(1024)
def _yaml(value: bytes) -> bytes:
    # YAML is slow, and the same few values come thousands of times.
    return block(2, to_go_yaml(msgspec.json.decode(value), sort_keys=False))


def one_named(number: int, name: str, content: bytes) -> bytes:
    return block(number, block(1, name.encode()) + block(2, content))
