from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import pytest

from kopylite.controller import Channel, ControllerSpec, Periodic, channel, periodic, watch
from kopylite.errors import RegistrationError
from kopylite.objects import Kind
from kopylite.reconcile import Context, Request, Result
from kopylite.triggers import field_changed, generation_changed

WIDGET = Kind("example.com/v1", "Widget")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


class Operator:
    async def method(self, ctx: Context, request: Request) -> None: ...

    async def __call__(self, ctx: Context, request: Request) -> None: ...


async def configured(setting: str, ctx: Context, request: Request) -> None: ...


def spec(name: Any = "widget", kind: Any = WIDGET, reconcile: Any = reconcile, **options: Any) -> ControllerSpec:
    """Of whatever somebody may pass."""
    return ControllerSpec(name=name, kind=kind, reconcile=reconcile, **options)


@pytest.mark.parametrize(
    "function",
    [reconcile, Operator().method, Operator(), functools.partial(configured, "setting")],
    ids=["function", "method", "object", "partial"],
)
def test_anything_that_is_awaited_with_two_arguments_may_be_a_reconcile(function: Any) -> None:
    assert spec(reconcile=function).reconcile is function


def test_a_plain_def_is_refused_with_the_async_form() -> None:
    def my_reconcile(ctx: Context, request: Request) -> None: ...

    with pytest.raises(RegistrationError) as refusal:
        spec(reconcile=my_reconcile)
    text = str(refusal.value)
    assert "plain def" in text
    assert "async def my_reconcile(ctx: Context, request: Request) -> Result | None:" in text
    assert "run_in_thread" in text


async def generator(ctx: Context, request: Request) -> AsyncIterator[None]:
    yield


async def lonely(ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (generator, "yields"),
        (lonely, "two arguments"),
        ("reconcile", "no function"),
        (Operator, "no function"),
    ],
)
def test_other_things_are_refused_with_what_is_wrong(function: Any, complaint: str) -> None:
    with pytest.raises(RegistrationError, match=complaint):
        spec(reconcile=function)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": ""}, "needs a name"),
        ({"workers": 0}, "workers"),
        ({"timeout": 0}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RegistrationError, match=complaint):
        spec(**options)


def test_a_map_function_must_be_async_too() -> None:
    async def users_of(obj: Any, ctx: Context) -> list[Request]:
        return []

    assert watch(WIDGET, map=users_of, labels="a=b").labels == "a=b"
    with pytest.raises(RegistrationError, match="map function"):
        watch(WIDGET, map=lambda obj, ctx: [])  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("wrong", "way_out"),
    [
        ([generation_changed], r"predicates=generation_changed \| labels_changed"),
        (lambda event: True, r"wrap the function: predicates=when\(function\)"),
    ],
    ids=["list", "function"],
)
def test_predicates_are_one_predicate_and_the_message_shows_how_to_get_it(wrong: Any, way_out: str) -> None:
    with pytest.raises(RegistrationError, match=f"controller 'widget'.*{way_out}"):
        spec(predicates=wrong)
    with pytest.raises(RegistrationError, match=rf"watch\(Widget.example.com/v1\).*{way_out}"):
        watch(WIDGET, predicates=wrong)


def test_a_timer_has_an_async_function_of_the_context_and_a_period() -> None:
    async def keys(ctx: Context) -> list[Request]:
        return []

    assert periodic(keys, every=timedelta(minutes=1)) == Periodic(keys, 60.0)
    with pytest.raises(RegistrationError, match="every must be above 0"):
        periodic(keys, every=0)
    with pytest.raises(RegistrationError, match=r"async def function\(ctx: Context\) -> list\[Request\]"):
        periodic(lambda ctx: [], every=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(RegistrationError, match=r"'reconcile' cannot be called with one argument \("):
        periodic(reconcile, every=1)  # type: ignore[arg-type]


def test_a_channel_yields() -> None:
    async def keys(ctx: Context) -> AsyncIterator[Request]:
        yield Request("", "a")

    async def silent(ctx: Context) -> None: ...

    def other(first: Any, second: Any) -> AsyncIterator[Request]:
        raise NotImplementedError

    assert channel(keys) == Channel(keys)
    with pytest.raises(
        RegistrationError, match=r"(?s)'silent' has to yield Requests.*async def silent\(ctx: Context\)"
    ):
        channel(silent)  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match="'other' cannot be called with one argument"):
        channel(other)  # type: ignore[arg-type]


