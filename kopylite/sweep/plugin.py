"""The pytest plugin's part for sweeps; loaded by `kopylite.testing.plugin`."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

_MARK = "operator_sweep"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    text = (
        "operator_sweep(app, faults=..., budget=..., seed=...): the async test is a scenario, played to the operator "
        "without faults and then with each fault; see kopylite.sweep.sweep"
    )
    config.addinivalue_line("markers", f"{_MARK}{text.removeprefix(_MARK)}")


@pytest.fixture
def scene() -> None:
    """Where the scenario of an `operator_sweep` plays: a kopylite.sweep.Scene, when it is played."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Play a marked test, instead of calling it."""
    mark = pyfuncitem.get_closest_marker(_MARK)
    if mark is None:
        return None
    from kopylite.sweep.engine import Settings, sweep_source
    from kopylite.sweep.plans import FAULTS, parse_faults
    from kopylite.sweep.scenario import Scenario
    from kopylite.sweep.source import source_of

    options: dict[str, Any] = {"faults": ",".join(FAULTS), "budget": 60.0, "seed": 0, **mark.kwargs}
    settings = Settings(parse_faults(options["faults"]), _seconds(options["budget"]), options["seed"])
    play = inspect.unwrap(pyfuncitem.obj)
    crds = tuple(options.get("crds", ()))
    report = sweep_source(source_of(mark.args[0]), Scenario(play=play, crds=crds, name=pyfuncitem.name), settings)
    if report.findings:
        pytest.fail(str(report), pytrace=False)
    return True


def _seconds(value: float | str) -> float:
    """A number of seconds, or "30s", "2m"."""
    if not isinstance(value, str):
        return float(value)
    factor = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(value[-1:])
    return float(value[:-1]) * factor if factor else float(value)
