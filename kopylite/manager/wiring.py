"""Wiring: from the declarations of an App to the sources of its controllers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from kopylite.cache import Record, SharedCache
from kopylite.controller import ControllerSpec, MapFunction, Watch
from kopylite.objects import Kind, adapter_of, kind_of
from kopylite.reconcile import Context, Environment, Request
from kopylite.triggers import BackgroundHandler, EnqueueMapped, EnqueueObject, EnqueueOwner, Handler, KindSource

ALL_NAMESPACES = ("",)

MakeHandler = Callable[[], Handler | BackgroundHandler]


def sources_of(
    spec: ControllerSpec, environment: Environment, cache: SharedCache, namespaces: Sequence[str]
) -> list[KindSource]:
    """The sources of a controller: its own kind first, then what it owns, then what it watches.

    Args:
        namespaces: of the manager; none for all.
    """
    own = Watch(spec.kind, predicates=spec.predicates, labels=spec.labels)
    owner = kind_of(spec.kind)
    return [
        *_sources(own, EnqueueObject, cache, namespaces),
        *(s for w in spec.owns for s in _sources(w, _handler(w, environment, owner), cache, namespaces)),
        *(s for w in spec.watches for s in _sources(w, _handler(w, environment, None), cache, namespaces)),
    ]


def scopes_of(kind: Kind, namespace: str | None, namespaces: Sequence[str]) -> Sequence[str]:
    """The namespaces in which a kind is to be mirrored; "" stands for all of them, and for cluster scope."""
    if kind.namespaced is False:
        return ALL_NAMESPACES
    return [namespace] if namespace is not None else namespaces or ALL_NAMESPACES


def _sources(watch: Watch, make: MakeHandler, cache: SharedCache, namespaces: Sequence[str]) -> Iterator[KindSource]:
    kind = kind_of(watch.kind)
    for namespace in scopes_of(kind, watch.namespace, namespaces):
        yield KindSource(
            cache,
            kind,
            make(),
            predicate=watch.predicates,
            namespace=namespace,
            labels=watch.labels,
            metadata_only=watch.metadata_only,
        )


def _handler(watch: Watch, environment: Environment, owner: Kind | None) -> MakeHandler:
    if watch.map is not None:
        function = _on_records(watch.map, watch, environment)
        name = getattr(watch.map, "__name__", type(watch.map).__name__)
        return lambda: EnqueueMapped(function, name=name, clock=environment.clock)
    return EnqueueObject if owner is None else lambda: EnqueueOwner(owner)


def _on_records(
    function: MapFunction, watch: Watch, environment: Environment
) -> Callable[[Record], Awaitable[Iterable[Request]]]:
    """A user's map function, fed with objects of the class it asked for. Metadata alone fits no class but a dict."""
    adapter: Any = adapter_of(kind_of(watch.kind) if watch.metadata_only else watch.kind)

    async def on_record(record: Record) -> Iterable[Request]:
        context = Context(environment, Request(record.namespace, record.name), (f"map {watch.kind}",))
        return await function(adapter.decode(record.body), context)

    return on_record
