"""Handling: calls what were handlers of kopf, with kopf's arguments, from a reconcile of kopylite.

Which of them is called when is said by the method: `created` once for each object, `updated` and `changed` when more
than the status has changed, `field` when a field has, `resumed` once in each process, `always` in each run. What was
done is kept in annotations of the object, by `tell`. An object that kopf has handled before counts as created.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Literal, Self, TypedDict, Unpack

from kopylite.boundary import name_of, say
from kopylite.errors import Conflict, NotFound, TerminalError
from kopylite.migration.arguments import HandlerPatch, NotMoved, Unknown, Views, at
from kopylite.migration.calling import KopfHandler, Origin, invoke, with_indices
from kopylite.migration.children import CURRENT, Current
from kopylite.migration.filters import Filters, matches
from kopylite.migration.memory import ObjectMemory, Stopped, Tries
from kopylite.migration.subhandlers import collected
from kopylite.migration.traces import essence_of, last_handled
from kopylite.objects import Kind, ObjectKey, Unstructured, key_of, kind_of
from kopylite.reconcile import Context, Retry, Severity, tell

# Of one patch, while others write to the same parts of an object.
WRITES = 5


class CallOptions(Filters, total=False):
    """How a handler is called, besides its filters.

    id: by which name it is remembered; its function's, if none is given.
    param: handed through.
    errors: what an arbitrary exception means: tried again (the default), "permanent" or "ignored".
    backoff: seconds until it is tried again after one; None: as the reconciler's rate_limit says.
    retries, timeout: after so many tries, or seconds since the first, it has failed for good (TerminalError). They are
        counted in this process, and from the beginning after a success.
    """

    id: str
    param: Any
    errors: Literal["temporary", "permanent", "ignored"]
    backoff: float | None
    retries: int | None
    timeout: float | None


class _Extra(TypedDict, total=False):
    stopped: Stopped


class Handling:
    """One run for one object: `async with Handling(ctx, obj, origin) as run`.

    As in kopf, one handler that fails keeps no other from its turn. At the end what handlers have put into `patch` is
    written, and then what has failed is raised: what is tried again soonest first.

    Args:
        ctx: of the reconcile.
        obj: as it was read.
        origin: of the operator.
        views: the object's parts as arguments; None: they are made.
    """

    def __init__(self, ctx: Context, obj: Unstructured, origin: Origin, views: Views | None = None) -> None:
        self._ctx, self._obj, self._origin = ctx, obj, origin
        self._views = views or Views(obj)
        self._patch = HandlerPatch()
        self._failures: list[Exception] = []
        self._handled, self._handled_state = last_handled(obj, origin.prefix)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            return
        await self.write()
        if kind is None and self._failures:
            first, *others = sorted(self._failures, key=_urgency)
            for other in others:
                self._ctx.log.warning("another handler failed, too: %s", say(other))
                if isinstance(other, TerminalError):  # nobody else would tell of it, and it is not tried again
                    self._ctx.event(self._obj, "TerminalError", say(other), type="Warning")
            # Each handler has its own time to wait, so the deletion of the object need not.
            raise Retry(str(first), after=first.result.delay, hold=False) if isinstance(first, Retry) else first

    async def write(self) -> None:
        """Write what handlers have put into `patch` up to now. An object that is gone needs nothing.

        Raises:
            Conflict: others wrote the same parts of the object again and again; or it is another one by now.
        """
        main, status = self._patch.taken()
        obj: Unstructured | None = self._obj
        for left in reversed(range(WRITES if main or status else 0)):
            try:
                if main and obj is not None:
                    await self._ctx.client.patch(obj, main)
                main = {}
                if status and obj is not None:
                    await self._ctx.client.patch_status(obj, status)
                return
            except NotFound:
                return
            except Conflict:
                if not left:
                    raise
            obj = await self._ctx.client.live.find(kind_of(self._obj), key_of(self._obj))
            if obj is None or obj.uid != self._obj.uid:
                return

    async def always(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """In each run."""
        with self._apart():
            if self._fits(options):
                await self._call(handler, options)

    async def resumed(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """Once for each object while this process works, until it has succeeded once."""
        done, name = self._memory().done(self._owner(), self._obj.uid), options.get("id") or name_of(handler)
        with self._apart():
            if name not in done and self._fits(options):
                await self._call(handler, options)
                done.add(name)

    async def created(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """Once for each object, until it has succeeded once."""
        with self._apart():
            if self._fits(options):
                await self._tell("created", handler, options, "", lambda: None if self._handled else ())

    async def updated(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """When more than the status has changed since it was called last, or since the object was first seen."""
        with self._apart():
            await self._tell("updated", handler, options, self._state(options), lambda: self._last_state(options))

    async def changed(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """For a new object, and when more than its status has changed."""
        before = functools.partial(self._last_state, options) if self._handled else tuple
        with self._apart():
            await self._tell("changed", handler, options, self._state(options), before)

    async def field(self, handler: KopfHandler, path: str | tuple[str, ...], **options: Unpack[CallOptions]) -> None:
        """When a field has changed, has gone, or is there in a new object."""
        options["field"] = path
        before = [*at(self._handled_state or {}, path)]
        with self._apart():
            await self._tell("field", handler, options, self._state(options), lambda: before)

    async def deleted(self, handler: KopfHandler, **options: Unpack[CallOptions]) -> None:
        """For an object that is being deleted. As in kopf, a PermanentError ends its part of the cleanup."""
        with self._apart():
            if not self._fits(options):
                return
            try:
                await self._call(handler, options)
            except TerminalError as error:
                self._ctx.log.error("%s has given up, and the deletion goes on: %s", name_of(handler), error)
                self._ctx.event(self._obj, "CleanupGivenUp", f"{name_of(handler)}: {error}", type="Warning")

    async def daemon(
        self, handler: KopfHandler, *, initial_delay: float | None = None, **options: Unpack[CallOptions]
    ) -> None:
        """Keep a task at work beside the runs for as long as the object is there and fits."""
        memory, owner = self._memory(), self._owner()
        name, origin = options.get("id") or name_of(handler), self._origin

        async def work(ctx: Context, views: Views, stopped: Stopped) -> None:
            async with Handling(ctx, Unstructured(views.body), origin, views) as run:
                await run._call(handler, options, stopped=stopped)

        if self._fits(options):
            await memory.follow(owner, name, Views(self._obj), work, initial_delay or 0)
        else:
            memory.stop(owner, name)

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """A handler that fails is one of several: what it raises waits for the end of the run."""
        try:
            yield
        except Exception as error:
            self._failures.append(error)

    async def _tell(
        self, cause: str, handler: KopfHandler, options: CallOptions, state: Any, before: Callable[[], Any]
    ) -> None:
        """Call a handler unless it was called for a state.

        Args:
            cause: a handler may have several, each with its own states.
            before: what it counts as told of where nothing was kept of it; None: of this; (): of nothing.
        """
        named = f"{self._origin.domain}/{_annotation(handler, cause, options)}"
        what = [self._obj.uid, state]
        if named not in self._obj.annotations:
            known = before()
            if known is None or known == state:
                await tell(self._ctx, self._obj, named, what, _nothing)
                return
        # A field that has gone is a change of it, too.
        gone = () if "value" in options or "new" in options else ("field",)
        if not self._fits(options, gone if state else ()):
            return

        async def send() -> None:
            await self._call(handler, options)
            await self.write()  # before it counts as done

        try:
            await tell(self._ctx, self._obj, named, what, send)
        except NotMoved:
            raise
        except TerminalError:
            # As in kopf, it has failed for good for this state of the object.
            await tell(self._ctx, self._obj, named, what, self.write)
            raise

    def _state(self, options: CallOptions) -> Any:
        """What a handler is told of: a field, or all but the status."""
        if path := options.get("field"):
            return [*at(self._obj, path)]
        return self._essence()

    def _essence(self) -> dict[str, Any]:
        return essence_of(self._obj, (self._origin.prefix, self._origin.domain))

    def _last_state(self, options: CallOptions) -> Any:
        """What kopf has told it last; None: kopf has not handled the object, so this is the first sight of it."""
        if not self._handled:
            return None
        if path := options.get("field"):
            return [*at(self._handled_state or {}, path)]
        return () if self._handled_state is None else self._handled_state

    def fits(self, **filters: Unpack[Filters]) -> bool:
        """Whether the object passes the filters of a handler."""
        return not filters or matches(self._arguments(filters), filters)  # type: ignore[arg-type]

    def _fits(self, options: CallOptions, without: tuple[str, ...] = ()) -> bool:
        names = [name for name in Filters.__annotations__ if name in options and name not in without]
        if not names:
            return True
        filters: Any = {name: options.get(name) for name in names}
        return matches(self._arguments(options), filters)

    def _arguments(self, options: CallOptions, **extra: Unpack[_Extra]) -> dict[str, Any]:
        path, memory, owner = options.get("field"), self._memory(), self._owner()
        tries = memory.tries(owner, self._obj.uid, options["id"]) if "id" in options else Tries()
        return {
            **self._views.arguments(),
            "patch": self._patch,
            "logger": self._ctx.log,
            "ctx": self._ctx,
            "param": options.get("param"),
            "memo": memory.memo(owner, self._obj.uid),
            "resource": owner[0],
            "retry": tries.failed,
            "started": tries.since or self._ctx.now(),
            "runtime": self._ctx.now() - tries.since if tries.since else timedelta(0),
            "reason": None,
            "type": None,
            "event": {"type": None, "object": self._views.body},
            "new": at(self._obj, path)[1] if path else self._essence(),
            "old": Unknown("old"),
            "diff": Unknown("diff"),
            **extra,
        }

    def _owner(self) -> tuple[Kind, ObjectKey]:
        return kind_of(self._obj), key_of(self._obj)

    def _memory(self) -> ObjectMemory:
        return self._ctx.state[ObjectMemory]

    async def _call(self, handler: KopfHandler, options: CallOptions, **extra: Unpack[_Extra]) -> None:
        options.setdefault("id", name_of(handler))
        now, tries = self._ctx.now(), self._memory().tries(self._owner(), self._obj.uid, options["id"])
        tries.since = tries.since or now
        if tries.until and tries.until > now:
            raise Retry(f"{options['id']} waits", after=tries.until - now)
        try:
            result = await self._await(handler, self._arguments(options, **extra), lasting="stopped" in extra)
        except TerminalError:
            raise
        except Exception as error:
            tries.failed += 1
            if isinstance(error, Retry):
                tries.until = self._ctx.now() + timedelta(seconds=error.result.delay)
            limit, most = options.get("timeout"), options.get("retries")
            age = (self._ctx.now() - tries.since).total_seconds()
            if (most is not None and tries.failed >= most) or (limit is not None and age >= limit):
                raise TerminalError(f"{options['id']} has failed {tries.failed} times: {say(error)}") from error
            if not self._is_ignored(error, options):
                raise
            result = None
        tries.failed, tries.since, tries.until = 0, None, None
        if result is not None:
            self._patch.status[options["id"]] = result

    def _is_ignored(self, error: Exception, options: CallOptions) -> bool:
        """What `errors=` and `backoff=` say of an exception. Raises what it means."""
        errors, backoff, name = options.get("errors", "temporary"), options.get("backoff"), options.get("id")
        if isinstance(error, Retry):
            return False
        if errors == "ignored":
            self._ctx.log.warning("%s failed, which is ignored: %s", name, say(error))
            return True
        if errors == "permanent":
            raise TerminalError(f"{name}: {say(error)}") from error
        if backoff:
            self._ctx.log.error("%s failed; it runs again in %g s", name, backoff, exc_info=error)
            raise Retry(f"{name}: {say(error)}", after=backoff) from error
        return False

    async def _await(self, handler: KopfHandler, arguments: dict[str, Any], *, lasting: bool) -> Any:
        """Call a handler and what it has registered as sub-handlers; of a daemon, in a thread that may take long."""
        token = CURRENT.set(Current(self._views.body, self._poster()))
        try:
            with collected() as registered:
                result = await self._invoke(handler, arguments, lasting=lasting)
            for sub in registered:
                if matches(arguments, sub.filters):
                    await self._await(sub.function, {**arguments, "param": sub.param}, lasting=False)
        finally:
            CURRENT.reset(token)
        return result

    async def _invoke(self, handler: KopfHandler, arguments: dict[str, Any], *, lasting: bool) -> Any:
        given = await with_indices(self._ctx, self._origin, handler, arguments)
        return await invoke(handler, given, lasting=lasting)

    def _poster(self) -> Callable[[Any, str, str, Severity], None]:
        ctx, portal = self._ctx, _in_loop()

        def post(obj: Any, reason: str, message: str, severity: Severity) -> None:
            portal(functools.partial(ctx.event, obj, reason, message, type=severity))

        return post


def _urgency(error: Exception) -> tuple[int, float]:
    """What is tried again soonest comes first, and what is not tried again last."""
    if isinstance(error, Retry):
        return 1, error.result.delay
    return (2 if isinstance(error, TerminalError) else 0), 0.0


def _in_loop() -> Callable[[Callable[[], None]], None]:
    """Calls a function in this event loop, from whatever thread."""
    loop = asyncio.get_running_loop()

    def call(function: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(function)

    return call


def _annotation(handler: KopfHandler, cause: str, options: CallOptions) -> str:
    """A name that an annotation may have."""
    path = options.get("field") or ()
    whole = ".".join([options.get("id") or name_of(handler), cause, *([path] if isinstance(path, str) else path)])
    name = re.sub(r"[^A-Za-z0-9._-]", "_", whole).strip("._-")
    return name if len(name) <= 63 else f"{name[:52]}-{hashlib.sha256(whole.encode()).hexdigest()[:10]}"


async def _nothing() -> None:
    """Nothing is to be done; it is only noted."""
