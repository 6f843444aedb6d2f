"""Validators and mutators on reviews, without a server."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from kopylite import App, Context, CustomResource, Kind, Review, Unstructured
from kopylite.errors import BadRequest
from kopylite.reconcile import Environment
from kopylite.webhooks.admission import Judge, deadline_of
from kopylite.webhooks.review import Denied
from tests.unit.webhooks.test_webhooks_edits import applied

Function = Callable[[Context, Review[Any]], Awaitable[None]]
CONFIG_MAP = Kind("v1", "ConfigMap")


class Port(BaseModel):
    port: int
    name: str = "web"


class ShopSpec(BaseModel):
    image: str
    size: int = 1
    ports: list[Port] = []


class Shop(CustomResource[ShopSpec, None], group="example.com", version="v1"):
    pass


def shop(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"image": "x:1", **spec}}


def review_of(obj: Any, old: Any = None, operation: str = "CREATE", **request: Any) -> bytes:
    named = obj or old
    group, _, version = named["apiVersion"].rpartition("/")
    asked = {
        "uid": "u", "kind": {"group": group, "version": version, "kind": named["kind"]},
        "resource": {"group": group, "version": version, "resource": named["kind"].lower() + "s"},
        "operation": operation, "name": "a", "namespace": "default", "userInfo": {"username": "ann"},
        "object": obj, "oldObject": old, **request,
    }  # fmt: skip
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": asked}).encode()


async def answered(app: App, body: bytes, timeout: float = 10) -> dict[str, Any]:
    environment = Environment(app.name, None, logger=logging.getLogger("shop"))  # type: ignore[arg-type]
    answer: dict[str, Any] = json.loads(await Judge(app.hooks, environment).answer(body, timeout))["response"]
    return answer


def patched(obj: Any, answer: dict[str, Any]) -> Any:
    assert answer["allowed"], answer
    return applied(obj, json.loads(base64.b64decode(answer["patch"]))) if "patch" in answer else obj


def validating(function: Function, kind: Any = Shop, **options: Any) -> App:
    app = App("shop")
    registered: Any = app.validator(kind, **options)
    registered(function)
    return app


def mutating(*functions: Function, kind: Any = Shop) -> App:
    app = App("shop")
    for function in functions:
        registered: Any = app.mutator(kind)
        registered(function)
    return app


async def test_a_validator_that_returns_allows() -> None:
    seen: list[Any] = []

    async def check(ctx: Context, review: Review[Shop]) -> None:
        seen.append((review.operation, review.object.spec.image, review.old, review.user.username, review.dry_run))

    answer = await answered(validating(check), review_of(shop(), dryRun=True))
    assert answer == {"uid": "u", "allowed": True, "status": {"code": 200}}
    assert seen == [("create", "x:1", None, "ann", True)]


async def test_a_denial_is_a_403_with_its_text() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        review.warn("mind the gap")
        raise Denied("not today")

    answer = await answered(validating(check), review_of(shop()))
    assert (answer["allowed"], answer["warnings"]) == (False, ["mind the gap"])
    status = answer["status"]
    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", "not today")


async def test_fields_are_a_422_with_causes() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        review.deny("name a version", field="spec.image")
        review.deny("must be 1 to 5", field="spec.size")

    status = (await answered(validating(check), review_of(shop())))["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.image", "spec.size"]
    expected = 'Shop.example.com "a" is invalid: [spec.image: name a version, spec.size: must be 1 to 5]'
    assert status["message"] == expected


async def test_denied_takes_several_fields() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        raise Denied(fields={"spec.image": "no", "spec.size": "neither"})

    status = (await answered(validating(check), review_of(shop())))["status"]
    assert (status["code"], len(status["details"]["causes"])) == (422, 2)


@pytest.mark.parametrize("error", [ValueError("hunter2"), SystemExit(1), RecursionError(), anyio.ClosedResourceError()])
async def test_any_other_exception_is_a_500_whose_text_stays_in_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        raise error

    answer = await answered(validating(check), review_of(shop()))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
    assert "hunter2" not in json.dumps(answer)
    assert "webhook check failed on create of Shop default/a" in caplog.text


async def test_a_cancellation_that_the_code_made_up_is_a_500_too() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        raise anyio.get_cancelled_exc_class()

    assert (await answered(validating(check), review_of(shop())))["status"]["code"] == 500


async def test_a_validator_that_does_not_end_is_cut_below_the_callers_deadline() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        answer = await answered(validating(check), review_of(shop()), timeout=0.1)
    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 504, "Timeout")
    assert deadline_of(10) == 9.5
    assert deadline_of(1) == 0.9


async def test_an_object_that_does_not_fit_its_class_is_refused_by_its_fields() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        assert review.object

    status = (await answered(validating(check), review_of(shop(size="big"))))["status"]
    assert status["code"] == 422
    assert "spec.size" in status["message"]
    app = mutating(check)
    assert (await answered(app, review_of(shop(size="big"))))["status"]["code"] == 422


async def test_a_validator_sees_only_what_it_declared() -> None:
    seen: list[str] = []

    async def check(ctx: Context, review: Review[Shop]) -> None:
        seen.append(f"{review.operation}{review.subresource}")

    app = validating(check, operations=("update", "delete"), subresources=("", "status"))
    for operation in ("CREATE", "UPDATE", "DELETE", "CONNECT"):
        for subresource in ("", "status", "scale"):
            await answered(app, review_of(shop(), shop(), operation, subResource=subresource))
    assert seen == ["update", "updatestatus", "delete", "deletestatus"]


async def test_the_object_of_a_delete_is_the_one_that_goes() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        raise Denied(f"{review.object.spec.image} {review.old is review.object}")

    answer = await answered(validating(check, operations=("delete",)), review_of(None, shop(), "DELETE"))
    assert answer["status"]["message"] == "x:1 False"


async def test_the_object_of_another_kind_is_unstructured() -> None:
    async def check(ctx: Context, review: Review[Any]) -> None:
        raise Denied(f"{type(review.object).__name__} {review.object.kind}")

    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": 2}}
    app = validating(check, subresources=("scale",), operations=("update", "connect"))
    answer = await answered(app, review_of(scale, scale, "UPDATE", subResource="scale"))
    assert answer["status"]["message"] == "Unstructured Scale"


async def test_immutable_fields_and_only_if_changed() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        review.immutable("spec.image", "spec.ports[0].port")
        if review.changed("spec.size"):
            review.warn("size")

    app = validating(check)
    assert (await answered(app, review_of(shop())))["allowed"]
    ports = [{"port": 1}]
    same = await answered(app, review_of(shop(ports=ports), shop(ports=ports), "UPDATE"))
    assert same["allowed"]
    assert "warnings" not in same
    changed = await answered(app, review_of(shop(ports=[{"port": 2}], size=2), shop(ports=ports, image="y"), "UPDATE"))
    causes = changed["status"]["details"]["causes"]
    assert [(cause["field"], cause["message"]) for cause in causes] == [
        ("spec.image", "field is immutable"),
        ("spec.ports[0].port", "field is immutable"),
    ]
    assert changed["warnings"] == ["size"]


async def test_an_unchanged_object_gives_no_patch_whatever_its_class_does_not_know() -> None:
    async def nothing(ctx: Context, review: Review[Shop]) -> None:
        assert review.object.spec.size == 1

    obj = shop(unknown={"x": 1.0}, ports=[{"port": 1, "odd": None}])
    assert "patch" not in await answered(mutating(nothing), review_of(obj))


async def test_mutators_run_in_order_and_unknown_fields_stay() -> None:
    async def first(ctx: Context, review: Review[Shop]) -> None:
        review.object.spec.size += 1
        review.object.metadata.labels["team"] = "a"

    async def second(ctx: Context, review: Review[Shop]) -> None:
        review.object.spec.size *= 10
        review.object.spec.ports.append(Port(port=2))

    obj = shop(unknown={"x": 1}, ports=[{"port": 1, "odd": 7}])
    result = patched(obj, await answered(mutating(first, second), review_of(obj)))
    assert result["spec"]["size"] == 20
    assert result["spec"]["unknown"] == {"x": 1}
    assert result["spec"]["ports"][0] == {"port": 1, "odd": 7}
    assert result["spec"]["ports"][1]["port"] == 2
    assert result["metadata"]["labels"] == {"team": "a"}


async def test_a_mutator_of_dicts() -> None:
    async def default(ctx: Context, review: Review[Unstructured]) -> None:
        review.object.setdefault("data", {})["a"] = "b"
        review.object["metadata"].pop("labels", None)

    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}}
    result = patched(obj, await answered(mutating(default, kind=CONFIG_MAP), review_of(obj)))
    assert result == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}


async def test_what_a_validator_changes_is_its_own() -> None:
    async def meddle(ctx: Context, review: Review[Shop]) -> None:
        review.object.spec.size = 99

    seen: list[int] = []

    async def look(ctx: Context, review: Review[Shop]) -> None:
        seen.append(review.object.spec.size)

    app = validating(meddle)
    app.validator(Shop)(look)
    assert "patch" not in await answered(app, review_of(shop()))
    assert seen == [1]


async def test_the_first_denial_ends_the_review() -> None:
    calls: list[str] = []

    async def no(ctx: Context, review: Review[Shop]) -> None:
        calls.append("no")
        raise Denied("no")

    async def later(ctx: Context, review: Review[Shop]) -> None:
        calls.append("later")

    assert not (await answered(mutating(no, later), review_of(shop())))["allowed"]
    assert calls == ["no"]


async def test_log_lines_of_a_function_say_what_it_is_about(caplog: pytest.LogCaptureFixture) -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        ctx.log.warning("hello")

    await answered(validating(check), review_of(shop()))
    [record] = [record for record in caplog.records if record.message == "hello"]
    fields: Any = record.__dict__["fields"]
    assert (fields["namespace"], fields["name"]) == ("default", "a")


class Odd(BaseModel):
    name: str = "x"


ODD: list[tuple[Any, Any]] = [
    (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
    (timedelta(minutes=90), "1h30m0s"),
    (Decimal("1.5"), "1.5"),
    ({"b", "a"}, ["a", "b"]),
    (("a", 1), ["a", 1]),
    (b"key", "a2V5"),
    (Odd(name="y"), {"name": "y"}),
    (2.0, 2),
]


@pytest.mark.parametrize(("value", "sent"), ODD, ids=lambda value: type(value).__name__)
async def test_what_stands_for_a_value_of_the_api_is_sent_as_that(value: Any, sent: Any) -> None:
    async def change(ctx: Context, review: Review[Unstructured]) -> None:
        review.object["data"]["odd"] = value

    came = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"kept": "yes"}}
    now = patched(came, await answered(mutating(change, kind=CONFIG_MAP), review_of(came)))
    assert now["data"] == {"kept": "yes", "odd": sent}


def _endless() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (float("nan"), "data.odd is nan"),
        (2**64, "data.odd is an integer beyond 64 bits"),
        ({1: "x"}, "data.odd has a key that is no text"),
        (datetime(2026, 1, 2), "data.odd is a time without a zone"),
        ("\ud800", "data.odd"),
        (object(), "data.odd"),
        ((n for n in [1]), "data.odd"),
        (_endless(), "contains itself"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_what_cannot_be_sent_is_a_500_that_names_the_function_and_the_field(value: Any, why: str) -> None:
    async def spoil(ctx: Context, review: Review[Unstructured]) -> None:
        review.object["data"] = {"odd": value}

    came = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}
    answer = await answered(mutating(spoil, kind=CONFIG_MAP), review_of(came))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
    assert "webhook spoil: " in answer["status"]["message"]
    assert why in answer["status"]["message"]
    assert "patch" not in answer


@pytest.mark.parametrize("value", [None, 7, [], object()], ids=lambda value: type(value).__name__)
async def test_an_object_that_is_none_is_a_500(value: Any) -> None:
    async def replace(ctx: Context, review: Review[Any]) -> None:
        review.object = value

    answer = await answered(mutating(replace), review_of(shop()))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)


ANYTHING = st.one_of(st.text(), st.none(), st.integers(), st.binary(), st.just(object()), st.just("\ud800\x00\n\x1b["))


@given(message=ANYTHING, field=ANYTHING, warning=ANYTHING, key=ANYTHING)
def test_whatever_a_function_says_no_with_it_is_a_no(message: Any, field: Any, warning: Any, key: Any) -> None:
    """An answer that the API server could not read might count as an allow."""

    async def refuse(ctx: Context, review: Review[Any]) -> None:
        review.warnings.append(warning)
        review.audit[key] = warning
        raise Denied(message, field=field) if field else Denied(message)

    answer = anyio.run(answered, validating(refuse), review_of(shop()))
    assert answer["allowed"] is False
    status = answer["status"]
    texts = [status["message"], *answer.get("warnings", []), *answer.get("auditAnnotations", {}).items()]
    texts += [text for cause in status.get("details", {}).get("causes", []) for text in cause.values()]
    flat = [part for text in texts for part in (text if isinstance(text, tuple) else (text,))]
    assert all(isinstance(text, str) and "\x1b" not in text for text in flat)
    assert all("\n" not in text for text in answer.get("warnings", []))


async def test_a_huge_denial_is_cut() -> None:
    async def refuse(ctx: Context, review: Review[Any]) -> None:
        raise Denied("x" * 10**6, fields={f"spec.a{number}": "y" * 10**5 for number in range(1000)})

    assert len(json.dumps(await answered(validating(refuse), review_of(shop())))) < 10**6


async def test_a_function_that_returns_something_does_not_allow(caplog: pytest.LogCaptureFixture) -> None:
    async def check(ctx: Context, review: Review[Any]) -> Any:
        return False

    answer = await answered(validating(check), review_of(shop()))
    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
    assert "it returned False; it has to return nothing: to refuse, `raise Denied(...)`" in caplog.text


async def test_reviews_at_the_same_time_share_nothing() -> None:
    async def check(ctx: Context, review: Review[Shop]) -> None:
        name = review.object.metadata.name
        review.warn(name)
        review.audit["name"] = name
        await anyio.lowlevel.checkpoint()
        review.object.spec.size += 1
        if int(name) % 2:
            review.deny(name)

    app, answers = validating(check), dict[str, Any]()
    environment = Environment(app.name, None, logger=logging.getLogger("shop"))  # type: ignore[arg-type]
    judge = Judge(app.hooks, environment)

    async def ask(name: str) -> None:
        body = review_of({**shop(), "metadata": {"name": name}}, name=name, uid=name)
        answers[name] = json.loads(await judge.answer(body, 10))["response"]

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(ask, str(number))
    for name, answer in answers.items():
        assert (answer["uid"], answer["warnings"], answer["auditAnnotations"]) == (name, [name], {"name": name})
        assert answer["allowed"] is (int(name) % 2 == 0)


async def test_the_old_object_of_a_create_is_none_and_a_delete_has_no_object() -> None:
    seen: list[Any] = []

    async def check(ctx: Context, review: Review[Shop]) -> None:
        seen.append((review.operation, review.old and review.old.spec.image, review.object.spec.image))

    app = validating(check, operations=("create", "update", "delete"))
    await answered(app, review_of(shop()))
    await answered(app, review_of(shop(image="y:2"), shop(), "UPDATE"))
    await answered(app, review_of(None, shop(), "DELETE"))
    assert seen == [("create", None, "x:1"), ("update", "x:1", "y:2"), ("delete", "x:1", "x:1")]


@pytest.mark.parametrize("depth", [300, 2000, 100_000])
async def test_a_deep_object_is_answered(depth: int) -> None:
    async def change(ctx: Context, review: Review[Unstructured]) -> None:
        review.object["data"]["x"] = "y"

    body = review_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": 1}})
    deep = body.replace(b'"a": 1', b'"a": ' + b"[" * depth + b"]" * depth)
    try:
        answer = await answered(mutating(change, kind=CONFIG_MAP), deep)
    except BadRequest:
        return
    assert answer["allowed"] is ("patch" in answer)
