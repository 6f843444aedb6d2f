from __future__ import annotations

from kopylite import App
from kopylite.devcluster.appcrds import crds_of_app
from samples.alerts.operator import app as alerts
from samples.myapp.operator import app


def test_the_crds_of_an_app_are_those_of_its_classes() -> None:
    assert [crd["metadata"]["name"] for crd in crds_of_app(app)] == ["myapps.example.com"]
    assert crds_of_app(App("other")) == []


def test_a_crd_that_somebody_else_installs_is_for_development_only() -> None:
    names = [crd["metadata"]["name"] for crd in crds_of_app(alerts, foreign=True)]
    assert names == ["prometheusrules.monitoring.coreos.com"]
    assert crds_of_app(alerts) == []
