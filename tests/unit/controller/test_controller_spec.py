from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kopylite.controller import ControllerSpec, watch
from kopylite.errors import RegistrationError
from kopylite.objects import Kind
from kopylite.reconcile import Context, Request, Result

WIDGET = Kind("example.com/v1", "Widget")


async def reconcile(ctx: Context, request: Request) -> Result | None:
    return None


class Operator:
    async def method(self, ctx: Context, request: Request) -> None: ...

    async def __call__(self, ctx: Context, request: Request) -> None: ...


async def configured(setting: str, ctx: Context, request: Request) -> None: ...


def spec(**options: Any) -> ControllerSpec:
    return ControllerSpec(**{"name": "widget", "kind": WIDGET, "reconcile": reconcile} | options)


@pytest.mark.parametrize(
    "function", [reconcile, Operator().method, Operator(), functools.partial(configured, "setting")], ids=repr
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
