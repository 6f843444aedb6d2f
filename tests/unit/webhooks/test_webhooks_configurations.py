"""Configurations from declarations."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kopylite import App, Kind, RegistrationError
from kopylite.cli.webhooks import documents_of
from kopylite.errors import UsageError
from kopylite.webhooks.configurations import (
    WebhookPlace,
    check_url,
    configurations_of,
    conversion_of,
    endpoints_of,
    with_port,
)
from tests.unit.webhooks.test_webhooks_admission import Shop

PLACE = WebhookPlace("ops", "shop-webhooks")


async def judge(ctx: Any, review: Any) -> None: ...


def test_functions_with_the_same_rules_share_a_webhook_in_their_order() -> None:
    app = App("shop")
    app.validator(Shop)(judge)
    app.mutator(Shop, reinvoke=True)(judge)
    app.validator(Shop, operations=("delete",), subresources=("", "status"))(judge)
    app.validator(Shop, failure_policy="Ignore")(judge)
    endpoints = endpoints_of(app.hooks)
    assert [(each.path, len(each.specs)) for each in endpoints] == [
        ("/validate-example-com-v1-shop", 2),
        ("/mutate-example-com-v1-shop", 1),
        ("/validate-example-com-v1-shop-judge", 1),
    ]
    mutating, validating = configurations_of("shop", endpoints, PLACE)
    assert (mutating["kind"], mutating["metadata"]["name"]) == ("MutatingWebhookConfiguration", "shop")
    assert mutating["webhooks"][0]["reinvocationPolicy"] == "IfNeeded"
    first, second = validating["webhooks"]
    assert first["name"] == "validate.shop.example.com"
    assert first["rules"] == [
        {
            "apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["shops", "shops/status"], "scope": "Namespaced",
        }
    ]  # fmt: skip
    assert (first["failurePolicy"], second["failurePolicy"]) == ("Fail", "Ignore")
    assert first["clientConfig"]["service"] == {
        "name": "shop-webhooks", "namespace": "ops", "path": "/validate-example-com-v1-shop", "port": 443,
    }  # fmt: skip


def test_kube_system_and_the_own_namespace_are_left_out() -> None:
    app = App("shop")
    app.validator(Shop, namespaces={"team": "a"}, match={"mine": "true"}, labels={"x": "y"})(judge)
    for url, out in (("", ["kube-system", "ops"]), ("https://192.0.2.1:9443", ["kube-system"])):
        place = WebhookPlace("ops", "shop-webhooks", url, b"PEM")
        [configuration] = configurations_of("shop", endpoints_of(app.hooks), place)
        [webhook] = configuration["webhooks"]
        assert webhook["namespaceSelector"]["matchLabels"] == {"team": "a"}
        assert webhook["namespaceSelector"]["matchExpressions"][-1]["values"] == out
        assert webhook["matchConditions"] == [{"name": "mine", "expression": "true"}]
        assert webhook["objectSelector"] == {"matchLabels": {"x": "y"}}
        assert webhook["clientConfig"]["caBundle"] == "UEVN"


def test_the_core_group_and_a_kind_of_unknown_plural() -> None:
    app = App("shop")
    app.validator(Kind("v1", "Pod"))(judge)
    [endpoint] = endpoints_of(app.hooks)
    assert (endpoint.path, endpoint.name) == ("/validate--v1-pod", "validate.pod.core")
    app.validator(Kind("example.com/v1", "Odd"))(judge)
    with pytest.raises(RegistrationError, match="name it"):
        configurations_of("shop", endpoints_of(app.hooks), PLACE)


def test_urls() -> None:
    assert with_port("https://127.0.0.1", 7) == "https://127.0.0.1:7"
    assert with_port("https://[::1]/x", 7) == "https://[::1]:7/x"
    assert with_port("https://h:1/x", 7) == "https://h:1/x"
    for bad in ("http://h", "https://", "https://u@h", "https://h?x", "h:1", ""):
        with pytest.raises(UsageError):
            check_url(bad)
    place = WebhookPlace("ops", "s", "https://h:1/x/")
    assert conversion_of(place)["webhook"]["clientConfig"] == {"url": "https://h:1/x/convert"}
    assert place.hosts == ["h"]


def test_what_the_command_prints_is_yaml_with_a_service() -> None:
    from kopylite.objects.yamlwrite import to_yaml

    app = App("shop")
    app.validator(Shop)(judge)
    kinds = [each["kind"] for each in yaml.safe_load_all(to_yaml(documents_of(app, "ops", "")))]
    assert kinds == ["ValidatingWebhookConfiguration", "Service"]
    with pytest.raises(UsageError, match="no webhooks"):
        documents_of(App("shop"), "ops", "")
