"""Wiring: the part of a moved module that calls its handlers: an App, and a reconciler for each kind. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from kopylite.migration.declarations import HandlerDeclaration, arguments_used
from kopylite.migration.selectors import KindRef
from kopylite.migration.vocabulary import ACTIVITIES, REVIEWS

# By the causes of one handler: how its Handling calls it; else in each run.
_METHODS = {
    frozenset({"create"}): "created",
    frozenset({"update"}): "updated",
    frozenset({"create", "update"}): "changed",
    frozenset({"resume"}): "resumed",
    frozenset({"resume", "create"}): "resumed",
    frozenset({"delete"}): "deleted",
    frozenset({"daemon"}): "daemon",
}
_FILTERS = ("labels", "annotations", "when", "field", "value", "new")
_CALLED = (*_FILTERS, "id", "param", "errors", "backoff", "retries", "timeout", "initial_delay")
_OPERATIONS = ("create", "update", "delete")


@dataclass(slots=True)
class HandlerCall:
    """One handler of a kind, with all of its causes that have the same options."""

    declared: list[HandlerDeclaration]
    options: dict[str, str]

    @property
    def causes(self) -> frozenset[str]:
        return frozenset(each.what for each in self.declared)

    @property
    def name(self) -> str:
        return self.declared[0].name

    @property
    def uses(self) -> set[str]:
        return arguments_used(self.declared[0].function)

    @property
    def method(self) -> str:
        if self.causes & {"field"}:
            return "field"
        return _METHODS.get(self.causes, "always")

    def line(self, run: str = "run") -> str:
        """The call."""
        given = {name: text for name, text in self.options.items() if name in _CALLED}
        first = [given.pop("field", "''")] if self.method == "field" else []
        if self.method != "daemon":
            given.pop("initial_delay", None)
        listed = [self.name, *first, *(f"{name}={text}" for name, text in given.items() if text != "None")]
        return f"await {run}.{self.method}({', '.join(listed)})"


@dataclass(slots=True)
class Wired:
    """A kind with its handlers.

    Attributes:
        variable: its name in the module.
    """

    ref: KindRef
    variable: str
    declared: list[HandlerDeclaration] = field(default_factory=list)


@dataclass(slots=True)
class WiringWriter:
    """Writes the part of the module that kopylite is.

    Attributes:
        file: the module's name, for comments.
        app: the App's name.
        edited: the text of an expression, with the names of kopf replaced.
        free: makes a name that the module has not.
        imported: the names that are used, of kopylite.
    """

    file: str
    app: str
    edited: Callable[[ast.expr], str]
    free: Callable[[str], str]
    name: Callable[[str], str]
    finalizer: str | None = None
    prefix: str | None = None
    peering: str | None = None
    led: bool = False
    imported: set[str] = field(default_factory=set)

    def written(self, kinds: Sequence[Wired], others: Sequence[HandlerDeclaration], emptied: set[str]) -> str:
        """The text: declarations first, then what begins and ends, then each kind."""
        every = [each for kind in kinds for each in kind.declared] + list(others)
        remembers = bool(kinds) or any("memo" in arguments_used(each.function) for each in every)
        parts = [self._head(kinds, every)]
        if remembers:
            parts.append(f"app.lifespan({self._b}.remember)  # what kopf kept in memory: memos, tries, daemons\n")
        if any(each.what == "daemon" for each in every):
            parts.append(f"app.task({self._b}.host_daemons)\n")
        text = "".join(parts).replace("app.", f"{self._app}.")
        blocks = [text, *(self._activity(each) for each in others if each.name not in emptied and each.what != "login")]
        for kind in kinds:
            blocks += self._kind(kind)
        return "\n\n".join(block for block in blocks if block)

    @property
    def _b(self) -> str:
        return self.name("bridge")

    @property
    def _app(self) -> str:
        return self.free("app")

    def _use(self, name: str) -> str:
        self.imported.add(name)
        return self.free(name)

    def _head(self, kinds: Sequence[Wired], every: Sequence[HandlerDeclaration]) -> str:
        groups = [kind.ref.group for kind in kinds if "." in kind.ref.group and not kind.ref.group.endswith(".k8s.io")]
        domain = f"{self.app}.{groups[0] if groups else 'kopylite.dev'}"
        given = [repr(domain)]
        given += [f"finalizer={self.finalizer!r}"] if self.finalizer else []
        given += [f"prefix={self.prefix!r}"] if self.prefix else []
        lines = ["# What follows is kopylite's: it calls the functions above that were handlers of kopf.", ""]
        lines += [f"{kind.variable} = {self._use('Kind')}({kind.ref.api_version}, {kind.ref.kind!r})" for kind in kinds]
        indices = [(kind, each) for kind in kinds for each in kind.declared if each.what == "index"]
        if indices:
            lines.append(f"{self.free('INDICES')} = {{")
            for kind, each in indices:
                filters = self._options(each)
                listed = ", ".join(f"{name!r}: {text}" for name, text in filters.items() if name in _FILTERS)
                more = f", {{{listed}}}" if listed else ""
                name = filters.get("id", repr(each.name.rpartition(".")[2]))
                lines.append(f"    {name}: {self._b}.Indexed({kind.variable}, {each.name}{more}),")
            lines.append("}")
            given.append(f"indices={self.free('INDICES')}")
        lines += [
            "# Of the finalizer and of the annotations that are kept from now on: change it before the first run only.",
            f"{self.free('ORIGIN')} = {self._b}.Origin({', '.join(given)})",
            f"{self.free('app')} = {self._use('App')}({self.app!r}{', leader_election=True' if self.led else ''})",
            "# Goes when no operator of kopf is left that could act for the same objects.",
            f"app.on_start({self._b}.no_kopf_beside({repr(self.peering) if self.peering else ''}))",
        ]
        cached = dict.fromkeys(kind.variable for kind, _ in indices)
        lines += [f"app.cache({name})  # @kopf.index" for name in cached]
        return "\n".join(lines) + "\n"

    def _options(self, each: HandlerDeclaration) -> dict[str, str]:
        return {name: self.edited(value) for name, value in each.options.items()}

    def _comment(self, each: HandlerDeclaration) -> str:
        return f"# {PurePath(self.file).name}:{each.line}: {each.text}".replace("\n", " ")[:118]

    def _activity(self, each: HandlerDeclaration) -> str:
        context, plain = self._use("Context"), _plain(each.name)
        decorator = {"startup": "on_start", "cleanup": "on_stop"}.get(each.what)
        options = self._options(each)
        if decorator is None:
            decorator = f"health({options.get('id', repr(plain))})"
        param = f", {options['param']}" if "param" in options else ""
        function = self.free(f"{ {'startup': 'start', 'cleanup': 'stop'}.get(each.what, each.what) }_{plain}")
        return (
            f"{self._comment(each)}\n@{self._app}.{decorator}\n"
            f"async def {function}(ctx: {context}) -> None:\n"
            f"    await {self._b}.call_at_start(ctx, {each.name}, {self.free('ORIGIN')}{param})\n"
        )

    def _kind(self, kind: Wired) -> list[str]:
        declared = [each for each in kind.declared if each.what not in {"index", "timer", *REVIEWS, *ACTIVITIES}]
        calls = self._calls(declared)
        blocks = [self._reconciler(kind, calls)] if calls else []
        blocks += [self._timer(kind, each) for each in kind.declared if each.what == "timer"]
        blocks += [self._review(kind, each) for each in kind.declared if each.what in REVIEWS]
        if not calls and any(each.what == "timer" for each in kind.declared):
            blocks.append(self._forgetting(kind))
        return blocks

    def _calls(self, declared: Sequence[HandlerDeclaration]) -> list[HandlerCall]:
        """Declarations of one function with the same options are one call; a deletion, an event and a field are not."""
        calls: list[HandlerCall] = []
        named: dict[str, list[HandlerCall]] = {}
        for each in declared:
            options = self._options(each)
            apart = each.what in ("delete", "event", "field", "daemon")
            for call in named.setdefault(each.name, []):
                if call.options == options and not apart and not call.causes & {"delete", "event", "field", "daemon"}:
                    call.declared.append(each)
                    break
            else:
                calls.append(HandlerCall([each], options))
                named[each.name].append(calls[-1])
        return calls

    def _reconciler(self, kind: Wired, calls: Sequence[HandlerCall]) -> str:
        ending = [call for call in calls if call.causes == {"delete"}]
        going = [call for call in calls if call.causes != {"delete"}]
        origin, name = self.free("ORIGIN"), _plain(kind.variable)
        context, request, result = self._use("Context"), self._use("Request"), self._use("Result")
        lines = []
        if ending:
            lines += self._cleanup(kind, ending)
        lines += [
            f"@{self._app}.reconciler({kind.variable}{self._predicates(calls)})",
            f"async def {self.free(f'reconcile_{name}')}(ctx: {context}, request: {request}) -> {result} | None:",
            f'    """Bring the world to what a {kind.ref.kind} says."""',
            f"    obj = await ctx.client.find({kind.variable}, request)",
            "    if obj is None:",
            f"        ctx.state[{self._b}.Memory].forget({kind.variable}, request)",
            "        return None",
        ]
        lines += self._leaving(kind, ending)
        if going:
            lines.append(f"    async with {self._b}.Handling(ctx, obj, {origin}) as run:")
            for call in going:
                lines += [f"        {self._comment(each)}" for each in call.declared]
                lines.append(f"        {call.line()}")
        lines.append("    return None")
        return "\n".join(lines) + "\n"

    def _cleanup(self, kind: Wired, ending: Sequence[HandlerCall]) -> list[str]:
        name = self.free(f"clean_{_plain(kind.variable)}")
        lines = [
            f"async def {name}(ctx: {self._use('Context')}, obj: {self._use('Unstructured')}) -> None:",
            f'    """Before a {kind.ref.kind} goes. Runs until it succeeds, so it must bear finding nothing."""',
            f"    async with {self._b}.Handling(ctx, obj, {self.free('ORIGIN')}) as run:",
        ]
        for call in ending:
            lines += [f"        {self._comment(each)}" for each in call.declared]
            lines.append(f"        {call.line()}")
        return [*lines, "", ""]

    def _leaving(self, kind: Wired, ending: Sequence[HandlerCall]) -> list[str]:
        """What becomes of an object that is being deleted."""
        if not ending:
            return ["    if obj.deletion_timestamp:", "        return None"]
        optional = all(call.options.get("optional") == "True" for call in ending)
        clean = self.free(f"clean_{_plain(kind.variable)}")
        if optional:
            return ["    if obj.deletion_timestamp:", f"        await {clean}(ctx, obj)  # optional=True: no finalizer",
                    "        return None"]  # fmt: skip
        origin = self.free("ORIGIN")
        finalizer = f'f"{{{origin}.domain}}/cleanup"'
        call = f"await {self._use('finalize')}(ctx, obj, {finalizer}, {clean}, replaces=[{origin}.finalizer])"
        filters = [name for call_ in ending for name in call_.options if name in _FILTERS]
        if not filters:
            return [f"    if {call}:", "        return None"]
        listed = [", ".join(f"{n}={t}" for n, t in one.options.items() if n in _FILTERS) for one in ending]
        tests = " or ".join(f"{self._b}.Handling(ctx, obj, {origin}).fits({each})" for each in dict.fromkeys(listed))
        return [
            f"    held = {finalizer} in obj.finalizers or {origin}.finalizer in obj.finalizers",
            f"    if (held or {tests}) and {call}:",
            "        return None",
            "    if obj.deletion_timestamp:",
            "        return None",
        ]

    def _predicates(self, calls: Sequence[HandlerCall]) -> str:
        """Which events run it: those that kopf's handlers would have heard of."""
        causes = frozenset().union(*(call.causes for call in calls))
        if causes & {"event", "daemon"}:
            return ""
        fields = [
            call.options.get("field", "") for call in calls if "field" in call.options and call.causes != {"delete"}
        ]
        simple = [text for text in fields if re.fullmatch(r"""(['"])[\w.-]+\1""", text)]
        if causes <= {"field", "delete"} and fields and len(simple) == len(fields):
            changed = f"{self._use('field_changed')}({', '.join(dict.fromkeys(simple))}) | {self._b}.deletion_began"
        else:
            changed = f"{self._b}.changed({self.free('ORIGIN')})"
            status = [text for text in simple if text[1:].startswith("status")]
            if len(simple) < len(fields):
                return ""
            if status:
                changed += f" | {self._use('field_changed')}({', '.join(dict.fromkeys(status))})"
        return f", predicates={changed}"

    def _timer(self, kind: Wired, each: HandlerDeclaration) -> str:
        call, options = HandlerCall([each], self._options(each)), self._options(each)
        every = options.get("interval", "3600")
        after = f", start_after={options['initial_delay']}" if options.get("initial_delay", "None") != "None" else ""
        function = self.free(f"timer_{_plain(each.name)}_{_plain(kind.variable)}")
        call.options = {name: text for name, text in options.items() if name != "initial_delay"}
        context, request, result = self._use("Context"), self._use("Request"), self._use("Result")
        return "\n".join([
            self._comment(each),
            f"@{self._app}.timer({kind.variable}, every={every}{after})",
            f"async def {function}(ctx: {context}, request: {request}) -> {result} | None:",
            f"    obj = await ctx.client.find({kind.variable}, request)",
            "    if obj is not None and not obj.deletion_timestamp:",
            f"        async with {self._b}.Handling(ctx, obj, {self.free('ORIGIN')}) as run:",
            f"            {call.line()}",
            "    return None",
            "",
        ])  # fmt: skip

    def _forgetting(self, kind: Wired) -> str:
        """A kind that has timers alone lets its memos go, too."""
        context, request = self._use("Context"), self._use("Request")
        return (
            f"@{self._app}.reconciler({kind.variable})\n"
            f"async def {self.free(f'forget_{_plain(kind.variable)}')}(ctx: {context}, request: {request}) -> None:\n"
            f"    if await ctx.client.find({kind.variable}, request) is None:\n"
            f"        ctx.state[{self._b}.Memory].forget({kind.variable}, request)\n"
        )

    def _review(self, kind: Wired, each: HandlerDeclaration) -> str:
        options = self._options(each)
        role = "validator" if each.what == "validate" else "mutator"
        allowed = _OPERATIONS if role == "validator" else _OPERATIONS[:2]
        named = [each.options[name] for name in ("operation", "operations") if name in each.options]
        constants = [node.value for one in named for node in ast.walk(one) if isinstance(node, ast.Constant)]
        asked = [value.lower() for value in constants if isinstance(value, str)]
        operations = tuple(one for one in asked if one in (*allowed, "connect")) or allowed
        given = [kind.variable, f"operations={operations!r}"]
        if options.get("ignore_failures") == "True":
            given.append('failure_policy="Ignore"')
        if options.get("side_effects") == "True":
            given.append('side_effects="NoneOnDryRun"')
        if options.get("subresource", "None") != "None":
            given.append(f"subresources=({options['subresource']},)")
        filters = "".join(f", {name}={text}" for name, text in options.items() if name in (*_FILTERS, "param"))
        return (
            f"{self._comment(each)}\n@{self._app}.{role}({', '.join(given)})\n"
            f"async def {self.free(f'{each.what}_{_plain(each.name)}')}"
            f"(ctx: {self._use('Context')}, asked: {self._use('Review')}[{self._use('Unstructured')}]) -> None:\n"
            f"    await {self._b}.review(ctx, asked, {each.name}, {self.free('ORIGIN')}{filters})\n"
        )


def _plain(name: str) -> str:
    """A name for functions, from a variable or "Class.function"."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W", "_", text).lower()
