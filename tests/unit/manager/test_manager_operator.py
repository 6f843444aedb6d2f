"""Which Apps can run side by side."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kopylite import App, Context, Kind, Request
from kopylite.errors import RegistrationError
from kopylite.manager.operator import check_apps

THING = Kind("example.com/v1", "Thing", namespaced=True)


async def nothing(ctx: Context, request: Request) -> None: ...


async def work(ctx: Context) -> None: ...


async def is_well(ctx: Context) -> None: ...


def controller(app: App) -> None:
    app.reconciler(THING, name="things")(nothing)


def task(app: App) -> None:
    app.task(name="tick")(work)


def health(app: App) -> None:
    task_of_its_own(app)
    app.health("bank")(is_well)


def readiness(app: App) -> None:
    task_of_its_own(app)
    app.ready("bank")(is_well)


def task_of_its_own(app: App) -> None:
    app.task(name=f"{app.name}-task")(work)


def app(name: str, *parts: Callable[[App], None]) -> App:
    made = App(name)
    for part in parts:
        part(made)
    return made


def test_nothing_to_run_is_refused_with_the_way_out() -> None:
    with pytest.raises(RegistrationError, match="without an App"):
        check_apps([])
    with pytest.raises(RegistrationError, match=r"'empty' has no controllers.*@app\.reconciler\(MyKind\)"):
        check_apps([app("full", controller), app("empty")])
    check_apps([app("tasks-alone", task)])


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (controller, "controller 'things'"),
        (task, "task 'tick'"),
        (health, "health check 'bank'"),
        (readiness, "'bank'"),
    ],
)
def test_two_of_one_name_are_refused_since_metrics_tell_them_apart_by_it(
    part: Callable[[App], None], words: str
) -> None:
    one = app("one", part)
    check_apps([one])
    with pytest.raises(RegistrationError, match=f"the apps 'one' and 'two' both have a .*{words}"):
        check_apps([one, app("between", task_of_its_own), app("two", part)])


def test_a_health_check_and_a_readiness_check_may_have_one_name() -> None:
    check_apps([app("one", health), app("two", readiness)])
