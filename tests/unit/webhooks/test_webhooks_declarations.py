"""What is declared wrongly is refused where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite import App, Context, RegistrationError, Review
from kopylite.webhooks.declarations import WebhookDeclarations
from kopylite.webhooks.specs import WebhookSpec
from tests.unit.webhooks.test_webhooks_admission import Shop, validating


def test_an_app_is_where_webhooks_are_declared() -> None:
    assert isinstance(App("shop"), WebhookDeclarations)


def test_the_name_of_a_webhook_is_a_dns_label() -> None:
    async def _Check_it(ctx: Context, review: Review[Any]) -> None: ...

    assert WebhookSpec(role="validate", kind=Shop, function=_Check_it).own_name == "check-it"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"operations": ("patch",)}, "operations are of"),
        ({"operations": "create"}, "takes several"),
        ({"operations": ()}, "never be called"),
        ({"timeout": 31}, "1 to 30"),
        ({"timeout": "10"}, "timeout"),
        ({"failure_policy": "fail"}, "failure_policy"),
        ({"subresources": ("Status",)}, "sub-resource"),
        ({"failurepolicy": "Fail"}, "did you mean failure_policy"),
    ],
)
def test_wrong_declarations_are_refused_where_they_are_written(options: dict[str, Any], text: str) -> None:
    async def check(ctx: Context, review: Review[Any]) -> None: ...

    with pytest.raises(RegistrationError, match=text):
        validating(check, **options)


def test_what_is_no_kind_or_no_async_function_is_refused() -> None:
    app = App("shop")
    with pytest.raises(RegistrationError, match="used without a kind"):
        app.validator(lambda ctx, review: None)  # type: ignore[call-overload]
    with pytest.raises(RegistrationError, match="async def"):
        app.mutator(Shop)(lambda ctx, review: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(RegistrationError, match=r"use @app\.validator"):

        @app.mutator(Shop, operations=("delete",))
        async def gone(ctx: Context, review: Review[Shop]) -> None: ...


def test_include_takes_webhooks_over() -> None:
    async def check(ctx: Context, review: Review[Any]) -> None: ...

    app, other = App("a"), validating(check)
    app.include(other)
    assert app.hooks == other.hooks
