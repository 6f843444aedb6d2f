from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from kopylite.app import App
from kopylite.client.selecting import label_selector_text
from kopylite.controller import Timer, periodic, watch
from kopylite.errors import RegistrationError, UsageError
from kopylite.manager import Options
from kopylite.objects import CustomResource, Kind, Unstructured
from kopylite.reconcile import Context, Request, Result


class ShopSpec(BaseModel):
    image: str


class ShopStatus(BaseModel):
    ready: bool = False


class Shop(CustomResource[ShopSpec, ShopStatus], group="example.com", version="v1"):
    """A shop."""


Deployment = Kind("apps/v1", "Deployment")
ConfigMap = Kind("v1", "ConfigMap")


async def nothing(ctx: Context, request: Request) -> Result | None:
    return None


async def shops_of(config_map: Unstructured, ctx: Context) -> list[Request]:
    return []


def test_a_reconciler_is_recorded_in_its_app_and_the_function_stays_what_it_was() -> None:
    app = App("shops")
    decorated = app.reconciler(
        Shop, owns=[Deployment], watches=[watch(ConfigMap, map=shops_of)], workers=4, timeout=None, max_retries=3
    )(nothing)
    assert decorated is nothing
    [spec] = app.controllers
    assert (spec.name, spec.kind, spec.workers, spec.timeout, spec.max_retries) == ("shop", Shop, 4, None, 3)
    assert [owned.kind for owned in spec.owns] == [Deployment]
    assert [(watched.kind, watched.map) for watched in spec.watches] == [(ConfigMap, shops_of)]


def test_apps_know_nothing_of_each_other() -> None:
    first, second = App("first"), App("second")
    first.reconciler(Shop)(nothing)
    second.reconciler(Shop)(nothing)
    second.cache(ConfigMap, labels="app=shop")
    assert len(first.controllers) == len(second.controllers) == 1
    assert first.cached == ()
    assert [(cached.kind, cached.labels) for cached in second.cached] == [(ConfigMap, "app=shop")]


def test_include_takes_over_what_another_app_declared() -> None:
    main, part = App("main"), App("part")
    main.reconciler(Shop)(nothing)
    part.reconciler(Deployment)(nothing)
    part.cache(ConfigMap)
    main.include(part)
    assert [spec.name for spec in main.controllers] == ["shop", "deployment"]
    assert [cached.kind for cached in main.cached] == [ConfigMap]
    assert [spec.name for spec in part.controllers] == ["deployment"]


def test_include_of_a_name_that_is_taken_takes_over_nothing() -> None:
    main, part = App("main"), App("part")
    main.reconciler(Shop)(nothing)
    part.reconciler(Deployment)(nothing)
    part.reconciler(Shop)(nothing)
    with pytest.raises(RegistrationError, match="shop"):
        main.include(part)
    assert [spec.name for spec in main.controllers] == ["shop"]


def test_two_controllers_of_one_name_are_refused_with_the_way_out() -> None:
    app = App("shops")
    app.reconciler(Shop)(nothing)
    with pytest.raises(RegistrationError, match=r"'shops' has a controller 'shop' already.*name='shop-2'"):
        app.reconciler(Shop)(nothing)
    app.reconciler(Shop, name="shop-2")(nothing)
    assert [spec.name for spec in app.controllers] == ["shop", "shop-2"]


def test_a_plain_function_is_refused_with_the_form_it_should_have() -> None:
    def blocking(ctx: Context, request: Request) -> None:
        return None

    register: Any = App("shops").reconciler(Shop)
    with pytest.raises(RegistrationError, match=r"async def blocking\(ctx"):
        register(blocking)


@pytest.mark.parametrize("kind", ["Deployment", None, 3, Deployment.kind])
def test_what_is_no_kind_is_refused(kind: Any) -> None:
    app = App("shops")
    for declare in (app.reconciler, app.cache):
        with pytest.raises(RegistrationError, match=r"no kind.*Kind\('apps/v1', 'Deployment'\)"):
            declare(kind)
    with pytest.raises(RegistrationError, match="controller 'shop': owns"):
        app.reconciler(Shop, owns=[kind])
    assert app.controllers == ()


def test_a_class_that_names_no_kind_is_refused() -> None:
    with pytest.raises(RegistrationError, match=r"@app\.reconciler: .*ShopSpec"):
        App("shops").reconciler(ShopSpec)


def test_the_decorator_without_a_kind_says_what_is_missing() -> None:
    decorator: Any = App("shops").reconciler
    with pytest.raises(RegistrationError, match=r"without a kind.*@app\.reconciler\(MyKind\)"):
        decorator(nothing)


@pytest.mark.parametrize("declared", [Deployment, Shop, watch(ConfigMap)])
def test_owns_and_watches_take_lists(declared: Any) -> None:
    with pytest.raises(RegistrationError, match=r"takes a list of kinds. Write: owns=\["):
        App("shops").reconciler(Shop, owns=declared)
    with pytest.raises(RegistrationError, match=r"takes a list of kinds. Write: watches=\["):
        App("shops").reconciler(Shop, watches=declared)


@pytest.mark.parametrize("name", ["", "My App", "-a", "a-", "a" * 64, "ü"])
def test_an_app_name_is_a_dns_label(name: str) -> None:
    with pytest.raises(RegistrationError, match="lower-case"):
        App(name)


def test_its_repr_names_its_controllers() -> None:
    app = App("shops")
    app.reconciler(Shop)(nothing)
    assert repr(app) == "App('shops', controllers=['shop'])"


