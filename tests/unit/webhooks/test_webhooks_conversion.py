"""Conversion between versions, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kopylite import App, Kind, RegistrationError, Unstructured
from kopylite.errors import BadRequest
from kopylite.webhooks.conversion import ConversionFailed, Conversions, conversion_request_of, steps_of

V1, V2, V3 = (Kind(f"example.com/v{n}", "Shop", "shops", True) for n in (1, 2, 3))


def converting(storage: Kind = V1, *others: Kind) -> Conversions:
    app = App("shop")

    @app.converter(storage, versions=others or (V2, V3))
    def convert(obj: Unstructured, to: Kind) -> Unstructured:
        assert V1.api_version in (obj.api_version, to.api_version)
        spec = dict(obj.spec)
        if spec.get("bad"):
            raise ValueError("hunter2")
        spec["way"] = [*spec.get("way", []), to.version]
        metadata = {"name": "made up"}
        return Unstructured(apiVersion=to.api_version, kind="Shop", metadata=metadata, spec=spec)

    return Conversions(app.converters)


def shop(version: str = "v1", name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": {"x": "y"}, "managedFields": [{"odd": None}]}
    return {"apiVersion": f"example.com/{version}", "kind": "Shop", "metadata": metadata, "spec": spec}


def raw(obj: Any) -> bytes:
    return json.dumps(obj).encode()


@pytest.mark.parametrize(
    ("start", "end", "way"),
    [("v1", "v2", ["v2"]), ("v2", "v1", ["v1"]), ("v2", "v3", ["v1", "v3"])],
)
def test_by_way_of_the_storage_version_with_the_metadata_as_it_came(start: str, end: str, way: list[str]) -> None:
    converted = converting().convert(raw(shop(start)), f"example.com/{end}")
    assert (converted["apiVersion"], converted["spec"]["way"]) == (f"example.com/{end}", way)
    assert converted["metadata"] == shop()["metadata"]


def test_what_is_of_the_version_already_stays() -> None:
    assert converting().convert(raw(shop("v2", a=1.0)), "example.com/v2") == shop("v2", a=1.0)


@pytest.mark.parametrize(
    ("obj", "desired", "text"),
    [
        (shop(bad=True), "example.com/v2", "Shop default/a cannot be converted .* ValueError"),
        (shop(), "example.com/v9", "Shop default/a: there is no converter for example.com/v9"),
        (shop("v9"), "example.com/v1", "there is no converter for example.com/v9"),
        ({**shop(), "kind": "Other"}, "example.com/v2", "Other default/a: there is no converter"),
        ([], "example.com/v2", "cannot be read"),
        ({"kind": "Shop"}, "example.com/v2", "cannot be read"),
    ],
)  # fmt: skip
def test_a_failure_has_the_name_and_no_value(obj: Any, desired: str, text: str) -> None:
    with pytest.raises(ConversionFailed, match=text) as caught:
        converting().convert(raw(obj), desired)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "problem"),
    [(float("nan"), "nan"), ("\ud800", "lone surrogate"), (2**64, "64 bits"), (object(), "")],
)
def test_what_a_converter_returns_and_json_does_not_have_fails_with_object_and_field(value: Any, problem: str) -> None:
    app = App("shop")

    @app.converter(V1, versions=(V2,))
    def convert(obj: Unstructured, to: Kind) -> Unstructured:
        return Unstructured(apiVersion=to.api_version, kind="Shop", metadata={}, spec={"price": value})

    with pytest.raises(ConversionFailed, match=f"Shop default/a .*spec.price.*{problem}"):
        Conversions(app.converters).convert(raw(shop()), "example.com/v2")


def test_one_bad_object_among_2000_fails_the_review_with_its_name() -> None:
    objects = [shop(name=f"n{n}", bad=n == 1234) for n in range(2000)]
    body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
            "request": {"uid": "u", "desiredAPIVersion": "example.com/v2", "objects": objects}}  # fmt: skip
    request = conversion_request_of(raw(body))
    with pytest.raises(ConversionFailed, match="Shop default/n1234 "):
        list(steps_of(converting(), request))
    body["request"]["objects"] = objects[:1234]  # type: ignore[index]
    converted = list(steps_of(converting(), conversion_request_of(raw(body))))
    assert [each["metadata"]["name"] for each in converted] == [f"n{n}" for n in range(1234)]


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'{"kind": "ConversionReview"}'])
def test_what_is_no_review_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        conversion_request_of(body)


def test_wrong_declarations_are_refused() -> None:
    app = App("shop")
    with pytest.raises(RegistrationError, match="another kind"):
        app.converter(V1, versions=[Kind("example.com/v2", "Other")])(lambda obj, to: obj)
    with pytest.raises(RegistrationError, match="storage version itself"):
        app.converter(V1, versions=[V1])(lambda obj, to: obj)
    app.converter(V1, versions=[V2])(lambda obj, to: obj)
    with pytest.raises(RegistrationError, match="there is a converter"):
        app.converter(V1, versions=[V2])(lambda obj, to: obj)
    with pytest.raises(RegistrationError, match="cannot both be stored"):
        app.converter(V2, versions=[V3])(lambda obj, to: obj)
