"""Texts of what is foreign, made fit for a log line, an Event or a header."""

from __future__ import annotations

from typing import Any

# Nobody reads more of an exception in a log line; a validation error of a big object can have megabytes.
MAX_TEXT = 2000
MAX_VALUE = 200
# Of a group of exceptions: its members that are named.
MAX_MEMBERS = 3


def say(error: BaseException) -> str:
    """An exception in one piece of text, "ValueError: no". Never raises, whatever the exception's own methods do.

    A group says what is in it, since its own text is nearly always the same: "ExceptionGroup of ValueError: no".

    Not even what would end a task or the process: no sys.exit() and no cancellation is meant by a `__str__`. Only a
    person's interrupt comes through.
    """
    if isinstance(error, BaseExceptionGroup):
        members = members_of(error)
        shown = "; ".join(dict.fromkeys(say(member) for member in members[:MAX_MEMBERS]))
        more = f"; and {len(members) - MAX_MEMBERS} more" if len(members) > MAX_MEMBERS else ""
        return printable(f"{type(error).__name__} of {shown}{more}")
    name = type(error).__name__
    try:
        text = printable(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException as broken:
        text = f"(its __str__ raised {type(broken).__name__})"
    return f"{name}: {text}" if text else name


def members_of(error: BaseExceptionGroup[Any]) -> list[BaseException]:
    """All exceptions of a group, of whatever depth, in their order; no recursion, for it may be deep."""
    found: list[BaseException] = []
    left: list[BaseException] = [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseExceptionGroup):
            left += reversed(one.exceptions)
        else:
            found.append(one)
    return found


def show(value: object) -> str:
    """A value as its repr, cut at 200 characters. Never raises, whatever the value's own methods do; see `say`."""
    try:
        return printable(repr(value), MAX_VALUE)
    except KeyboardInterrupt:
        raise
    except BaseException as broken:
        return f"<{type(value).__name__}, its __repr__ raised {type(broken).__name__}>"


def printable(text: str, limit: int = MAX_TEXT) -> str:
    """The text with what no output can encode (lone surrogates) and what moves a terminal's cursor (control
    characters other than newline and tab) replaced, cut at `limit` characters.
    """
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    if text.isprintable():
        return text
    text = text.encode("utf-8", "replace").decode()
    return "".join(c if c in "\n\t" or not _moves_the_cursor(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _moves_the_cursor(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"