def test_a_misspelt_option_is_named_with_the_one_that_was_meant() -> None:
    with pytest.raises(RegistrationError, match=r"no option 'worker'; did you mean workers\?"):
        App("shops").reconciler(Shop, **{"worker": 4})  # type: ignore[arg-type]
    with pytest.raises(RegistrationError, match=r"no option 'xyz'; there are owns, watches, .*max_retries"):
        App("shops").reconciler(Shop, **{"xyz": 4})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": "4"}, "workers is a whole number, not '4' (str)"),
        ({"workers": True}, "workers is a whole number, not True (bool)"),
        ({"workers": 2.0}, "workers is a whole number, not 2.0 (float)"),
        ({"timeout": "5m"}, "timeout (None: no limit) is a number of seconds, not '5m' (str)"),
        ({"timeout": timedelta(minutes=5)}, "is a number of seconds, not a timedelta; write 300"),
        ({"timeout": math.nan}, "timeout (None: no limit) must be above 0, and at most 1e+09, not nan"),
        ({"timeout": math.inf}, "timeout"),
        ({"timeout": True}, "timeout"),
        ({"timeout": 1e300}, "timeout"),
        ({"timeout": 10**400}, "timeout"),
        ({"max_retries": "3"}, "max_retries"),
        ({"max_retries": True}, "max_retries"),
        ({"max_retries": math.nan}, "max_retries"),
        ({"rate_limit": 5}, "rate_limit is a RateLimit(...), not 5"),
        (
            {"labels": {"app": 5}},
            "labels takes a text in the server's syntax, or a map of texts such as {'app': 'web'}, not 5",
        ),
        ({"name": 7}, "name of a controller is a text, not 7 (int)"),
        ({"name": ""}, "a controller needs a name"),
    ],
    ids=str,
)
def test_a_wrong_value_of_an_option_is_refused_by_its_name_at_the_decoration(
    options: dict[str, Any], words: str
) -> None:
    app = App("shops")
    with pytest.raises(RegistrationError, match=re.escape(words)):
        app.reconciler(Shop, **options)(nothing)
    assert app.controllers == ()


@pytest.mark.parametrize("options", [{"namespace": 1}, {"labels": 1}, {"metadata_only": "yes"}])
def test_a_wrong_value_of_a_cache_or_a_watch_is_refused_by_its_name(options: dict[str, Any]) -> None:
    [name] = options
    for declare in (App("shops").cache, watch):
        with pytest.raises(RegistrationError, match=f"{name} (is|takes)"):
            declare(Shop, **options)


@pytest.mark.parametrize("every", [0, -1, math.nan, math.inf, "5m", True, timedelta(0)])
def test_a_wrong_period_is_refused_by_its_name(every: Any) -> None:
    async def all_shops(ctx: Context) -> list[Request]:
        return []

    with pytest.raises(RegistrationError, match=r"periodic\(all_shops\): every"):
        periodic(all_shops, every=every)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": "4"}, {"workers": True}, {"workers": 0}, {"grace_period": "30s"}, {"grace_period": math.nan},
        {"grace_period": timedelta(1)}, {"connect_timeout": -1}, {"freeze_garbage": 1}, {"namespaces": "shop"},
        {"namespaces": ("a", "")}, {"namespaces": (1,)}, {"namespaces": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_value_of_a_managers_options_is_refused_by_its_name(options: dict[str, Any]) -> None:
    [name] = options
    with pytest.raises(UsageError, match=f"Options: {name}"):
        Options(**options)


def test_sources_are_made_by_their_functions() -> None:
    async def all_shops(ctx: Context) -> list[Request]:
        return []

    hourly = periodic(all_shops, every=3600)
    app = App("shops")
    app.reconciler(Shop, sources=[hourly])(nothing)
    assert list(app.controllers[0].sources) == [hourly]
    for wrong in (hourly, [all_shops]):
        with pytest.raises(RegistrationError, match=r"sources takes a list of periodic\(...\) and channel\(...\)"):
            App("shops").reconciler(Shop, sources=wrong)  # type: ignore[arg-type]


def test_labels_may_be_a_map_wherever_they_are_named() -> None:
    app = App("shops")
    app.reconciler(Shop, labels={"app": "web", "tier": "a"}, watches=[watch(Shop, fields={"metadata.name": "x"})])(
        nothing
    )
    app.cache(Shop, labels={"app": "web"})
    [spec] = app.controllers
    assert label_selector_text(spec.labels) == "app=web,tier=a"
    assert (app.cached[0].labels, spec.watches[0].fields) == ("app=web", "metadata.name=x")


def test_a_timer_is_a_controller_with_the_name_of_its_function() -> None:
    app = App("shops")

    @app.timer(Shop, every=timedelta(hours=1), start_after=10, jitter=0.5, workers=2, leader=False)
    async def take_stock(ctx: Context, request: Request) -> None: ...

    app.reconciler(Shop)(nothing)
    [timer, _] = app.controllers
    assert (timer.name, timer.timer, timer.workers, timer.leader) == ("take_stock", Timer(3600.0, 10, 0.5), 2, False)
    for wrong in ({"every": 0}, {"every": 1, "jitter": 2}, {"every": 1, "owns": []}, {"every": 1, "idle": 5}):
        with pytest.raises(RegistrationError, match="timer"):
            app.timer(Shop, **wrong)
    with pytest.raises(RegistrationError, match="is a plain def"):
        app.timer(Shop, every=1)(lambda ctx, request: None)
    with pytest.raises(RegistrationError, match="has a controller 'take_stock' already"):
        app.timer(Shop, every=1)(take_stock)
