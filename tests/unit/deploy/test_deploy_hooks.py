from __future__ import annotations

import pytest

from kopylite import App, Context, Kind, Review, Unstructured
from kopylite.client import ApiRequest, Permission
from kopylite.deploy.hooks import is_housekeeping, webhook_permissions, webhook_service
from kopylite.deploy.recorder import Recorder
from samples.shop.operator import app as shop

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)

plain, checked = App("plain"), App("checked")


@checked.validator(CONFIG_MAP)
async def check(ctx: Context, review: Review[Unstructured]) -> None: ...


def lines(permissions: object) -> set[str]:
    assert isinstance(permissions, list)
    found: list[Permission] = permissions
    return {f"{one.verb} {one.resource} {one.namespace or '(all)'} {one.name or '(any)'}" for one in found}


def test_an_operator_with_webhooks_may_look_after_its_own_objects_and_no_others() -> None:
    assert lines(list(webhook_permissions([plain, shop, checked], "ops", certificates=True))) == {
        "create secrets ops (any)",
        *(f"{verb} secrets ops shop-webhooks-certs" for verb in ("get", "update")),
        *(
            f"{verb} {of} (all) {name}"
            for verb in ("get", "create", "patch")
            for of, name in (
                ("mutatingwebhookconfigurations", "shop"),
                ("validatingwebhookconfigurations", "shop"),
                ("validatingwebhookconfigurations", "checked"),
            )
        ),
        *(f"{verb} customresourcedefinitions (all) orders.shop.example.com" for verb in ("get", "patch")),
    }
    assert webhook_service([plain, shop, checked]) == "shop-webhooks"


def test_certificates_of_a_folder_need_no_secret_and_apps_without_webhooks_nothing() -> None:
    assert not [one for one in webhook_permissions([shop], "ops", certificates=False) if one.resource == "secrets"]
    assert not list(webhook_permissions([plain], "ops", certificates=True))


@pytest.mark.parametrize(
    ("request_", "own"),
    [
        (ApiRequest("GET", "/api/v1/namespaces/n/secrets/shop-webhooks-certs"), True),
        (ApiRequest("POST", "/api/v1/namespaces/n/secrets", body=b'{"metadata":{"name":"shop-webhooks-certs"}}'), True),
        (ApiRequest("PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/orders.shop.example.com"), True),
        (ApiRequest("GET", "/api/v1/namespaces/n/secrets/users"), False),
        (ApiRequest("POST", "/api/v1/namespaces/n/secrets", body=b'{"metadata":{"name":"users"}}'), False),
        (ApiRequest("POST", "/api/v1/namespaces/n/secrets"), False),
        (ApiRequest("GET", "/api"), False),
    ],
)
def test_what_webhooks_do_for_themselves_is_not_recorded_as_the_operators_work(request_: ApiRequest, own: bool) -> None:
    assert is_housekeeping([shop], request_) is own
    recorder = Recorder()
    recorder.sent([shop], request_)
    assert bool(recorder.recording.of("shop")) is (not own and request_.path != "/api")
