"""What were kopf's admission handlers, called from a validator or a mutator of kopylite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from kopylite.errors import TerminalError
from kopylite.migration.arguments import HandlerPatch, Memo, Views
from kopylite.migration.calling import Origin, invoke, with_indices
from kopylite.migration.filters import matches
from kopylite.migration.handling import CallOptions
from kopylite.objects import Unstructured
from kopylite.reconcile import Context, Retry
from kopylite.webhooks import Denied, Review

_FILTERS = ("labels", "annotations", "when", "field", "value")


async def review(
    ctx: Context,
    asked: Review[Unstructured],
    handler: Callable[..., Any],
    origin: Origin,
    **options: Unpack[CallOptions],
) -> None:
    """Call a handler with kopf's arguments. Its warnings are shown; its patch is made in the object, by a mutator.

    HTTP headers and the certificate of who asks are not known here: `headers` and `sslpeer` are empty.

    Raises:
        Denied: the handler refuses.
    """
    patch, obj = HandlerPatch(), asked.object
    warnings: list[Any] = []
    user = asked.user
    arguments = {
        **Views(obj).arguments(),
        "old": asked.old,
        "new": obj,
        "diff": (),
        "patch": patch,
        "warnings": warnings,
        "operation": asked.operation.upper(),
        "subresource": asked.subresource or None,
        "dryrun": asked.dry_run,
        "userinfo": {"username": user.username, "uid": user.uid, "groups": list(user.groups or ())},
        "headers": {},
        "sslpeer": {},
        "logger": ctx.log,
        "ctx": ctx,
        "memo": Memo(),
        "param": options.get("param"),
        "resource": asked.request.kind,
    }
    filters = {name: options[name] for name in _FILTERS if name in options}  # type: ignore[literal-required]
    if not matches(arguments, filters):  # type: ignore[arg-type]
        return
    try:
        await invoke(handler, await with_indices(ctx, origin, handler, arguments))
    except (Retry, TerminalError) as error:
        raise Denied(str(error)) from error
    finally:
        for text in warnings:
            asked.warn(str(text))
    _merge(obj, patch)


def _merge(obj: dict[str, Any], patch: dict[str, Any]) -> None:
    """A merge patch, in place. Parts that a handler has only asked for are empty, and make nothing."""
    for key, value in patch.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, dict):
            if value:
                inner = obj.get(key)
                obj[key] = inner if isinstance(inner, dict) else {}
                _merge(obj[key], value)
        else:
            obj[key] = value
