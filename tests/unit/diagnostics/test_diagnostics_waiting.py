from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import cast

import pytest

from kopylite.cache import Informer, InformerStatistics, Phase, Problem, Scope
from kopylite.diagnostics import WaitingReport
from kopylite.errors import Forbidden, KindNotFound
from kopylite.objects import Kind

FORBIDDEN = Forbidden(
    'configmaps is forbidden: User "system:serviceaccount:shop:operator" cannot list resource "configmaps" '
    'in API group "" at the cluster scope'
)


class FakeInformer:
    """As much of an informer as the report looks at."""

    def __init__(self, kind: Kind) -> None:
        self.scope = Scope(kind)
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
        yield WaitingReport(lambda: [cast("Informer", informer)], lambda scope: ["shop", "shop-2"])


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
        "waiting for the cache of ConfigMap.v1 for 10 s; controllers that wait: shop, shop-2: is its CRD installed?"
    )


def test_a_cache_that_is_still_listing_says_how_far_it_is(
    report: WaitingReport, caplog: pytest.LogCaptureFixture
) -> None:
    report.look(100.0)
    report.look(110.0)
    assert caplog.messages[0].endswith("listing, 500 objects so far")


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
