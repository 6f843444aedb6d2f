"""assert_converts: the law of conversion, for the converters of users."""

from __future__ import annotations

import gc
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from kopylite.boundary import printable
from kopylite.crds.crd import version_schema
from kopylite.errors import DecodeError, UsageError
from kopylite.objects import Kind, adapter_of, kind_of, wire_of
from kopylite.objects.adapters import meta_of
from kopylite.objects.modelcodec import codec_of
from kopylite.objects.resource import CustomResource
from kopylite.objects.yamlwrite import to_yaml
from kopylite.webhooks import ConverterSpec
from kopylite.webhooks.conversion import ConversionFailed, ConversionRequest, Conversions, steps_of
from kopylite.webhooks.declarations import converters_known
from kopylite.webhooks.edits import same

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from kopylite.app import App

Object = dict[str, Any]
DeclaredVersion = Kind | type[Any]

# What no converter would write by itself.
_METADATA: Object = {
    "namespace": "default", "uid": "9d3e0f54-6c6f-4a55-b1a0-000000000000", "labels": {"kept": "label"},
    "annotations": {"kept": "annotation"}, "finalizers": ["example.com/kept"],
}  # fmt: skip
_ABSENT = object()
# What is the same as an absent field.
_NOTHING: tuple[Any, ...] = (None, [], {})


def assert_converts(kind: DeclaredVersion, *, app: App | None = None, examples: Iterable[Any] = ()) -> None:
    """Prove that the converters of a kind lose nothing, as the API server needs it: see `App.converter`.

        def test_orders_survive_their_conversion() -> None:
            assert_converts(Order)

    An object of any version, converted to any other and back, by way of the storage version, is the same object. A
    converter makes the same of the same object each time, however many are in one review and in whatever order, and
    counts on no change of the metadata, which is kept as it came.

    That is tried with the examples, and, where hypothesis is installed, with as many objects as its profile wants
    (`max_examples`), made from the schemas of the versions that are classes. What a class or its rules refuse is not
    tried.

    Args:
        kind: the class or Kind of any of the versions.
        app: whose converters; None: of the only App that converts the kind.
        examples: objects of any of the versions: of their classes, or as on the wire.

    Raises:
        AssertionError: names the conversion and the field, with the smallest object that was found.
        UsageError: there is no converter of the kind, or there are those of several Apps; an example is of none of the
            versions; or there is nothing to try: no examples, and no hypothesis, or no class.
    """
    law = _Law(_specs_of(kind, app))
    given = [law.known(example) for example in examples]
    for wire in given:
        _require(law, [wire])
    if importlib.util.find_spec("hypothesis") is not None and law.classes:
        _search(law)
    elif not given:
        why = "hypothesis is not installed" if law.classes else "its versions are Kinds, which tell no schema"
        name = kind_of(kind).kind
        raise UsageError(f"assert_converts({name}): give examples=[...], for there is nothing to try: {why}")


def _specs_of(kind: DeclaredVersion, app: App | None) -> list[ConverterSpec]:
    """The converters of a kind, of one App."""

    def matching() -> list[ConverterSpec]:
        specs = converters_known() if app is None else list(app.converters)
        stored = [spec.kind for spec in specs if kind in (spec.kind, *spec.versions)]
        return [spec for spec in specs if spec.kind in stored]

    name = kind_of(kind).kind
    found = matching()
    if _overlap(found):
        gc.collect()  # of Apps that are no more
        found = matching()
    if not found:
        where = "no App converts" if app is None else f"app {app.name!r} does not convert"
        raise UsageError(f"assert_converts({name}): {where} it: declare that with @app.converter")
    if _overlap(found):
        raise UsageError(f"assert_converts({name}): several Apps convert it; say which: app=...")
    return found


def _overlap(specs: Sequence[ConverterSpec]) -> bool:
    versions = [version for spec in specs for version in spec.versions]
    return len(set(versions)) < len(versions)


@dataclass(frozen=True, slots=True)
class _Problem:
    text: str
    obj: Object
    cause: BaseException | None = None


