"""Specs: what an App declares about its webhooks, checked where it is written. Pure."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict

import msgspec

from kopylite.boundary import name_of
from kopylite.checks import require_seconds
from kopylite.errors import RegistrationError
from kopylite.objects import Kind, kind_of

Role = Literal["validate", "mutate"]
AdmissionFunction = Callable[[Any, Any], Any]

OPERATIONS = ("create", "update", "delete", "connect")
FAILURE_POLICIES = ("Fail", "Ignore")
SIDE_EFFECTS = ("None", "NoneOnDryRun")
# Between 1 and 30 s for the API server.
LONGEST_TIMEOUT = 30

_SUBRESOURCE = re.compile(r"[a-z]*|\*")


class HookOptions(TypedDict, total=False):
    """The options of a validator or mutator that most do without. See WebhookSpec for each one's meaning."""

    subresources: tuple[str, ...]
    match: Mapping[str, str]
    labels: Mapping[str, Any]
    namespaces: Mapping[str, Any]
    failure_policy: Literal["Fail", "Ignore"]
    timeout: int
    side_effects: Literal["None", "NoneOnDryRun"]
    reinvoke: bool
    name: str


class WebhookSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One validator or mutator.

    Args:
        role: "validate" or "mutate".
        kind: whose objects it sees.
        function: `async def (ctx, review)`.
        operations: of "create", "update", "delete" and "connect"; a mutator sees no delete.
        subresources: "" is the object itself; e.g. ("", "status").
        match: CEL conditions by name, which must all hold before the API server calls:
            {"not-mine": "request.userInfo.username != 'me'"}.
        labels: only objects with these labels: {"app": "web"}, or a LabelSelector with matchExpressions.
        namespaces: only in namespaces with these labels; likewise.
        failure_policy: "Fail" (nothing is written while the operator is away) or "Ignore".
        timeout: seconds that the API server waits; the function has a little less.
        side_effects: "None", or "NoneOnDryRun": then it has to look at `review.dry_run`.
        reinvoke: call a mutator again when a later one changed the object.
        name: of the webhook; "": the function's.
    """

    role: Role
    kind: Kind | type[Any]
    function: AdmissionFunction
    operations: tuple[str, ...] = ("create", "update")
    subresources: tuple[str, ...] = ("",)
    match: Mapping[str, str] | None = None
    labels: Mapping[str, Any] | None = None
    namespaces: Mapping[str, Any] | None = None
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    timeout: int = 10
    side_effects: Literal["None", "NoneOnDryRun"] = "None"
    reinvoke: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        where = f"@app.{'validator' if self.role == 'validate' else 'mutator'}({kind_of(self.kind).kind})"
        if not inspect.iscoroutinefunction(inspect.unwrap(self.function)):
            raise RegistrationError(f"{where}: write it as `async def {name_of(self.function)}(ctx, review)`")
        for each in self.operations:
            if each not in OPERATIONS:
                raise RegistrationError(f"{where}: operations are of {', '.join(OPERATIONS)}, not {each!r}")
        if not self.operations or not self.subresources:
            raise RegistrationError(f"{where}: without operations or subresources it would never be called")
        if self.role == "mutate" and "delete" in self.operations:
            raise RegistrationError(f"{where}: there is nothing to change in what is deleted; use @app.validator")
        for subresource in self.subresources:
            if not _SUBRESOURCE.fullmatch(subresource):
                raise RegistrationError(f"{where}: {subresource!r} is no sub-resource; '' is the object itself")
        if self.failure_policy not in FAILURE_POLICIES or self.side_effects not in SIDE_EFFECTS:
            raise RegistrationError(
                f"{where}: failure_policy is one of {', '.join(FAILURE_POLICIES)}, side_effects of "
                f"{', '.join(SIDE_EFFECTS)}"
            )
        require_seconds(self.timeout, f"{where}: timeout")
        if self.timeout != int(self.timeout) or not 1 <= self.timeout <= LONGEST_TIMEOUT:
            raise RegistrationError(f"{where}: timeout is a whole number of 1 to {LONGEST_TIMEOUT} seconds")

    @property
    def own_name(self) -> str:
        """In the form of a DNS label."""
        return re.sub(r"[^a-z0-9]+", "-", (self.name or name_of(self.function)).lower()).strip("-") or "hook"

    def takes(self, operation: str, subresource: str) -> bool:
        """Whether it is to see a request."""
        below = subresource in self.subresources or ("*" in self.subresources and bool(subresource))
        return operation in self.operations and below


class ConverterSpec(msgspec.Struct, frozen=True, weakref=True):
    """One converter between the storage version of a kind and others.

    Args:
        kind: the storage version.
        versions: the others, of the same group and kind: classes or Kinds.
        function: `def (obj, to)` returns the object in the version `to`, which is the class or Kind as declared; either
            the object or `to` is of the storage version.
    """

    kind: Kind | type[Any]
    versions: tuple[Kind | type[Any], ...]
    function: Callable[[Any, Any], Any]

    def __post_init__(self) -> None:
        own = kind_of(self.kind)
        where = f"@app.converter({own.kind})"
        if not callable(self.function) or inspect.iscoroutinefunction(inspect.unwrap(self.function)):
            raise RegistrationError(f"{where}: write it as a plain `def {name_of(self.function)}(obj, to)`: it has to "
                                    "depend on nothing but the object")  # fmt: skip
        declaration = getattr(self.kind, "declaration", None)
        if declaration is not None and not declaration.storage:
            raise RegistrationError(
                f"{where}: {own.version} is not the storage version. Name the class with storage=True first, and this "
                "one among versions=[...]"
            )
        if not self.versions:
            raise RegistrationError(f"{where}: versions=[...] names the other versions")
        for each in map(kind_of, self.versions):
            if each.group_kind != own.group_kind:
                raise RegistrationError(f"{where}: {each} is another kind than {own}")
            if each.version == own.version:
                raise RegistrationError(f"{where}: {own.version} is the storage version itself")


def check_converters(specs: tuple[ConverterSpec, ...], new: ConverterSpec) -> None:
    """Refuse a second converter for one version, and two storage versions of one kind."""
    own = kind_of(new.kind)
    for spec in specs:
        kind = kind_of(spec.kind)
        if kind.group_kind != own.group_kind:
            continue
        if kind.version != own.version:
            raise RegistrationError(
                f"@app.converter({own.kind}): {kind.version} and {own.version} cannot both be stored"
            )
        twice = {kind_of(v).version for v in spec.versions} & {kind_of(v).version for v in new.versions}
        if twice:
            raise RegistrationError(f"@app.converter({own.kind}): there is a converter for {', '.join(sorted(twice))}")