def test_a_label_selector_is_read_when_it_is_written() -> None:
    assert spec(labels="app=web,tier in (a, b)").labels == watch(WIDGET, labels="app=web,tier in (a, b)").labels
    with pytest.raises(RegistrationError, match=r"controller 'widget': .*a in b.*tier in \(a, b\)"):
        spec(labels="a in b")
    with pytest.raises(RegistrationError, match=r"watch\(Widget.example.com/v1\): .*a in b"):
        watch(WIDGET, labels="a in b")


def plain(ctx: Any, request: Request) -> None: ...


def test_each_thread_is_a_worker() -> None:
    assert spec(reconcile=plain, threads=1).workers == 1
    assert spec(reconcile=plain, threads=3).workers == 3
    assert spec(reconcile=plain, threads=3, workers=3).workers == 3
    with pytest.raises(RegistrationError, match="threads or workers, not both"):
        spec(reconcile=plain, threads=3, workers=2)
    with pytest.raises(RegistrationError, match="threads"):
        spec(reconcile=plain, threads=0)
    for many in ({"workers": 10**9}, {"reconcile": plain, "threads": 10**9}):
        with pytest.raises(RegistrationError, match="must be at most 100000"):
            spec(**many)


class Callable:
    """Its instances are functions for threads."""

    def __call__(self, ctx: Any, request: Request) -> None: ...


async def awaited(ctx: Any, request: Request) -> None: ...


def too_few(ctx: Any) -> None: ...


def yielding(ctx: Any, request: Request) -> Iterator[None]:
    yield


@pytest.mark.parametrize("good", [plain, Callable(), functools.partial(plain), lambda ctx, request: None])
def test_threads_run_whatever_can_be_called_with_a_context_and_a_request(good: Any) -> None:
    assert spec(reconcile=good, threads=1).threads == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (awaited, "is for a reconcile that is a plain def, and 'awaited' is none"),
        (functools.partial(awaited), "is for a reconcile that is a plain def"),
        (yielding, "is for a reconcile that is a plain def"),
        (too_few, "reconcile 'too_few' cannot be called with"),
        (Callable, "is no function"),
        ("plain", "is no function"),
    ],
)
def test_threads_run_nothing_else(wrong: Any, words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        spec(reconcile=wrong, threads=1)


def test_a_predicate_of_a_watch_sees_what_is_watched() -> None:
    assert watch(WIDGET, metadata_only=True, predicates=field_changed("metadata.labels"))
    assert watch(WIDGET, predicates=field_changed("spec.size"))
    with pytest.raises(RegistrationError, match=r"watch\(Widget.*'spec.size' is not watched"):
        watch(WIDGET, metadata_only=True, predicates=field_changed("spec.size"))


def test_a_watch_of_what_is_owned_has_one_way_to_say_whose_it_is() -> None:
    async def owners(obj: Any, ctx: Context) -> list[Request]:
        return []

    with pytest.raises(RegistrationError, match="any_owner=True and map= both say"):
        watch(WIDGET, map=owners, any_owner=True)


def test_a_field_selector_is_a_text() -> None:
    with pytest.raises(RegistrationError, match="fields"):
        watch(WIDGET, fields=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("flag", ["leader", "failure_events", "paused_condition"])
@pytest.mark.parametrize("wrong", [None, 1, "yes"])
def test_what_is_yes_or_no_is_not_guessed(flag: str, wrong: Any) -> None:
    with pytest.raises(RegistrationError, match=flag):
        spec(**{flag: wrong})
    for right in (True, False):
        assert getattr(spec(**{flag: right}), flag) is right


@pytest.mark.parametrize("flag", ["metadata_only", "any_owner"])
def test_nor_is_it_of_a_watch(flag: str) -> None:
    wrong: dict[str, Any] = {flag: 1}
    right: dict[str, Any] = {flag: True}
    with pytest.raises(RegistrationError, match=flag):
        watch(WIDGET, **wrong)
    assert getattr(watch(WIDGET, **right), flag) is True


def test_a_rate_limit_is_one() -> None:
    with pytest.raises(RegistrationError, match="rate_limit is a RateLimit"):
        spec(rate_limit=5)
