"""The CRDs of an App: those of the CustomResource classes that it names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from kopylite.app import App
from kopylite.crds.crd import ResourceClass, crds_of
from kopylite.objects import CustomResource


def crds_of_app(app: App, *, foreign: bool = False) -> list[dict[str, Any]]:
    """The CRDs of the CustomResource classes that an App names; none for an App of other kinds.

    Args:
        foreign: those that somebody else installs, too.
    """
    found = all_versions(classes_in(kinds_named_by(app)))
    return crds_of(found if foreign else own_of(found))


def own_of(classes: Iterable[ResourceClass]) -> list[ResourceClass]:
    """Those classes whose CRDs nobody else installs."""
    return [cls for cls in classes if cls.declaration and not cls.declaration.foreign]


def classes_in(things: Iterable[Any]) -> list[ResourceClass]:
    """The CustomResource classes among some things."""
    return [
        thing
        for thing in things
        if isinstance(thing, type) and issubclass(thing, CustomResource) and thing.declaration is not None
    ]


def all_versions(found: list[ResourceClass]) -> list[ResourceClass]:
    """The classes, and those beside them in their modules that declare other versions of the same kinds."""
    kinds = {(cls.declaration.group, cls.declaration.kind) for cls in found if cls.declaration}
    beside = [
        cls
        for place in {cls.__module__: None for cls in found}
        for cls in classes_in(vars(sys.modules[place]).values())
    ]
    return [
        *found,
        *(cls for cls in beside if cls.declaration and (cls.declaration.group, cls.declaration.kind) in kinds),
    ]


def kinds_named_by(thing: Any) -> Iterable[Any]:
    """The classes that a class or an App names."""
    if not isinstance(thing, App):
        return [thing]
    watched = [watch.kind for spec in thing.controllers for watch in (*spec.owns, *spec.watches)]
    hooked = [
        *(spec.kind for spec in thing.hooks),
        *(kind for spec in thing.converters for kind in (spec.kind, *spec.versions)),
    ]
    return [*(spec.kind for spec in thing.controllers), *watched, *(cached.kind for cached in thing.cached), *hooked]
