"""The arguments of kopf's handlers, from an object as kopylite reads it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Self

from kopylite.errors import TerminalError
from kopylite.objects import Unstructured


class Meta(dict[str, Any]):
    """The metadata of an object: a dict, with attributes for what is asked for most."""

    @property
    def name(self) -> str | None:
        return self.get("name")

    @property
    def namespace(self) -> str | None:
        return self.get("namespace")

    @property
    def uid(self) -> str | None:
        return self.get("uid")

    @property
    def labels(self) -> dict[str, str]:
        return self.get("labels") or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.get("annotations") or {}

    @property
    def creation_timestamp(self) -> str | None:
        return self.get("creationTimestamp")

    @property
    def deletion_timestamp(self) -> str | None:
        return self.get("deletionTimestamp")


class Body(Unstructured):
    """An object: a dict, with `spec`, `status` and `meta` as attributes, each {} where it is absent."""

    __slots__ = ()

    @property
    def metadata(self) -> Meta:
        return Meta(super().metadata)

    @property
    def meta(self) -> Meta:
        return self.metadata


class PatchMeta(dict[str, Any]):
    """The metadata of a patch: `labels` and `annotations` come into being when they are asked for."""

    @property
    def labels(self) -> dict[str, Any]:
        found: dict[str, Any] = self.setdefault("labels", {})
        return found

    @property
    def annotations(self) -> dict[str, Any]:
        found: dict[str, Any] = self.setdefault("annotations", {})
        return found


class HandlerPatch(dict[str, Any]):
    """What a handler wants changed in its object: a merge patch whose parts come into being when they are asked for."""

    @property
    def spec(self) -> dict[str, Any]:
        return self._part("spec")

    @property
    def status(self) -> dict[str, Any]:
        return self._part("status")

    @property
    def metadata(self) -> PatchMeta:
        found = self.get("metadata")
        if not isinstance(found, PatchMeta):
            found = self["metadata"] = PatchMeta(found or {})
        return found

    @property
    def meta(self) -> PatchMeta:
        return self.metadata

    def taken(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What there is to write to the object itself, and to its status, once. Empty parts are nothing."""
        status = self.pop("status", None) or {}
        parts = {key: value for key, value in self.items() if value != {}}
        metadata = {key: value for key, value in (parts.pop("metadata", None) or {}).items() if value != {}}
        self.clear()
        return {**parts, **({"metadata": metadata} if metadata else {})}, status

    def _part(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.get(name)
        if found is None:
            found = self[name] = {}
        return found


class Memo(dict[str, Any]):
    """kopf's Memo: a dict whose keys are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None


class NotMoved(TerminalError):
    """A handler has used what kopylite has not got. It has to be rewritten, and is called until then."""


class Unknown:
    """Stands for what kopf knew and kopylite does not: `old`, `diff`. It can be printed; else it is a TerminalError.

    None, or an empty diff, would be a wrong answer, which a handler might act on.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"(unknown {self._name})"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotMoved(
            f"kopf's `{self._name}` is not known here: a reconcile is told no changes. Compare the object with what it "
            "stands for, and rewrite this handler; see docs/from-kopf.md"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copy, pickle and the like ask for these
        self._refuse()

    __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __sub__ = __rsub__ = __add__ = __radd__ = __call__ = _refuse
    __hash__ = None  # type: ignore[assignment]


class Missing:
    """Stands for a name of kopf that has no counterpart here: a TerminalError where something is made of its value.

    It can be called, inherited from, and asked for attributes, so that a module which names it can be imported.
    """

    def __init__(self, name: str, place: str) -> None:
        self._name, self._place = name, place

    def __repr__(self) -> str:
        return f"(missing {self._name})"

    def __call__(self, *_: Any, **__: Any) -> Missing:
        return self

    def __getattr__(self, name: str) -> Missing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self._name}.{name}", self._place)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return ()

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise NotMoved(f"{self._place}: {self._name} has no counterpart in kopylite; the report says what to do")

    __getitem__ = __iter__ = __len__ = __bool__ = __contains__ = _refuse
    __await__ = __enter__ = __exit__ = __aenter__ = __aexit__ = _refuse


def at(obj: Any, path: str | tuple[str, ...] | list[str]) -> tuple[bool, Any]:
    """The value at a path such as "spec.items", and whether there is one."""
    for name in path.split(".") if isinstance(path, str) else path:
        if not isinstance(obj, Mapping) or name not in obj:
            return False, None
        obj = obj[name]
    return True, obj


class Views:
    """An object's parts as arguments of a handler. They are the same dicts for as long as the Views live, so a daemon
    sees what a later `show` brings."""

    def __init__(self, obj: Unstructured) -> None:
        self.body = Body()
        self.meta, self.spec, self.status = Meta(), dict[str, Any](), dict[str, Any]()
        self.labels, self.annotations = dict[str, str](), dict[str, str]()
        self.show(obj)

    def show(self, obj: Unstructured) -> Self:
        """Show a newer state of the object."""
        for view, part in (
            (self.body, obj),
            (self.meta, obj.metadata),
            (self.spec, obj.spec),
            (self.status, obj.status),
            (self.labels, obj.labels),
            (self.annotations, obj.annotations),
        ):
            view.clear()
            view.update(part)
        return self

    def arguments(self) -> dict[str, Any]:
        """By kopf's names."""
        return {
            "body": self.body,
            "meta": self.meta,
            "spec": self.spec,
            "status": self.status,
            "labels": self.labels,
            "annotations": self.annotations,
            "name": self.meta.name,
            "namespace": self.meta.namespace,
            "uid": self.meta.uid,
        }
