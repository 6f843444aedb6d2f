"""Operator: what a Manager runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kopylite.controller import ControllerSpec, Watch
from kopylite.errors import RegistrationError
from kopylite.lifecycle import LifePlan
from kopylite.webhooks import ConverterSpec, WebhookSpec


class Operator(Protocol):
    """What a Manager runs: an App, or whatever else has an App's declarations."""

    @property
    def name(self) -> str: ...
    @property
    def leader_election(self) -> bool: ...
    @property
    def shards(self) -> int: ...
    @property
    def controllers(self) -> Sequence[ControllerSpec]: ...
    @property
    def cached(self) -> Sequence[Watch]: ...
    @property
    def life(self) -> LifePlan: ...
    @property
    def hooks(self) -> Sequence[WebhookSpec]: ...
    @property
    def converters(self) -> Sequence[ConverterSpec]: ...


def check_apps(apps: Sequence[Operator]) -> None:
    """Refuse Apps that cannot run, or not side by side.

    Raises:
        RegistrationError: one has no controllers, or two have a controller of one name.
    """
    if not apps:
        raise RegistrationError("a Manager without an App has nothing to run")
    known: dict[str, Operator] = {}
    known_checks: dict[tuple[str, str], Operator] = {}
    for app in apps:
        if not app.controllers and not app.life.tasks and not app.hooks and not app.converters:
            raise RegistrationError(
                f"app {app.name!r} has no controllers, so there is nothing to run. Declare one with "
                "@app.reconciler(MyKind), or app.include() the App that has them"
            )
        _check_life(app, known_checks)
        for spec in app.controllers:
            other = known.setdefault(spec.name, app)
            if other is not app:
                raise RegistrationError(
                    f"the apps {other.name!r} and {app.name!r} both have a controller {spec.name!r}: names are the "
                    f"labels of metrics and logs. Give one of them another: @app.reconciler(..., name='{spec.name}-2')"
                )


def _check_life(app: Operator, known: dict[tuple[str, str], Operator]) -> None:
    """Two Apps side by side may not have a task, or a check, of one name."""
    names = [("task", task.name) for task in app.life.tasks]
    names += [(f"{check.endpoint} check", check.name) for check in app.life.checks]
    for what, name in names:
        other = known.setdefault((what, name), app)
        if other is not app:
            raise RegistrationError(
                f"the apps {other.name!r} and {app.name!r} both have a {what} {name!r}: metrics and probes tell them "
                "apart by their names. Give one of them another"
            )
