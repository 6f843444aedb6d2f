"""SyncClient: the Client's verbs for a thread. Each one has the event loop do the same, and waits for it."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, Unpack, overload

from kopylite.client.cached import Client
from kopylite.client.live import LiveClient, Patch, PatchParams
from kopylite.client.misfits import OnInvalid
from kopylite.client.selecting import IndexValues, SelectorLike
from kopylite.client.upsert import Outcome, UpsertParams
from kopylite.objects import HasKey, Kind, Unstructured

P = ParamSpec("P")
T = TypeVar("T")


class Caller(Protocol):
    """Awaits async functions in the event loop, for a thread that waits."""

    def call(self, function: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any: ...


def _sync(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The twin of a method: the same arguments, result and errors, without `await`."""

    @functools.wraps(method)
    def twin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        function: Callable[..., Awaitable[T]] = getattr(self._client, method.__name__)
        result: T = self._caller.call(function, *args, **kwargs)
        return result

    return twin


class SyncLiveClient:
    """A LiveClient for a thread: reads from the server and writes to it. See LiveClient for each method.

    Args:
        client: does the work, in the event loop.
        caller: the way there. After the end of its run, or when that is cancelled, each call raises CancelledError.
    """

    def __init__(self, client: LiveClient, caller: Caller) -> None:
        self._client = client
        self._caller = caller

    @overload
    def get(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured: ...
    @overload
    def get(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T: ...
    def get(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        return self._caller.call(self._client.get, kind, key, namespace=namespace)

    @overload
    def find(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured | None: ...
    @overload
    def find(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T | None: ...
    def find(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        return self._caller.call(self._client.find, kind, key, namespace=namespace)

    @overload
    def list(
        self, kind: Kind, *, namespace: str = "", labels: SelectorLike = "", fields: SelectorLike = "",
        invalid: OnInvalid = "skip",
    ) -> builtins.list[Unstructured]: ...  # fmt: skip
    @overload
    def list(
        self, kind: type[T], *, namespace: str = "", labels: SelectorLike = "", fields: SelectorLike = "",
        invalid: OnInvalid = "skip",
    ) -> builtins.list[T]: ...  # fmt: skip
    def list(self, kind: Kind | type[Any], **params: Any) -> builtins.list[Any]:
        result: builtins.list[Any] = self._caller.call(self._client.list, kind, **params)
        return result

    @overload
    def patch(self, target: Kind, key: str | HasKey, patch: Patch, **params: Unpack[PatchParams]) -> Unstructured: ...
    @overload
    def patch(self, target: type[T], key: str | HasKey, patch: Patch, **params: Unpack[PatchParams]) -> T: ...
    @overload
    def patch(self, target: T, patch: Patch, **params: Unpack[PatchParams]) -> T: ...
    def patch(self, target: Any, *args: Any, **params: Any) -> Any:
        return self._caller.call(self._client.patch, target, *args, **params)

    create = _sync(LiveClient.create)
    adopt = _sync(LiveClient.adopt)
    update = _sync(LiveClient.update)
    delete = _sync(LiveClient.delete)
    delete_all = _sync(LiveClient.delete_all)
    get_subresource = _sync(LiveClient.get_subresource)
    create_subresource = _sync(LiveClient.create_subresource)


class SyncClient(SyncLiveClient):
    """A Client for a thread: `ctx.client` of a reconcile that is a plain `def`. See Client for each method.

    A `mutate` function is called in the event loop: it edits its object, and neither reads nor waits.

    Attributes:
        live: always reads from the server.
    """

    _client: Client

    def __init__(self, client: Client, caller: Caller) -> None:
        super().__init__(client, caller)
        self.live = SyncLiveClient(client.live, caller)

    @overload
    def list(
        self, kind: Kind, *, namespace: str = "", labels: SelectorLike = "", fields: SelectorLike = "",
        index: IndexValues | None = None, invalid: OnInvalid = "skip",
    ) -> builtins.list[Unstructured]: ...  # fmt: skip
    @overload
    def list(
        self, kind: type[T], *, namespace: str = "", labels: SelectorLike = "", fields: SelectorLike = "",
        index: IndexValues | None = None, invalid: OnInvalid = "skip",
    ) -> builtins.list[T]: ...  # fmt: skip
    def list(self, kind: Kind | type[Any], **params: Any) -> builtins.list[Any]:
        result: builtins.list[Any] = self._caller.call(self._client.list, kind, **params)
        return result

    @overload
    def create_or_update(
        self, kind: Kind, key: str | HasKey, mutate: Callable[[Unstructured], None], **params: Unpack[UpsertParams]
    ) -> tuple[Unstructured, Outcome]: ...
    @overload
    def create_or_update(
        self, kind: type[T], key: str | HasKey, mutate: Callable[[T], None], **params: Unpack[UpsertParams]
    ) -> tuple[T, Outcome]: ...
    def create_or_update(
        self, kind: Kind | type[Any], key: str | HasKey, mutate: Callable[[Any], None], **params: Unpack[UpsertParams]
    ) -> tuple[Any, Outcome]:
        result: tuple[Any, Outcome] = self._caller.call(self._client.create_or_update, kind, key, mutate, **params)
        return result

    @overload
    def create_or_patch(
        self, kind: Kind, key: str | HasKey, mutate: Callable[[Unstructured], None], **params: Unpack[UpsertParams]
    ) -> tuple[Unstructured, Outcome]: ...
    @overload
    def create_or_patch(
        self, kind: type[T], key: str | HasKey, mutate: Callable[[T], None], **params: Unpack[UpsertParams]
    ) -> tuple[T, Outcome]: ...
    def create_or_patch(
        self, kind: Kind | type[Any], key: str | HasKey, mutate: Callable[[Any], None], **params: Unpack[UpsertParams]
    ) -> tuple[Any, Outcome]:
        result: tuple[Any, Outcome] = self._caller.call(self._client.create_or_patch, kind, key, mutate, **params)
        return result

    apply = _sync(Client.apply)
    patch_status = _sync(Client.patch_status)
    add_finalizer = _sync(Client.add_finalizer)
    remove_finalizer = _sync(Client.remove_finalizer)
