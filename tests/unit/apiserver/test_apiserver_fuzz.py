"""No request stops the server or makes it answer with a fault of its own."""

# ruff: noqa: E501 - texts of the real server

from __future__ import annotations

import logging
import os

import pytest

from kopylite.apiserver.request.request import HttpRequest
from tests.unit.apiserver.conftest import CRDS, Api, widget_crd
from tests.unit.apiserver.fuzz import Asked, Fuzz

# More seeds find more: KOPYLITE_FUZZ_SEEDS=200 runs for some minutes.
SEEDS = int(os.environ.get("KOPYLITE_FUZZ_SEEDS", "4"))
REQUESTS = 400


async def send(api: Api, asked: Asked) -> int:
    request = HttpRequest.of(asked.method, asked.path, headers=asked.headers, body=asked.body)
    response = await api.server.handle(request)
    if response.stream is not None:
        await response.stream.aclose()
    return response.status


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_odd_requests_are_answered_and_never_a_fault(
    api: Api, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    await api.create(CRDS, widget_crd())
    fuzz = Fuzz(seed)
    codes = set()
    for asked in [*fuzz.seeds(), *fuzz.requests(REQUESTS)]:
        with caplog.at_level(logging.ERROR, logger="kopylite.apiserver"):
            codes.add(await send(api, asked))
        assert not caplog.records, f"{asked}\n{caplog.text[-3000:]}"
    assert {200, 201, 400, 404, 405, 415, 422} <= codes


@pytest.mark.parametrize("depth", [300, 990])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
async def test_what_nests_deep_is_stored_and_patched(
    api: Api, open_crd: dict[str, object], depth: int, brackets: tuple[str, str]
) -> None:
    await api.create(CRDS, open_crd)
    deep = brackets[0] * depth + "1" + brackets[1] * depth
    path = "/apis/example.com/v1/namespaces/default/widgets"
    text = (
        '{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "%s"}, "spec": {"size": 1, "x": %s}}'
    )
    status, answer = await api.call("POST", path, (text % ("a", deep)).encode())
    assert status == 201, answer
    status, answer = await api.call("PATCH", f"{path}/a", (f'{{"spec": {{"y": {deep}}}}}').encode())
    assert status == 200, answer
    status, answer = await api.call(
        "PATCH", f"{path}/b?fieldManager=m", (text % ("b", deep)).encode(), content_type="application/apply-patch+yaml"
    )
    assert status == 201, answer
    assert (await api.call("DELETE", f"{path}/a"))[0] == 200


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": ' + b"[" * 2000 + b"]" * 2000 + b"}"])
async def test_what_nests_too_deep_is_refused_in_gos_words(api: Api, body: bytes) -> None:
    for path, kind in (("/api/v1/namespaces/default/configmaps", "ConfigMap"), (CRDS, "CustomResourceDefinition")):
        status, answer = await api.call("POST", path, body)
        assert status == 400
        assert f"(must be of type {kind}): " in answer["message"]
        assert "exceeded max depth" in answer["message"]


async def test_text_that_is_no_unicode_becomes_the_replacement_character(api: Api) -> None:
    for name, raw in (("a", b"\\ud800x"), ("b", b"\xffx"), ("c", b"\\uDC00\\\\ud800")):
        body = b'{"metadata": {"name": "%s"}, "data": {"k": "%s"}}' % (name.encode(), raw)
        status, answer = await api.call("POST", "/api/v1/namespaces/default/configmaps", body)
        assert status == 201, answer
        assert answer["data"]["k"] == ("\ufffd\\ud800" if name == "c" else "\ufffdx")
    pair = b'{"metadata": {"name": "d"}, "data": {"k": "\\ud83d\\ude00"}}'
    assert (await api.call("POST", "/api/v1/namespaces/default/configmaps", pair))[1]["data"] == {"k": "😀"}


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": "x"},
            (
                'SubjectAccessReview in version "v1" cannot be handled as a SubjectAccessReview: json: cannot unmarshal '
                "string into Go struct field SubjectAccessReview.spec of type v1.SubjectAccessReviewSpec"
            ),
        ),
        (
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"groups": True}},
            (
                'SubjectAccessReview in version "v1" cannot be handled as a SubjectAccessReview: json: cannot unmarshal '
                "bool into Go struct field SubjectAccessReviewSpec.spec.groups of type []string"
            ),
        ),
        (
            "/api/v1/namespaces/default/serviceaccounts/default/token",
            {"spec": {"audiences": "x"}},
            (
                'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal string into '
                "Go struct field TokenRequestSpec.spec.audiences of type []string"
            ),
        ),
        (
            "/api/v1/namespaces/default/pods/a/eviction",
            {"deleteOptions": 1},
            (
                'Eviction in version "v1" cannot be handled as a Eviction: json: cannot unmarshal number into Go struct '
                "field Eviction.deleteOptions of type v1.DeleteOptions"
            ),
        ),
        (
            "/api/v1/namespaces/default/pods/a/binding",
            {"metadata": "a"},
            (
                'Binding in version "v1" cannot be handled as a Binding: json: cannot unmarshal string into Go struct '
                "field Binding.metadata of type v1.ObjectMeta"
            ),
        ),
    ],
)
async def test_a_wrong_type_in_what_is_never_stored_is_told_as_by_gos_decoder(
    api: Api, path: str, body: dict[str, object], text: str
) -> None:
    await api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    status, answer = await api.call("POST", path, body)
    assert (status, answer["message"]) == (400, text)


async def test_numbers_longer_than_64_bits_are_out_of_range(api: Api) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    for query in ("resourceVersion", "limit", "timeoutSeconds"):
        status, answer = await api.call("GET", f"{path}?{query}={'9' * 5000}")
        assert status == 400
        assert answer["message"].endswith("value out of range")


async def test_a_quantity_that_is_null_is_zero_and_a_token_has_an_end(api: Api) -> None:
    quota = {"metadata": {"name": "a"}, "spec": {"hard": {"cpu": None}}}
    status, answer = await api.call("POST", "/api/v1/namespaces/default/resourcequotas", quota)
    assert (status, answer["spec"]) == (201, {"hard": {"cpu": "0"}})
    await api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "a"}})
    asked = {"spec": {"expirationSeconds": 2**62}}
    status, answer = await api.call("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", asked)
    assert status == 422
    assert "may not specify a duration larger than 2^32 seconds" in answer["message"]
