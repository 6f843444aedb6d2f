"""What pydantic finds wrong with an object, in one line and without the values."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from kopylite.objects.wirevalues import field_path

# An object that is wrong in many places is named with the first few of them.
_MAX_FAULTS = 5


def faults_of(error: ValidationError) -> list[Any]:
    return error.errors(include_url=False, include_context=False)


def describe(error: ValidationError) -> str:
    """The first few faults with their places."""
    faults = faults_of(error)
    texts = [f"{field_path(list(fault['loc']))}: {fault['msg']}" for fault in faults[:_MAX_FAULTS]]
    if len(faults) > _MAX_FAULTS:
        texts.append(f"and {len(faults) - _MAX_FAULTS} more")
    return "; ".join(texts)
