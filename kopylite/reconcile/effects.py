"""effect: marks a function whose calls leave the cluster: a sweep has crashes fall between them and their records."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar, cast, overload

from kopylite.boundary import name_of
from kopylite.errors import RegistrationError

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EffectCall:
    """A call that leaves the cluster.

    Attributes:
        name: of the function.
        arguments: by their names.
        key: what makes repeats harmless: the value of the function's key parameter; None: it has none.
    """

    name: str
    arguments: dict[str, Any]
    key: Any = None


class EffectWatcher(Protocol):
    """Hears of effects; may end whoever calls them."""

    async def begins(self, call: EffectCall) -> None: ...
    async def happened(self, call: EffectCall) -> None: ...
    def begins_in_thread(self, call: EffectCall) -> None: ...
    def happened_in_thread(self, call: EffectCall) -> None: ...


BY_CONVENTION = frozenset({"idempotency_key", "request_id", "client_token", "deduplication_id"})
"""Parameters that payment, queue and cloud services know repeats by."""

EFFECTS: ContextVar[EffectWatcher | None] = ContextVar("kopylite_effects", default=None)
"""Who hears of the effects of the present task; nobody, in production."""


@overload
def effect(function: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def effect(*, key: str | None = None) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def effect(function: Callable[P, T] | None = None, /, *, key: str | None = None) -> Any:
    """Mark a function, async or not, whose calls leave the cluster: they create a bucket, send a mail, book a payment.

        @effect
        async def send_mail(address: str, text: str) -> None: ...

        @effect(key="request_id")      # the other side takes a second call with the same one for the first
        async def book(request_id: str, cents: int) -> None: ...

    It changes nothing about the function. A sweep (`kopylite sweep`) has the operator crash after each such call,
    before anything can be written about it, and counts the calls with equal arguments: more than without faults
    are a finding, unless a key makes them harmless.

    Args:
        key: the name of the parameter that makes repeats harmless; None: the one of BY_CONVENTION, if there is one.

    Raises:
        RegistrationError: the function has no such parameter.
    """
    if function is None:
        return lambda marked: effect_of(marked, key)
    return effect_of(function, None)


def effect_of(function: Callable[P, T], key: str | None) -> Callable[P, T]:
    signature = inspect.signature(function)
    if key is not None and key not in signature.parameters:
        raise RegistrationError(f"@effect(key={key!r}): {name_of(function)} has no parameter of that name")
    key = key or next((name for name in signature.parameters if name in BY_CONVENTION), None)

    def call_of(args: Any, kwargs: Any) -> EffectCall:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name not in ("self", "ctx")}
        return EffectCall(name_of(function), arguments, arguments.get(key) if key else None)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            watcher = EFFECTS.get()
            if watcher is None:
                return await function(*args, **kwargs)
            call = call_of(args, kwargs)
            await watcher.begins(call)
            result = await function(*args, **kwargs)
            await watcher.happened(call)
            return result

        return cast("Callable[P, T]", awaited)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        watcher = EFFECTS.get()
        if watcher is None:
            return function(*args, **kwargs)
        call = call_of(args, kwargs)
        watcher.begins_in_thread(call)
        result = function(*args, **kwargs)
        watcher.happened_in_thread(call)
        return result

    return called
