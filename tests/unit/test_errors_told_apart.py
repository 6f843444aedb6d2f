"""Answers of a real API server whose reason alone does not say what they mean; recorded, and shortened."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from kopylite import errors
from kopylite.errors import (
    AlreadyExists,
    ApiError,
    ApplyConflict,
    BeingDeleted,
    Conflict,
    Forbidden,
    Invalid,
    NamespaceNotFound,
    NamespaceTerminating,
    NameStillTaken,
    NotFound,
    api_error,
)

NO_NEW = (
    'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x/y"}'
)


def of(code: int, reason: str, message: str, request: str = "", **details: Any) -> ApiError:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return api_error(code, json.dumps(status).encode(), request=request)


def cause(reason: str, message: str, field: str) -> dict[str, str]:
    return {"reason": reason, "message": message, "field": field}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (of(403, "Forbidden", "cannot list"), Forbidden),
        (
            of(403, "Forbidden", "t is being terminated", causes=[cause("NamespaceTerminating", "t", "metadata")]),
            NamespaceTerminating,
        ),
        (of(404, "NotFound", "a", "PATCH /api/v1/namespaces/t/pods/a", name="a", kind="pods"), NotFound),
        (of(404, "NotFound", "t", "POST /api/v1/namespaces/t/pods", name="t", kind="namespaces"), NamespaceNotFound),
        (of(404, "NotFound", "t", "GET /api/v1/namespaces/t", name="t", kind="namespaces"), NotFound),
        (of(404, "NotFound", "t", "PUT /api/v1/namespaces/t/finalize", name="t", kind="namespaces"), NotFound),
        (
            of(404, "NotFound", "t", "GET /apis/x.io/v1/namespaces/t", name="t", kind="namespaces", group="x.io"),
            NotFound,
        ),
        (of(409, "AlreadyExists", 'pods "a" already exists'), AlreadyExists),
        (of(409, "AlreadyExists", 'object is being deleted: pods "a" already exists'), NameStillTaken),
        (of(409, "Conflict", "the object has been modified"), Conflict),
        (of(409, "Conflict", "1 conflict", causes=[cause("FieldManagerConflict", "with x", ".data.a")]), ApplyConflict),
        (
            of(422, "Invalid", "no", causes=[cause("FieldValueForbidden", NO_NEW, "metadata.finalizers")] * 2),
            BeingDeleted,
        ),
        (
            of(
                422,
                "Invalid",
                "no",
                causes=[
                    cause("FieldValueForbidden", NO_NEW, "metadata.finalizers"),
                    cause("FieldValueInvalid", "must be positive", "spec.replicas"),
                ],
            ),
            Invalid,
        ),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else value.message[:20],
)
def test_cause_details_and_text_tell_what_the_reason_does_not(error: ApiError, expected: type[ApiError]) -> None:
    assert type(error) is expected


def test_every_error_can_be_copied_and_sent_to_another_process() -> None:
    for cls in [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]:
        error = cls("is nan", "spec.x", "a") if cls is errors.EncodeError else cls("no")
        if issubclass(cls, errors.ApiError):
            error = cls("no", code=409, details={"name": "a"}, retry_after=2.0, request="GET /x")
        for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
            assert (type(again), str(again), vars(again)) == (cls, str(error), vars(error))
