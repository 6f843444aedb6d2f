from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import cast

import pytest

from kopylite.cache import Informer, InformerStatistics, Phase, Problem, Scope
from kopylite.client import MissingPermissions
from kopylite.diagnostics import WaitingReport
from kopylite.errors import Forbidden, KindNotFound
from kopylite.objects import Kind
from kopylite.troubleshooting import Trouble

FORBIDDEN = Forbidden(
    'configmaps is forbidden: User "system:serviceaccount:shop:operator" cannot list resource "configmaps" '
    'in API group "" at the cluster scope'
)


class FakeInformer:
    """As much of an informer as the report looks at."""

    def __init__(self, kind: Kind, namespace: str = "") -> None:
        self.scope = Scope(kind, namespace)
        self.synced = False
        self.problem: Problem | None = None

    def statistics(self) -> InformerStatistics:
        return InformerStatistics(
            scope=self.scope,
            synced=self.synced,
            phase=Phase.LISTING,
            version="",
            objects=500,
            body_bytes=0,
            handlers=0,
            last_event_age=None,
            last_byte_age=None,
            problem=f"{self.problem.error}" if self.problem else "",
            problem_age=0.0,
        )


@pytest.fixture
def informer() -> FakeInformer:
    return FakeInformer(Kind("v1", "ConfigMap"))


@pytest.fixture
def report(informer: FakeInformer, caplog: pytest.LogCaptureFixture) -> Iterator[WaitingReport]:
    with caplog.at_level(logging.INFO):
        informers = [cast("Informer", informer)]
        yield WaitingReport(lambda: informers, lambda scope: ["shop", "shop-2"], MissingPermissions("shop"))


def test_nothing_is_said_in_the_first_ten_seconds(report: WaitingReport, caplog: pytest.LogCaptureFixture) -> None:
    for second in range(10):
        report.look(100.0 + second)
    assert caplog.messages == []


def test_reminders_name_cause_and_waiters_and_grow_rarer(
    report: WaitingReport, informer: FakeInformer, caplog: pytest.LogCaptureFixture
) -> None:
    informer.problem = Problem(KindNotFound("is its CRD installed?"), 100.0)
    said: list[int] = []
    for second in range(1000):
        before = len(caplog.messages)
        report.look(100.0 + second)
        said += [second] * (len(caplog.messages) - before)
    assert said == [10, 30, 70, 150, 310, 610, 910]
    assert caplog.messages[0] == (
        "waiting for the cache of ConfigMap.v1 for 10 s; controllers that wait: shop, shop-2: is its CRD installed?; "
        f"see {Trouble.NOTHING_HAPPENS}"
    )


def test_a_cache_that_is_still_listing_says_how_far_it_is(
    report: WaitingReport, caplog: pytest.LogCaptureFixture
) -> None:
    report.look(100.0)
    report.look(110.0)
    assert caplog.messages[0].endswith(f"listing, 500 objects so far; see {Trouble.SLOW}")


def test_a_missing_rbac_rule_is_printed_at_once_and_only_once(
    report: WaitingReport, informer: FakeInformer, caplog: pytest.LogCaptureFixture
) -> None:
    informer.problem = Problem(FORBIDDEN, 100.0)
    report.look(100.0)
    report.look(101.0)
    [message] = caplog.messages
    assert 'resources: ["configmaps"]' in message
    assert 'verbs: ["list", "watch"]' in message
    assert "system:serviceaccount:shop:operator" in message


def test_what_waits_for_one_reason_in_many_namespaces_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    many = [FakeInformer(Kind("v1", "ConfigMap"), f"n{number:03}") for number in range(500)]
    for one in many:
        message = FORBIDDEN.message.replace("at the cluster scope", f'in the namespace "{one.scope.namespace}"')
        one.problem = Problem(Forbidden(message), 100.0)
    informers, namespaces = [cast("Informer", one) for one in many], [one.scope.namespace for one in many]
    report = WaitingReport(
        lambda: informers, lambda scope: ["shop"], MissingPermissions("shop", limited=bool(namespaces))
    )
    with caplog.at_level(logging.INFO):
        for second in range(11):
            report.look(100.0 + second)
        rule, reminder = caplog.messages
        names = "n000, n001, n002, n003, n004 and 495 more"
        assert f"in Roles of namespace {names}" in rule
        assert reminder.startswith(
            f"waiting for the cache of ConfigMap.v1 in the namespaces {names} for 10 s; controllers that wait: shop: "
        )
        for one in many[2:]:
            one.synced, one.problem = True, None
        report.look(112.0)
    assert caplog.messages[2].startswith("the cache of ConfigMap.v1 in the namespaces n002, n003")
    assert len(caplog.messages) == 3


def test_an_end_of_trouble_is_told_however_short_it_was(
    report: WaitingReport, informer: FakeInformer, caplog: pytest.LogCaptureFixture
) -> None:
    informer.problem = Problem(KindNotFound("is its CRD installed?"), 100.0)
    report.look(100.0)
    informer.synced, informer.problem = True, None
    report.look(103.0)
    assert caplog.messages == ["the cache of ConfigMap.v1 is in sync, after 3 s"]


def test_an_end_of_waiting_is_told_if_the_waiting_was(
    report: WaitingReport, informer: FakeInformer, caplog: pytest.LogCaptureFixture
) -> None:
    report.look(100.0)
    report.look(110.0)
    informer.synced = True
    report.look(112.0)
    assert caplog.messages[-1] == "the cache of ConfigMap.v1 is in sync, after 12 s"
    caplog.clear()
    report.look(113.0)
    informer.synced = False
    report.look(114.0)
    informer.synced = True
    report.look(115.0)
    assert caplog.messages == []


def test_a_cache_that_falls_out_of_sync_later_is_reported_again(
    report: WaitingReport, informer: FakeInformer, caplog: pytest.LogCaptureFixture
) -> None:
    informer.synced = True
    report.look(100.0)
    informer.synced = False
    informer.problem = Problem(FORBIDDEN, 500.0)
    report.look(500.0)
    report.look(510.0)
    assert len(caplog.messages) == 2
