from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, cast

import pytest

from kopylite.controller import ControllerSpec
from kopylite.controller.outcome import settle_error
from kopylite.controller.reasons import Reasons
from kopylite.controller.settler import Settler
from kopylite.errors import Forbidden, UsageError
from kopylite.objects import Kind
from kopylite.observers import ReconcileObserver
from kopylite.reconcile import Context, Environment, Request, Result
from kopylite.workqueue import WorkQueue

if TYPE_CHECKING:
    from kopylite.client import Client


async def nothing(ctx: Context, request: Request) -> None:
    return None


def forbidden(verb: str) -> Forbidden:
    return Forbidden(f'User "bob" cannot {verb} resource "deployments" in API group "apps" in the namespace "shop"')


async def test_a_missing_rbac_rule_is_shown_once_and_not_with_each_retry_and_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    environment = Environment("widget", cast("Client", None))
    with caplog.at_level(logging.ERROR):
        for name in ("a", "b", "a"):
            for verb in ("create", "patch"):
                request, error = Request("shop", name), forbidden(verb)
                settler.settle(Context(environment, request), request, 0, settle_error(error), error, 0.1)
    rules = [message for message in caplog.messages if "RBAC rule" in message]
    assert len(rules) == 2
    assert 'verbs: ["create"]' in rules[0]
    assert 'verbs: ["patch"]' in rules[1]
    assert len(caplog.messages) == 6 + 2
    assert caplog.messages[0].startswith("reconcile failed, next try in")
    assert "Forbidden: 403" not in caplog.messages[0]


def test_a_refusal_names_the_line_of_the_users_code_that_met_it(caplog: pytest.LogCaptureFixture) -> None:
    spec = ControllerSpec(name="widget", kind=Kind("example.com/v1", "Widget"), reconcile=nothing)
    settler = Settler(spec, WorkQueue(), Reasons(), ReconcileObserver())
    request = Request("shop", "a")
    try:
        Result(requeue_after=-1)
    except UsageError as error:
        context = Context(Environment("widget", cast("Client", None)), request)
        settler.settle(context, request, 0, settle_error(error), error, 0.1)
    [message] = caplog.messages
    assert re.search(
        r"UsageError: Result\(requeue_after=-1\): .* at \S+test_controller_settler.py:\d+ in test_a_refusal", message
    )
