"""Telling: bring a state to the outside once, and again only when it has changed.

What was told is kept in an annotation of the object, as a hash and a time, so it is known over restarts too.

Guarantees: `send` has succeeded before the annotation says so. Who crashes in between tells the same once more, so
`send` must be idempotent: give the outside a name for it that stays the same, such as the object's uid. An object that
was deleted and made anew, or that carries a copy of another one's annotation, is told anew. Other annotations, and
those of others, stay.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from kopylite.boundary import show
from kopylite.checks import require_seconds
from kopylite.errors import UsageError
from kopylite.objects import identity_of, key_of, kind_of, meta_of
from kopylite.reconcile.context import Context


class _Told(msgspec.Struct):
    hash: str
    time: datetime


async def tell(
    ctx: Context,
    obj: Any,
    annotation: str,
    what: Any,
    send: Callable[[], Awaitable[Any]],
    *,
    again_after: float | timedelta | None = None,
) -> bool:
    """Call `send` unless `what` was told already, and keep that in an annotation of the object.

        await tell(ctx, site, "example.com/dns", {"name": site.spec.name}, update_dns)

    "Done once" is the same with something that stays: `what=obj.uid`, or "once per edit" with `what=obj.generation`.

    Args:
        ctx: the context of the reconcile.
        obj: as it was read; it is left as it was.
        annotation: its name, with a domain, and one for each thing that is told.
        what: the state to tell, as JSON has it. Only its hash is kept; but that of a short secret can be guessed.
        send: called without arguments. If it raises, nothing is kept and the reconcile fails, to be tried again.
        again_after: tell it again after so many seconds (or a timedelta), whatever was told; None: never.

    Returns:
        Whether `send` was called.

    Raises:
        UsageError: the object was never stored, or `what` has no JSON form.
        Conflict: the object was made anew meanwhile; `send` was called all the same.
    """
    now, uid = ctx.now(), identity_of(obj)["uid"]
    if not uid:
        raise UsageError(f"tell: {kind_of(obj)} {key_of(obj)} is not stored yet, so nothing can be kept in it")
    seconds = again_after.total_seconds() if isinstance(again_after, timedelta) else again_after
    if seconds is not None:
        require_seconds(seconds, "tell: again_after (None: never)", error=UsageError)
    wanted = _hash(uid, what)
    told = _read((meta_of(obj).get("annotations") or {}).get(annotation))
    if told is not None and told.hash == wanted:
        age = (now - told.time).total_seconds()
        if seconds is None or 0 <= age < seconds:
            return False
    await send()
    text = msgspec.json.encode(_Told(wanted, now.replace(microsecond=0))).decode()
    await ctx.client.patch(obj, {"metadata": {"annotations": {annotation: text}}})
    return True


def _hash(uid: str, what: Any) -> str:
    try:
        text = msgspec.json.encode(what, order="deterministic")
    except (TypeError, ValueError) as error:
        raise UsageError(f"tell: {show(what)} has no JSON form: {error}") from None
    return hashlib.sha256(uid.encode() + b"\n" + text).hexdigest()[:32]


def _read(text: object) -> _Told | None:
    """What the annotation says; None: nothing that can be relied on. Others may write there, too."""
    try:
        told = msgspec.json.decode(text, type=_Told) if isinstance(text, str) else None
    except (msgspec.DecodeError, ValueError):
        return None
    return told if told is not None and told.time.tzinfo is not None else None
