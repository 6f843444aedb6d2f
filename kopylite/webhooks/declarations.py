"""Declarations: the decorators of an App for validators, mutators and converters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar, Unpack, overload
from weakref import WeakValueDictionary

from kopylite.checks import nearest
from kopylite.errors import RegistrationError
from kopylite.objects import Kind, Unstructured, kind_of
from kopylite.reconcile import Context
from kopylite.webhooks.review import Review
from kopylite.webhooks.specs import ConverterSpec, HookOptions, Role, WebhookSpec, check_converters

T = TypeVar("T")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Reviewing = Callable[[Context, Review[T]], Awaitable[None]]
Registered = Callable[[Reviewing[T]], Reviewing[T]]

_WRITES = ("create", "update")
# Which converters there are, for `assert_converts`; nothing that runs reads it. Each is gone with its App.
_living: WeakValueDictionary[int, ConverterSpec] = WeakValueDictionary()


def converters_known() -> list[ConverterSpec]:
    """The converters of all Apps of this process."""
    return list(_living.values())


class WebhookDeclarations:
    """What an App declares about its webhooks. They are served by every process that runs the App, leader or not."""

    def __init__(self) -> None:
        self._hooks: list[WebhookSpec] = []
        self._converters: list[ConverterSpec] = []

    @property
    def hooks(self) -> tuple[WebhookSpec, ...]:
        """The validators and mutators, in the order of their declaration."""
        return tuple(self._hooks)

    @property
    def converters(self) -> tuple[ConverterSpec, ...]:
        """In the order of their declaration."""
        return tuple(self._converters)

    @overload
    def validator(
        self, kind: Kind, *, operations: Iterable[str] = ..., **options: Unpack[HookOptions]
    ) -> Registered[Unstructured]: ...
    @overload
    def validator(
        self, kind: type[T], *, operations: Iterable[str] = ..., **options: Unpack[HookOptions]
    ) -> Registered[T]: ...
    def validator(
        self, kind: Any, *, operations: Iterable[str] = _WRITES, **options: Unpack[HookOptions]
    ) -> Callable[[Any], Any]:
        """Declare the decorated `async def (ctx, review)` as a judge of what is written to a kind.

            @app.validator(MyApp)
            async def check(ctx: Context, review: Review[MyApp]) -> None:
                review.immutable("spec.storage")
                if review.object.spec.image.endswith(":latest"):
                    raise Denied("name a version", field="spec.image")

        It returns to allow, and raises Denied (or calls `review.deny`) to refuse. Any other exception refuses, too, as
        an error 500, and is logged.

        Args:
            kind: whose objects it sees; `review.object` is one of them.
            operations: of "create", "update", "delete" and "connect".
            options: see WebhookSpec.

        Raises:
            RegistrationError: names what is declared wrongly, the rule, and the way out.
        """
        return self._hook("validate", "@app.validator", kind, operations, options)

    @overload
    def mutator(
        self, kind: Kind, *, operations: Iterable[str] = ..., **options: Unpack[HookOptions]
    ) -> Registered[Unstructured]: ...
    @overload
    def mutator(
        self, kind: type[T], *, operations: Iterable[str] = ..., **options: Unpack[HookOptions]
    ) -> Registered[T]: ...
    def mutator(
        self, kind: Any, *, operations: Iterable[str] = _WRITES, **options: Unpack[HookOptions]
    ) -> Callable[[Any], Any]:
        """Declare the decorated `async def (ctx, review)` as one that changes what is written to a kind.

        It edits `review.object` in place. Several run in the order of their declaration, each on what those before it
        did. What it does not touch stays as it came, fields that the class does not know included. It may be called
        more than once for one write, so it must change nothing the second time.

        Args and Raises: as `validator`.
        """
        return self._hook("mutate", "@app.mutator", kind, operations, options)

    def converter(
        self, kind: Kind | type[Any], *, versions: Iterable[Kind | type[Any]]
    ) -> Callable[[FunctionT], FunctionT]:
        """Declare the decorated `def (obj, to)` as what converts objects of a kind between its versions.

            @app.converter(MyApp, versions=[MyAppV1Beta1])
            def convert(obj: MyApp | MyAppV1Beta1, to: type[MyApp | MyAppV1Beta1]) -> MyApp | MyAppV1Beta1:
                ...

        Between two others of the versions, it is called twice, by way of the storage version. The metadata is kept as
        it came, whatever it makes of it. There and back again has to give the same object: `assert_converts` of
        kopylite.testing proves it.

        Args:
            kind: the storage version.
            versions: the others.

        Raises:
            RegistrationError: names what is declared wrongly, the rule, and the way out.
        """
        _check_kind(kind, "@app.converter")
        others = tuple(versions)
        for other in others:
            _check_kind(other, "@app.converter(versions=...)")

        def register(function: FunctionT) -> FunctionT:
            spec = ConverterSpec(kind, others, function)
            check_converters(tuple(self._converters), spec)
            self._converters.append(spec)
            _living[id(spec)] = spec
            return function

        return register

    def _include_webhooks(self, other: WebhookDeclarations) -> None:
        """Raises: RegistrationError: both convert one version; then nothing is taken over."""
        for spec in other._converters:
            check_converters(tuple(self._converters), spec)
        self._hooks += other._hooks
        self._converters += other._converters

    def _hook(
        self, role: Role, where: str, kind: Any, operations: Iterable[str], options: HookOptions
    ) -> Callable[[Any], Any]:
        _check_kind(kind, where)
        for option in options:
            if option not in HookOptions.__annotations__:
                near = nearest(option, HookOptions.__annotations__)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(HookOptions.__annotations__)}"
                raise RegistrationError(f"{where}: there is no option {option!r}; {hint}")
        for name in ("operations", "subresources"):
            if isinstance(operations if name == "operations" else options.get(name), str):
                raise RegistrationError(f"{where}: {name} takes several, as in {name}=('create',)")
        chosen = {**options, "subresources": tuple(options.get("subresources", ("",)))}

        def register(function: Any) -> Any:
            spec = WebhookSpec(role=role, kind=kind, function=function, operations=tuple(operations), **chosen)  # type: ignore[arg-type]
            self._hooks.append(spec)
            return function

        return register


def _check_kind(kind: object, where: str) -> None:
    if not isinstance(kind, (Kind, type)):
        raise RegistrationError(f"{where} is used without a kind. Write: {where}(MyKind)")
    try:
        kind_of(kind)
    except RegistrationError as error:
        raise RegistrationError(f"{where}: {error}") from None
