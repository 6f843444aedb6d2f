"""What can set one built-in kind apart from the next, beyond its schema and defaults. Pure.

The kinds themselves are in rules_core.py and rules_groups.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kopylite.apiserver.builtin import warnings
from kopylite.apiserver.resources.strategy import StrategyContext
from kopylite.apiserver.schema.field_errors import FieldError
from kopylite.apiserver.schema.names import label_errors, path_segment_errors, subdomain_errors

Object = dict[str, Any]
Decoded = Callable[[Object], None]
Create = Callable[[Object, StrategyContext], None]
Update = Callable[[Object, Object, StrategyContext], None]
Validate = Callable[[Object], list[FieldError]]
ValidateThere = Callable[[Object, StrategyContext], list[FieldError]]
ValidateUpdate = Callable[[Object, Object], list[FieldError]]
NameErrors = Callable[[str, bool], list[str]]


def prefixed(check: Callable[[str], list[str]]) -> NameErrors:
    """A generateName may end with a hyphen: it is checked with its last two characters replaced by a letter."""

    def errors(name: str, prefix: bool) -> list[str]:
        return check(f"{name[:-2]}a" if prefix and len(name) > 1 and name.endswith("-") else name)

    return errors


def cron_job_name(name: str) -> list[str]:
    # Eleven characters are left for the names of its jobs.
    return subdomain_errors(name) + (["must be no more than 52 characters"] if len(name.encode()) > 52 else [])


_subdomain = prefixed(subdomain_errors)


def any_segment(name: str, prefix: bool) -> list[str]:
    return path_segment_errors(name)


@dataclass(frozen=True, slots=True)
class KindRules:
    """The particulars of one kind.

    Attributes:
        decode: runs after each decoding, for what Go's conversion functions do.
        keeps_status: a creator may set status.
        create: writes what the server sets, after status was reset.
        update: likewise for an update, by sub-resource ("" for the main endpoint).
        validate, validate_new, validate_update, validate_status: of every object, of new ones, of changes by the
            main endpoint, of changes by `/status`.
        validate_there: likewise of new ones, where the rest of the world has a say.
        changes_first: the errors of a change come before those of the object.
        status_keeps_metadata: `/status` changes no metadata.
        counts_empties: the part in which an empty list or map is a change to `generation`, because upstream compares it
            with what was stored, which has none, by reflect.DeepEqual.
        reset_fields: by sub-resource, where it is not `status` for the main endpoint and `spec` for `/status`.
    """

    generation: bool = False
    unconditional_update: bool = True
    create_on_update: bool = False
    grace: bool = False
    status_keeps_metadata: bool = False
    keeps_status: bool = False
    changes_first: bool = False
    name_errors: NameErrors = _subdomain
    decode: Decoded | None = None
    create: Create | None = None
    update: Mapping[str, Update] = field(default_factory=dict)
    validate: tuple[Validate, ...] = ()
    validate_new: tuple[Validate, ...] = ()
    validate_there: tuple[ValidateThere, ...] = ()
    validate_update: tuple[ValidateUpdate, ...] = ()
    validate_status: tuple[ValidateUpdate, ...] = ()
    warnings: warnings.Warn | None = None
    counts_empties: str = ""
    reset_fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


LABEL = prefixed(label_errors)
CRON_JOB = prefixed(cron_job_name)
# What `/status` leaves alone in kinds whose status keeps the metadata, too.
METADATA_TOO = {"status": ("metadata", "spec")}