class _Law:
    """What has to hold of objects, and whether it does.

    Attributes:
        versions: by apiVersion, how each is declared; the storage version first.
        classes: those of them that tell a schema.
    """

    def __init__(self, specs: Sequence[ConverterSpec]) -> None:
        self._written: list[str] = []
        watched = [msgspec.structs.replace(spec, function=self._watched(spec.function)) for spec in specs]
        self._conversions = Conversions(watched)
        [versions] = self._conversions.kinds.values()
        self.versions: dict[str, DeclaredVersion] = {kind_of(version).api_version: version for version in versions}
        self.classes = [each for each in versions if isinstance(each, type) and issubclass(each, CustomResource)]

    def known(self, example: Any) -> Object:
        """An example as on the wire.

        Raises:
            UsageError: it is of none of the versions.
        """
        wire = wire_of(example)
        kind = kind_of(next(iter(self.versions.values()))).kind
        if wire.get("apiVersion") not in self.versions or wire.get("kind") != kind:
            found = f"{wire.get('apiVersion')} {wire.get('kind')}"
            raise UsageError(
                f"assert_converts: an example is a {found}; it has to be of {', '.join(self.versions)} {kind}"
            )
        own = {name: value for name, value in (wire.get("metadata") or {}).items() if value}
        return wire | {"metadata": {"name": "example", **_METADATA, **own}}

    def problem(self, objects: Sequence[Object]) -> _Problem | None:
        """What does not hold of some objects of one review; None: all does."""
        alone = (self._lost(obj, other) for obj in objects for other in self.versions if other != obj["apiVersion"])
        together = (self._mixed(objects, version) for version in self.versions)
        return next((found for each in (alone, together) for found in each if found is not None), None)

    def _lost(self, obj: Object, other: str) -> _Problem | None:
        start = obj["apiVersion"]
        way = f"{_short(start)} -> {_short(other)}"
        there = self._converted(obj, other, way, obj)
        if isinstance(there, _Problem):
            return there
        if self._converted(obj, other, way, obj) != there:
            return _Problem(f"{way} makes another object of the same one the second time", obj)
        way = f"{way} -> {_short(start)}"
        back = self._converted(there, start, way, obj)
        if isinstance(back, _Problem):
            return back
        difference = next(_differences(self._complete(obj), self._complete(back)), None)
        return None if difference is None else _Problem(f"{way} {difference}", obj)

    def _converted(self, wire: Object, version: str, way: str, about: Object) -> Object | _Problem:
        self._written.clear()
        try:
            converted = self._conversions.convert(_raw(wire), version)
        except ConversionFailed as error:
            cause = error.__cause__
            why = f"{error}" if cause is None else f"{type(cause).__name__}: {cause}"
            return _Problem(f"{way} fails: {why}", about, cause)
        if self._written:
            return _Problem(f"{way} changes metadata.{self._written[0]}; metadata is kept as it came", about)
        return converted

    def _mixed(self, objects: Sequence[Object], version: str) -> _Problem | None:
        """One review of several, as the API server sends it for a list."""
        alone: list[Object] = []
        for obj in objects:
            one = self._converted(obj, version, f"{_short(obj['apiVersion'])} -> {_short(version)}", obj)
            if isinstance(one, _Problem):
                return one
            alone.append(one)
        request = ConversionRequest("review", version, tuple(msgspec.Raw(_raw(obj)) for obj in objects))
        try:
            together = list(steps_of(self._conversions, request))
        except ConversionFailed as error:
            return _Problem(f"a review of several, to {_short(version)}, fails: {error}", objects[-1], error.__cause__)
        wrong = (obj for obj, one, other in zip(objects, alone, together, strict=True) if one != other)
        text = f"to {_short(version)}, what is made of an object depends on those before it"
        return next((_Problem(text, obj) for obj in wrong), None)

    def _complete(self, wire: Object) -> Object:
        """With the defaults of its class; what the class does not know stays, since a CRD may know it."""
        version = self.versions[wire["apiVersion"]]
        if version not in self.classes:
            return wire
        obj = adapter_of(version).decode(_raw(wire))
        dump = codec_of(type(obj)).serializer.to_python
        return _filled(wire, dump(obj, mode="json", by_alias=True, exclude_none=True, round_trip=True))  # type: ignore[no-any-return]

    def _watched(self, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """A converter whose changes of the metadata are noted."""

        def convert(obj: Any, to: Any) -> Any:
            before = json.loads(json.dumps(meta_of(obj)))
            result = function(obj, to)
            after = meta_of(result)
            self._written += [name for name, value in after.items() if value and value != before.get(name)]
            return result

        return convert


def _search(law: _Law) -> None:
    """Look for objects that break the law, and then for the smallest."""
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import NoSuchExample, Unsatisfiable

    phases = (Phase.generate, Phase.shrink)
    tries = settings(database=None, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))
    objects = st.lists(st.one_of([_objects_of(cls) for cls in law.classes]), min_size=1, max_size=2)
    try:
        broken = find(objects, lambda found: law.problem(_named(found)) is not None, settings=tries)
    except NoSuchExample:
        return
    except Unsatisfiable:
        names = ", ".join(cls.__name__ for cls in law.classes)
        raise UsageError(f"assert_converts: found no object that {names} take; give examples=[...]") from None
    _require(law, _named(broken))


