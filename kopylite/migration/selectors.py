"""Selectors: from what a declaration of kopf calls a resource to the kind of kopylite. Pure."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kopylite.migration.constants import Constants, elements_of, text_of
from kopylite.objects.builtin_kinds import builtin_kinds
from kopylite.objects.kinds import Kind

_VERSION = re.compile(r"v\d+((alpha|beta)\d+)?")
_PLACES = ("group", "version", "plural", "kind", "singular", "shortcut", "category")
# What kubectl calls the built-in kinds that operators follow.
_SHORT_NAMES = """
    cm:ConfigMap po:Pod svc:Service ns:Namespace no:Node deploy:Deployment sts:StatefulSet ds:DaemonSet rs:ReplicaSet
    ing:Ingress cj:CronJob sa:ServiceAccount pvc:PersistentVolumeClaim pv:PersistentVolume ep:Endpoints ev:Event
    crd:CustomResourceDefinition hpa:HorizontalPodAutoscaler netpol:NetworkPolicy sc:StorageClass
"""
# Groups that were moved, from what older operators say.
_MOVED = {"extensions": {"Ingress": "networking.k8s.io", "Deployment": "apps", "DaemonSet": "apps"}}


@dataclass(frozen=True, slots=True)
class NamedResource:
    """One kind that is known for certain: built in, or of a CRD. The first of its versions is the one that is meant."""

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    singular: str = ""
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        return {self.kind, self.plural, self.singular or self.kind.lower(), *self.short}


@dataclass(frozen=True, slots=True)
class KindRef:
    """A kind as the written module names it.

    Args:
        kind: e.g. "KopfExample".
        api_version: an expression of Python, `"kopf.dev/v1"` with its quotes.
        doubt: why it may be wrong; "": it is certain.
    """

    kind: str
    api_version: str
    doubt: str = ""

    @property
    def group(self) -> str:
        """ "" of the core group, and where only the program knows it."""
        found = ast.literal_eval(self.api_version) if self.api_version[:1] in "\"'" else ""
        return str(found).rpartition("/")[0]


def catalogue(crds: Iterable[Mapping[str, Any]] = ()) -> list[NamedResource]:
    """The resources of CRDs, and the built-in ones: the newest stable version of each first."""
    return [*(resource for resource in map(_of_crd, crds) if resource is not None), *_builtin()]


@functools.cache
def _builtin() -> tuple[NamedResource, ...]:
    groups: dict[tuple[str, str], list[Kind]] = {}
    for kind in builtin_kinds():
        groups.setdefault((kind.group, kind.kind), []).append(kind)
    short = {kind: name for name, _, kind in (pair.partition(":") for pair in _SHORT_NAMES.split())}
    found = []
    for (group, name), kinds in groups.items():
        versions = sorted((kind.version for kind in kinds), key=_age)
        marks = (short[name],) if name in short else ()
        found.append(NamedResource(group, tuple(versions), name, kinds[0].plural or "", name.lower(), marks))
    return tuple(found)


def kinds_of(
    args: Sequence[ast.expr], options: Mapping[str, ast.expr], constants: Constants, known: Sequence[NamedResource]
) -> list[KindRef] | str:
    """The kinds that a declaration is about; a text: why that is not known."""
    flat: list[ast.expr] = []
    for arg in args:
        inner = elements_of(arg.value, constants) if isinstance(arg, ast.Starred) else [arg]
        if inner is None:
            return f"{ast.unparse(arg)} is known only when the program runs"
        flat += inner
    named = {place: options[place] for place in _PLACES if place in options and not _is_none(options[place])}
    texts = {place: text_of(node, constants) for place, node in named.items()}
    problem = _positional(flat, constants, named, texts)
    if problem:
        return problem
    name = next(
        (place for place in ("plural", "kind", "singular", "shortcut", "category", "any") if place in named), ""
    )
    if not name:
        return "it names no resource"
    if texts[name] is None:
        return f"{ast.unparse(named[name])} is known only when the program runs"
    return _looked_up(name, str(texts[name]), named, texts, known)


def _positional(
    flat: Sequence[ast.expr], constants: Constants, named: dict[str, ast.expr], texts: dict[str, str | None]
) -> str:
    """Take up to three arguments for what kopf takes them for. Returns what is wrong with them."""
    if len(flat) > 3:
        return "it has more than three arguments"
    given = [(node, text_of(node, constants)) for node in flat]
    if len(given) == 3:
        places = ["group", "version", "any"]
    elif len(given) == 2:
        first = given[0][1]
        if first is not None and "/" in first:
            group, _, version = first.rpartition("/")
            given[:1] = [(ast.Constant(group), group), (ast.Constant(version), version)]
            places = ["group", "version", "any"]
        elif first is not None and _VERSION.fullmatch(first):
            given[:0] = [(ast.Constant(""), "")]
            places = ["group", "version", "any"]
        else:
            places = ["group", "any"]
    else:
        places = ["any"] * len(given)
        if given and given[0][1] is not None and "." in given[0][1]:
            name, _, rest = given[0][1].partition(".")
            version, _, group = rest.partition(".")
            if _VERSION.fullmatch(version):
                given = [(ast.Constant(text), text) for text in (name, version, group)]
                places = ["any", "version", "group"]
            else:
                given = [(ast.Constant(text), text) for text in (name, rest)]
                places = ["any", "group"]
    for place, (node, text) in zip(places, given, strict=True):
        named[place], texts[place] = node, text
    return ""


def _looked_up(
    place: str,
    name: str,
    named: Mapping[str, ast.expr],
    texts: Mapping[str, str | None],
    known: Sequence[NamedResource],
) -> list[KindRef] | str:
    group, version = texts.get("group"), texts.get("version")
    fitting = [each for each in known if _is_called(each, place, name)]
    if "group" in named and group is not None:
        moved = {_MOVED[group].get(each.kind, group) for each in fitting} if group in _MOVED else {group}
        fitting = [each for each in fitting if each.group in moved]
    if fitting and place != "category":
        fitting = fitting[:1]
    if fitting:
        return [KindRef(each.kind, repr(_joined(each.group, _version(each, version)))) for each in fitting]
    kind = name if place == "kind" or name[:1].isupper() else _guessed(name)
    doubt = f"the kind of {name!r} is a guess: no CRD of it was found; name its file with --crds"
    if "group" not in named:
        return [
            KindRef(
                kind, repr(f"unknown.example.com/{version or 'v1'}"), f"the group of {name!r} is not known; " + doubt
            )
        ]
    if group is None or ("version" in named and version is None):
        return [KindRef(kind, _expression(named, texts), doubt)]
    return [KindRef(kind, repr(_joined(group, version or "v1")), doubt)]


def _expression(named: Mapping[str, ast.expr], texts: Mapping[str, str | None]) -> str:
    parts = []
    for place, default in (("group", ""), ("version", "v1")):
        text = texts.get(place)
        node = named.get(place)
        parts.append(text if text is not None else "{" + ast.unparse(node) + "}" if node is not None else default)
    return (
        f'f"{parts[0]}/{parts[1]}"'.replace("{{", "{").replace("}}", "}")
        if '"' not in "".join(parts)
        else (f"f'{parts[0]}/{parts[1]}'")
    )


def _is_called(each: NamedResource, place: str, name: str) -> bool:
    if place == "category":
        return name in each.categories
    if place == "any":
        return name in each.names
    of_place = {"plural": {each.plural}, "kind": {each.kind}, "singular": {each.singular}, "shortcut": set(each.short)}
    return name in of_place[place]


def _version(each: NamedResource, asked: str | None) -> str:
    """The version that is asked for, unless it is one of a built-in kind that is no longer served."""
    known = asked in each.versions or ("." in each.group and not _is_builtin(each))
    return asked if asked and known else each.versions[0]


def _is_builtin(each: NamedResource) -> bool:
    return each.group.endswith(".k8s.io")


def _of_crd(crd: Mapping[str, Any]) -> NamedResource | None:
    try:
        spec, names = crd["spec"], crd["spec"]["names"]
        versions = [each for each in spec.get("versions") or () if each.get("served", True)]
        ordered = [each["name"] for each in sorted(versions, key=lambda each: not each.get("storage"))]
        ordered = ordered or [spec["version"]]
        lists = [tuple(map(str, names.get(key) or ())) for key in ("shortNames", "categories")]
        return NamedResource(
            str(spec["group"]), tuple(map(str, ordered)), str(names["kind"]), str(names["plural"]),
            str(names.get("singular") or ""), *lists,
        )  # fmt: skip
    except (KeyError, TypeError, AttributeError):
        return None


def _guessed(plural: str) -> str:
    singular = plural
    for end, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if plural.endswith(end) and len(plural) > len(end):
            singular = plural[: -len(end)] + instead
            break
    return re.sub(r"\W", "", singular[:1].upper() + singular[1:]) or "Unknown"


def _joined(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _age(version: str) -> tuple[int, str]:
    """Stable versions first, the newest of them at the front."""
    stable = re.fullmatch(r"v(\d+)", version)
    return (-int(stable[1]), "") if stable else (0, version)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
