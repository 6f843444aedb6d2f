"""App: what an operator consists of. Declarations are recorded in this object and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from kopylite.checks import is_dns_label, nearest, require_flag, require_shards
from kopylite.client.selecting import SelectorLike
from kopylite.controller import Channel, ControllerSpec, Periodic, Timer, Watch, watch
from kopylite.errors import RegistrationError
from kopylite.lifecycle import LifecycleDeclarations
from kopylite.objects import Kind, kind_of
from kopylite.triggers import Predicate
from kopylite.triggers.predicates import existence_changed
from kopylite.webhooks import WebhookDeclarations
from kopylite.workqueue import RateLimit

if TYPE_CHECKING:
    from kopylite.controller import Reconcile, SyncReconcile

ReconcileT = TypeVar("ReconcileT", bound="Reconcile | SyncReconcile")
KindLike = Kind | type[Any]


class ControllerOptions(TypedDict, total=False):
    """The options of a reconciler that most do without. See ControllerSpec for each one's meaning."""

    sources: Sequence[Periodic | Channel]
    predicates: Predicate | None
    labels: SelectorLike
    threads: int | None
    timeout: float | None
    max_retries: int | None
    rate_limit: RateLimit
    failure_events: bool
    paused_condition: bool
    leader: bool


class TimerOptions(TypedDict, total=False):
    """The options of a timer that most do without. See ControllerSpec for each one's meaning."""

    labels: SelectorLike
    workers: int | None
    threads: int | None
    timeout: float | None
    max_retries: int | None
    rate_limit: RateLimit
    failure_events: bool
    leader: bool


class App(LifecycleDeclarations, WebhookDeclarations):
    """An operator: its reconcilers, what they read from a cache, and what goes on before, beside and after them.

        app = App("myapp")

        @app.reconciler(MyApp, owns=[Deployment], workers=4)
        async def reconcile(ctx: Context, request: Request) -> Result | None:
            ...

    Nothing runs, connects or registers anywhere else: several Apps live side by side in one process, and a Manager
    (or `kopylite run module:app`) brings one to life.

    Args:
        name: lower-case letters, digits and dashes, at most 63; names the operator to the API server, as the
            owner of the fields that it applies and in the user agent.
        leader_election: of several processes that run it, one works at a time, and the others stand by; the Lease
            has the App's name. Controllers with leader=False work in all of them.
        shards: several processes that run it share the work: the objects are split into so many parts by their uid,
            each process holds its fair number of parts, and caches only these. At least as many as processes.

    Raises:
        RegistrationError: the name is none.
    """

    def __init__(self, name: str, *, leader_election: bool = False, shards: int = 0) -> None:
        # It becomes the field manager and the user agent, and the start of the controllers' names.
        if not isinstance(name, str) or not is_dns_label(name):
            raise RegistrationError(
                f"App name {name!r}: use up to 63 lower-case letters, digits and inner dashes, as in App('my-operator')"
            )
        require_flag(leader_election, f"App {name!r}: leader_election")
        super().__init__()
        self.name = name
        require_shards(shards, f"App {name!r}: shards")
        self.leader_election = leader_election
        self.shards = shards
        self._controllers: dict[str, ControllerSpec] = {}
        self._cached: list[Watch] = []

    @property
    def controllers(self) -> tuple[ControllerSpec, ...]:
        """In the order of their declaration."""
        return tuple(self._controllers.values())

    @property
    def cached(self) -> tuple[Watch, ...]:
        """The kinds named by `cache()`: followed by no controller."""
        return tuple(self._cached)

    def reconciler(
        self,
        kind: KindLike,
        *,
        owns: Iterable[KindLike | Watch] = (),
        watches: Iterable[KindLike | Watch] = (),
        workers: int | None = None,
        name: str | None = None,
        **options: Unpack[ControllerOptions],
    ) -> Callable[[ReconcileT], ReconcileT]:
        """Declare the decorated `async def (ctx, request) -> Result | None` as the reconcile of a kind.

        With `threads=8` it is a plain `def (ctx: SyncContext, request) -> Result | None`, which runs in threads.

        It is called with the key of each object of the kind, and again whenever something changed that it
        declares to depend on. The decorated function itself is unchanged, so tests can call it.

        Args:
            kind: whose keys the Requests are.
            owns: kinds it creates with an owner reference to `kind`: a change of one runs its owner.
            watches: other kinds; `watch(kind, map=...)` says whose run a change of one means.
            workers: how many keys it works on at the same time; None: the manager's default, 8.
            name: of the controller; None: the kind in lower case.
            options: see ControllerOptions.

        Raises:
            RegistrationError: names what is declared wrongly, the rule, and the way out.
        """
        own = _checked(kind, "@app.reconciler").kind.lower()
        chosen = own if name is None else name
        owned = tuple(_watches(owns, f"controller {chosen!r}: owns"))
        watched = tuple(_watches(watches, f"controller {chosen!r}: watches"))
        known = ("owns", "watches", "workers", "name", *ControllerOptions.__annotations__)
        _check_options(options, f"controller {chosen!r}", known)

        def register(function: ReconcileT) -> ReconcileT:
            spec = ControllerSpec(
                name=chosen, kind=kind, reconcile=function, owns=owned, watches=watched, workers=workers, **options
            )
            self._add(spec)
            return function

        return register

    def timer(
        self,
        kind: KindLike,
        *,
        every: float | timedelta,
        start_after: float | timedelta = 0,
        jitter: float = 0.1,
        name: str | None = None,
        **options: Unpack[TimerOptions],
    ) -> Callable[[ReconcileT], ReconcileT]:
        """Declare the decorated `async def (ctx, request) -> Result | None` as what runs for each object now and again.

        It is a reconcile in all but one thing: no event runs it, but the time. The first time is `start_after` the
        creation of the object, the next ones follow `every` so long, however long a run takes and however often the
        operator is started or led by another process. A time at which nobody worked is left out. Failures are tried
        again with back-off, and a Result that asks for a run has it first; a TerminalError ends the timer of the object
        until the next start.

        Args:
            kind: of the objects.
            every: seconds, or a timedelta, from one run to the next.
            start_after: the same, from the creation of an object to its first run.
            jitter: by up to this part of `every` all times of an object are later, each object's by another one.
            name: of its controller; None: the function's.
            options: see TimerOptions.

        Raises:
            RegistrationError: names what is declared wrongly, the rule, and the way out.
        """
        _checked(kind, "@app.timer")
        known = ("every", "start_after", "jitter", "name", *TimerOptions.__annotations__)
        _check_options(options, "@app.timer", known)
        timer = Timer(_in_seconds(every), _in_seconds(start_after), jitter)

        def register(function: ReconcileT) -> ReconcileT:
            chosen = str(getattr(function, "__name__", type(function).__name__)) if name is None else name
            spec = ControllerSpec(
                name=chosen, kind=kind, reconcile=function, timer=timer, predicates=existence_changed, **options
            )
            self._add(spec)
            return function

        return register

    def cache(
        self, kind: KindLike, *, namespace: str | None = None, labels: SelectorLike = "", metadata_only: bool = False
    ) -> None:
        """Read a kind from a cache, though no controller follows it.

        Args:
            kind: a CustomResource class, a Kind, or a kubernetes_asyncio model class.
            namespace: only this namespace; None: those of the manager.
            labels: cache only objects that match this label selector.
            metadata_only: cache only metadata.

        Raises:
            RegistrationError: it is no kind.
        """
        _checked(kind, "app.cache")
        self._cached.append(watch(kind, labels=labels, namespace=namespace, metadata_only=metadata_only))

    def include(self, other: App) -> None:
        """Take over everything that `other` has declared up to now, in its order; `other` itself stays as it is.

        Raises:
            RegistrationError: both have a controller, task or check of one name, or convert one version. Then nothing
                is taken over.
        """
        for name in other._controllers:
            self._require_free(name)
        self.life.require_new(self.name, other.life.tasks, other.life.checks)
        self._include_webhooks(other)
        self.life.include(self.name, other.life)
        self._controllers |= other._controllers
        self._cached += other._cached

    def _add(self, spec: ControllerSpec) -> None:
        self._require_free(spec.name)
        self._controllers[spec.name] = spec

    def _require_free(self, name: str) -> None:
        if name in self._controllers:
            raise RegistrationError(
                f"app {self.name!r} has a controller {name!r} already: names are the labels of metrics and logs, so "
                f"they are unique. Give one of them another: @app.reconciler(..., name='{name}-2')"
            )

    def __repr__(self) -> str:
        return f"App({self.name!r}, controllers={list(self._controllers)})"