def _objects_of(cls: type[Any]) -> SearchStrategy[Object]:
    """Objects of a version as the API server stores them."""
    from kopylite.apiserver.crd.custom_resources import CustomResourceStrategy
    from kopylite.testing.examples import ExampleMaker

    adapter = adapter_of(cls)
    schema = version_schema(cls)
    kind = adapter.kind
    rules = CustomResourceStrategy(kind.api_version, kind.kind, schema, has_status=False)
    named = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "example", **_METADATA}}
    parts = {name: part for name, part in schema["properties"].items() if name not in named}

    def stored(wire: Object) -> bool:
        try:
            adapter.decode(_raw(wire))
        except DecodeError:
            return False
        return not rules.validate_create(wire)

    made = ExampleMaker().properties_of({**schema, "properties": parts})
    return made.map(lambda value: {**named, **value}).filter(stored)


def _named(objects: Sequence[Object]) -> list[Object]:
    return [{**obj, "metadata": {**obj["metadata"], "name": f"example-{n}"}} for n, obj in enumerate(objects, 1)]


def _require(law: _Law, objects: Sequence[Object]) -> None:
    problem = law.problem(objects)
    if problem is not None:
        shown = {name: part for name, part in problem.obj.items() if name != "metadata"}
        document = to_yaml([shown], start=False)
        raise AssertionError(f"{shown['kind']}: {problem.text}\nof this object:\n{document}") from problem.cause


def _filled(wire: Any, typed: Any) -> Any:
    if isinstance(wire, dict) and isinstance(typed, dict):
        unknown = {name: value for name, value in wire.items() if name not in typed and value is not None}
        known = {name: _filled(wire[name], value) if name in wire else value for name, value in typed.items()}
        return {**known, **unknown}
    if isinstance(wire, list) and isinstance(typed, list) and len(wire) == len(typed):
        return [_filled(*pair) for pair in zip(wire, typed, strict=True)]
    return typed


def _differences(was: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two wire forms differ: in an object first what is lost."""
    if isinstance(was, dict) and isinstance(now, dict):
        order = [*(name for name in was if name not in now), *was, *now]
        steps = [(f"{path}.{name}" if path else name, name) for name in dict.fromkeys(order)]
        for below, name in steps:
            yield from _differences(was.get(name, _ABSENT), now.get(name, _ABSENT), below)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, pair in enumerate(zip(was, now, strict=True)):
            yield from _differences(*pair, f"{path}[{index}]")
    elif now is _ABSENT:
        if was not in _NOTHING:
            yield f"loses {path}, which was {_shown(was)}"
    elif was is _ABSENT:
        if now not in _NOTHING:
            yield f"makes up {path}: {_shown(now)}"
    elif not same(was, now):
        yield f"changes {path} from {_shown(was)} to {_shown(now)}"


def _shown(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False), 300)


def _short(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def _raw(wire: Object) -> bytes:
    return json.dumps(wire).encode()
