"""LiveClient: the API server's verbs over typed objects; reads and writes alike go to the server."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from kopylite.boundary import show
from kopylite.client.api import Api
from kopylite.client.changes import Edit, as_read, bound, carried_out, merge_change
from kopylite.client.misfits import Misfits, OnInvalid
from kopylite.client.patches import bound_diff
from kopylite.client.selecting import SelectorLike, selection_of
from kopylite.client.verbs import PatchType, Preconditions, WriteOptions
from kopylite.errors import NotFound, UsageError
from kopylite.objects import (
    Adapter,
    HasKey,
    Kind,
    ObjectKey,
    Unstructured,
    adapter_like,
    adapter_of,
    identity_of,
    key_of,
    kind_of,
    meta_of,
    named_key,
    set_owner,
)

T = TypeVar("T")

Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]

FIELD_MANAGER = "kopylite"


class WriteParams(TypedDict, total=False):
    """What every write takes as keywords.

    Attributes:
        dry_run: the server checks and answers, and stores nothing.
        field_manager: the owner of the written fields, instead of the client's own.
    """

    dry_run: bool
    field_manager: str


class PatchParams(WriteParams, total=False):
    """What a patch takes as keywords.

    Attributes:
        namespace: of the name that is given as key.
        type: merge (RFC 7386, the default), json (RFC 6902), strategic (kinds of Kubernetes itself only), apply.
        subresource: e.g. "status"; of one with a form of its own ("scale"), that comes back, as Unstructured.
        force: with "apply": take fields over from their managers.
    """

    namespace: str
    type: PatchType
    subresource: str | None
    force: bool


class DeleteParams(TypedDict, total=False):
    """What a delete takes as keywords; `Preconditions` explains them."""

    uid: str | None
    resource_version: str | None
    propagation: Literal["Background", "Foreground", "Orphan"] | None
    grace_period: int | None
    dry_run: bool


class LiveClient:
    """Reads from the server and writes to it.

    Kinds are named by a `Kind`, a `CustomResource` class or a model class of kubernetes_asyncio; objects come
    back as instances of it. A key is a name with `namespace=`, or anything that has a namespace and a name: a
    Request, an ObjectKey, another object.

    Every method raises an ApiError (one class per reason) when the server refuses, KindNotFound when it does
    not serve the kind, TransportError when no whole answer came, DecodeError for an object that does not fit
    its class, and UsageError for a name or namespace that cannot be.

    Args:
        api: the verbs of the server.
        field_manager: the owner of the fields that this client writes.
        misfits: tells of the objects that a list left out.
    """

    def __init__(self, api: Api, *, field_manager: str = FIELD_MANAGER, misfits: Misfits | None = None) -> None:
        self.api = api
        self.field_manager = field_manager
        self.misfits = misfits or Misfits()

    @overload
    async def get(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured: ...
    @overload
    async def get(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T: ...
    async def get(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        """Read an object.

        Raises:
            NotFound: there is none.
        """
        adapter = adapter_of(kind)
        return adapter.decode(await self.api.get(adapter.kind, object_key(key, namespace)))

    @overload
    async def find(self, kind: Kind, key: str | HasKey, *, namespace: str = "") -> Unstructured | None: ...
    @overload
    async def find(self, kind: type[T], key: str | HasKey, *, namespace: str = "") -> T | None: ...
    async def find(self, kind: Kind | type[Any], key: str | HasKey, *, namespace: str = "") -> Any:
        """Read an object; None when there is none. A kind that is not served is an error all the same."""
        try:
            return await self.get(kind, key, namespace=namespace)
        except NotFound:
            return None

    @overload
    async def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        invalid: OnInvalid = "skip",
    ) -> builtins.list[Unstructured]: ...
    @overload
    async def list(
        self,
        kind: type[T],
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        invalid: OnInvalid = "skip",
    ) -> builtins.list[T]: ...
    async def list(
        self,
        kind: Kind | type[Any],
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        invalid: OnInvalid = "skip",
    ) -> builtins.list[Any]:
        """Read all objects of a namespace, or ("") of all namespaces.

        Args:
            labels: a label selector, e.g. "app=web,tier!=cache", or a map of what is equal, {"app": "web"}.
            fields: a field selector, e.g. "metadata.name=web", or a map; the server says which fields it knows.
            invalid: "skip" leaves objects out that do not fit the class, and logs each once per change, so that
                one of them does not block the others. Whoever concludes something from an object's absence
                says "raise", or lists the Kind, whose objects always fit.
        """
        adapter = adapter_of(kind)
        bodies = await self.api.list_all(adapter.kind, namespace, selection_of(labels, fields))
        return self.misfits.decode_all(adapter, bodies, invalid)

    async def get_subresource(
        self, kind: Kind | type[Any], key: str | HasKey, subresource: str, *, namespace: str = ""
    ) -> Unstructured:
        """Read a sub-resource, e.g. "scale"."""
        body = await self.api.get(kind_of(kind), object_key(key, namespace), subresource)
        return _anything.decode(body)

    async def create(self, obj: T, *, owner: Any = None, controller: bool = True, **params: Unpack[WriteParams]) -> T:
        """Create an object; returns it as stored.

        Args:
            obj: with a name or a generateName. Not modified.
            owner: becomes the controller of the object: it is woken by the object's changes, and takes it
                along when it is deleted.
            controller: False makes it an owner like others: the object goes when the last of them is deleted.

        Raises:
            AlreadyExists: there is one of that name.
        """
        adapter, wire = wire_and_adapter(obj)
        if owner is not None:
            wire["metadata"] = {**(wire.get("metadata") or {})}
            set_owner(owner, wire, controller=controller)
        body = await self.api.create(adapter.kind, key_of(wire).namespace, wire, self.options(**params))
        return adapter.decode(body)

    async def adopt(self, obj: T, *, owner: Any, controller: bool = True, **params: Unpack[WriteParams]) -> T:
        """Make `owner` an owner of a stored object, as `owner=` does when one is created; returns it as stored.

        Args:
            obj: as it was read. Not modified; nothing is sent when `owner` is its owner already.
            controller: False makes it an owner like others.

        Raises:
            AlreadyOwned: another object is the controller.
            Conflict: the object was made anew since it was read, or its owners were changed; run again.
        """
        wire = {**as_read(obj)}  # with what earlier changes of it by this program have led to
        wire["metadata"] = {**meta_of(wire)}
        before = wire["metadata"].get("ownerReferences")
        set_owner(owner, wire, controller=controller)
        after = wire["metadata"]["ownerReferences"]
        return obj if after == before else await self.patch(obj, {"metadata": {"ownerReferences": after}}, **params)

    async def create_subresource(
        self,
        kind: Kind | type[Any],
        key: str | HasKey,
        subresource: str,
        body: Mapping[str, Any],
        *,
        namespace: str = "",
        **params: Unpack[WriteParams],
    ) -> Unstructured:
        """Post to a sub-resource that only takes: "eviction", "binding", "token"."""
        where, options = object_key(key, namespace), self.options(**params)
        return _anything.decode(await self.api.create_subresource(kind_of(kind), where, subresource, body, options))

    async def update(self, obj: T, *, subresource: str | None = None, **params: Unpack[WriteParams]) -> T:
        """Replace an object that was read; returns it as stored.

        Args:
            subresource: "status" replaces the status and nothing else.

        Raises:
            Conflict: somebody has changed it since it was read.
            UsageError: it has no resourceVersion, so it was not read.
        """
        adapter, wire = wire_and_adapter(obj)
        return adapter.decode(await self.api.update(adapter.kind, wire, subresource, self.options(**params)))

    @overload
    async def patch(
        self, target: Kind, key: str | HasKey, patch: Patch, **params: Unpack[PatchParams]
    ) -> Unstructured: ...
    @overload
    async def patch(self, target: type[T], key: str | HasKey, patch: Patch, **params: Unpack[PatchParams]) -> T: ...
    @overload
    async def patch(self, target: T, patch: Patch, **params: Unpack[PatchParams]) -> T: ...
    async def patch(self, target: Any, *args: Any, **params: Any) -> Any:
        """Change parts of an object; returns it as stored. An empty patch sends no write, it reads.

        Args:
            target: a kind, with `key`; or an object, without: then the patch changes just this one, no other of its
                name, and fails rather than replace a list that is not as it was read.
            patch: in wire form: a list of operations for "json", else a map.
            params: see `PatchParams`.

        Raises:
            NotFound: there is no such object.
            Conflict: a test of a JSON patch failed, the object was deleted and made anew since it was read, a list
                or map that the patch replaces was changed, or another manager owns an applied field.
        """
        key, patch = _patch_arguments(target, args, params)
        adapter, where = _target(target, key, params.get("namespace", ""))
        if not patch:
            return adapter.decode(await self.api.get(adapter.kind, where))
        subresource, patch_type = params.get("subresource"), params.get("type", "merge")
        options = WriteOptions(
            params.get("field_manager", self.field_manager), params.get("dry_run", False), params.get("force", False)
        )
        whole = subresource in (None, "status")
        if key is None and patch_type == "merge" and isinstance(patch, Mapping) and whole:
            change = merge_change(target, patch)
            if change.merged is not change.stored or not self.sends_all:
                return await self._change(target, change, subresource, options)
        if key is None:
            patch, patch_type = bound(target, patch, patch_type, subresource)
        body = await self.api.patch(adapter.kind, where, patch, patch_type, subresource, options)
        return (adapter if whole else _anything).decode(body)

    async def _change(self, obj: Any, change: Edit, subresource: str | None, options: WriteOptions) -> Any:
        """Carry out a change of an object; the object as stored, or itself when nothing has to change."""
        if change.merged is change.stored:
            return obj
        adapter = adapter_like(obj)
        patch, patch_type = bound_diff(change.stored, change.merged, change.field, subresource)
        body = await self.api.patch(adapter.kind, key_of(obj), patch, patch_type, subresource, options)
        if not options.dry_run:
            carried_out(obj, change, body)
        return adapter.decode(body)

    sends_all = True
    """Whether a patch that changes nothing is sent all the same. A live client sends what it is told to."""

    async def delete(
        self,
        target: Any,
        key: str | HasKey | None = None,
        *,
        namespace: str = "",
        missing_ok: bool = True,
        **params: Unpack[DeleteParams],
    ) -> bool:
        """Ask for the deletion of an object; False when it was gone already.

        An object with finalizers, or whose dependents go first, stays for a while with a deletion mark.

        Args:
            target: a kind, with `key`; or an object: then just this one is deleted, no other of its name.
            missing_ok: an object that is gone is no error.
            params: preconditions, propagation, grace period; see `Preconditions`.

        Raises:
            Conflict: a precondition does not hold.
            NotFound: it is gone, and `missing_ok` is False.
        """
        adapter, where = _target(target, key, namespace)
        if key is None:
            params.setdefault("uid", identity_of(target)["uid"] or None)
        dry_run, conditions = _conditions(params)
        try:
            await self.api.delete(adapter.kind, where, conditions, dry_run=dry_run)
        except NotFound:
            if missing_ok:
                return False
            raise
        return True

    async def delete_all(
        self,
        kind: Kind | type[Any],
        *,
        namespace: str = "",
        labels: SelectorLike = "",
        fields: SelectorLike = "",
        **params: Unpack[DeleteParams],
    ) -> None:
        """Ask for the deletion of all selected objects of a namespace, or ("") of all namespaces."""
        dry_run, conditions = _conditions(params)
        await self.api.delete_all(kind_of(kind), namespace, selection_of(labels, fields), conditions, dry_run=dry_run)

    def options(self, **params: Unpack[WriteParams]) -> WriteOptions:
        """The options of a write by this client."""
        return WriteOptions(params.get("field_manager", self.field_manager), params.get("dry_run", False))


def object_key(key: str | HasKey, namespace: str = "") -> ObjectKey:
    """The key that a caller named: a name and a namespace, or anything that has both."""
    if isinstance(key, ObjectKey):
        found: ObjectKey | None = key
    elif isinstance(key, str):
        return ObjectKey(namespace, key)
    else:
        found = named_key(key)
    if found is None:
        raise UsageError(f"{show(key)} names no object; give a name with namespace=, a Request, or an object")
    if not namespace:
        return found
    return ObjectKey(namespace or found.namespace, found.name)


_anything = adapter_of(Kind("v1", "Object"))


def wire_and_adapter(obj: T) -> tuple[Adapter[T], dict[str, Any]]:
    """How to read and write objects like this one, and its wire form."""
    adapter = adapter_like(obj)
    return adapter, adapter.encode(obj)


def _target(target: Any, key: str | HasKey | None, namespace: str) -> tuple[Adapter[Any], ObjectKey]:
    """Kind and key of what a call is about: given as two, or as one object."""
    if isinstance(target, Kind | type):
        if key is None:
            raise UsageError(f"which {kind_of(target)}? A kind needs a key beside it")
        return adapter_of(target), object_key(key, namespace)
    if key is not None:
        raise UsageError(f"{kind_of(target)} {key_of(target)} was given with another key; which one is meant?")
    return adapter_like(target), key_of(target)


def _patch_arguments(target: Any, args: tuple[Any, ...], params: dict[str, Any]) -> tuple[Any, Any]:
    """Key and patch of a call: a kind has both behind it, an object only a patch."""
    names = ["key", "patch"] if isinstance(target, Kind | type) or len(args) > 1 else ["patch"]
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or given.keys() & params.keys():
        raise UsageError(
            f"patch of {kind_of(target)}: too many arguments; a kind, a key and a patch, or an object and a patch"
        )
    return given.get("key", params.pop("key", None)), given.get("patch", params.pop("patch", None))


def _conditions(params: DeleteParams) -> tuple[bool, Preconditions]:
    return params.get("dry_run", False), Preconditions(
        params.get("uid"), params.get("resource_version"), params.get("propagation"), params.get("grace_period")
    )