def _checked(kind: object, where: str) -> Kind:
    """The Kind of what a declaration names.

    Raises:
        RegistrationError: it is none.
    """
    if callable(kind) and not isinstance(kind, type):
        raise RegistrationError(f"{where} is used without a kind. Write: {where}(MyKind)")
    if not isinstance(kind, (Kind, type)):
        raise RegistrationError(
            f"{where}: {kind!r} is no kind. Use a CustomResource class, a Kind such as Kind('apps/v1', 'Deployment'), "
            "or a kubernetes_asyncio model class"
        )
    try:
        return kind_of(kind)
    except RegistrationError as error:
        raise RegistrationError(f"{where}: {error}") from None


def _in_seconds(time: float | timedelta) -> float:
    return time.total_seconds() if isinstance(time, timedelta) else time


def _check_options(options: Mapping[str, object], where: str, known: Sequence[str]) -> None:
    """Refuse an option that does not exist, and sources that are none."""
    for option in options:
        if option not in known:
            near = nearest(option, known)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
            raise RegistrationError(f"{where}: there is no option {option!r}; {hint}")
    sources = options.get("sources", ())
    if not isinstance(sources, (list, tuple)) or not all(isinstance(each, (Periodic, Channel)) for each in sources):
        raise RegistrationError(f"{where}: sources takes a list of periodic(...) and channel(...), not {sources!r}")


def _watches(declared: object, where: str) -> Iterable[Watch]:
    if isinstance(declared, (Kind, type, Watch, str)) or not isinstance(declared, Iterable):
        argument = where.rpartition(" ")[2]
        raise RegistrationError(f"{where} takes a list of kinds. Write: {argument}=[{_shown(declared)}]")
    for entry in declared:
        watched = entry if isinstance(entry, Watch) else Watch(entry)
        _checked(watched.kind, where)
        if watched.any_owner and not where.endswith("owns"):
            raise RegistrationError(f"{where}: any_owner=True is for owns=[...]: here it runs its own key")
        yield watched


def _shown(declared: object) -> str:
    if isinstance(declared, type):
        return declared.__name__
    return repr(declared)
