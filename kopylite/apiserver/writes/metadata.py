"""ObjectMeta: what the server fills in, keeps, and refuses, the same for all kinds. Pure given a Clock."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any

import msgspec

from kopylite.apiserver.builtin.rules import NameErrors
from kopylite.apiserver.schema import objectmeta
from kopylite.apiserver.schema.field_errors import (
    INVALID,
    FieldError,
    RawText,
    forbidden,
    invalid,
    required,
    too_long,
)
from kopylite.apiserver.schema.names import label_key_errors, label_value_errors
from kopylite.clock import Clock

ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
MAX_ANNOTATIONS = 256 * 1024
# Letters and digits that make no words: upstream's alphabet for generated names.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_BASE = 63 - _SUFFIX_LENGTH

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_SET = ("uid", "creationTimestamp", *_DELETION, "selfLink")


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with whole seconds, as metav1.Time."""
    return f"{moment.isoformat(timespec='seconds')[:19]}Z"


def decode_metadata(obj: dict[str, Any]) -> list[str]:
    """Bring `obj`'s metadata into the form of ObjectMeta: unknown, null and empty fields go.

    Returns:
        The paths of the unknown fields.

    Raises:
        MetadataError: a field has the wrong type.
    """
    metadata = obj.get("metadata")
    if metadata is None:
        obj["metadata"] = {}
        return []
    unknown = objectmeta.decode_metadata(metadata)
    for key in [k for k, value in metadata.items() if value in ("", [], {})]:
        del metadata[key]
    for text_map in (metadata.get("labels"), metadata.get("annotations")):
        for key in [k for k, value in (text_map or {}).items() if value is None]:
            text_map[key] = ""
    return unknown


def fill_created(metadata: dict[str, Any], *, namespace: str, generation: int, clock: Clock) -> None:
    """What the server sets on a new object; what only it may set is wiped first. A generation of 0 is none."""
    for key in _SERVER_SET:
        metadata.pop(key, None)
    if namespace:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = clock.uuid()
    metadata["creationTimestamp"] = timestamp(clock.now())
    if generation:
        metadata["generation"] = generation


def generated_name(base: str, clock: Clock) -> str:
    """`base`, cut to 58 characters, and 5 random ones."""
    suffix = "".join(_SUFFIX_ALPHABET[int(clock.random() * len(_SUFFIX_ALPHABET))] for _ in range(_SUFFIX_LENGTH))
    return base[:_MAX_BASE] + suffix


def keep_on_update(metadata: dict[str, Any], old: dict[str, Any]) -> None:
    """Fields that an update never changes come from the stored object."""
    for key in ("creationTimestamp", "generation"):
        if key in old:
            metadata[key] = old[key]
        else:
            metadata.pop(key, None)
    metadata.pop("selfLink", None)
    # Left empty they are filled in; given, they are compared.
    for key in ("uid", "namespace", *_DELETION):
        if key in old and not metadata.get(key):
            metadata[key] = old[key]


def drop_duplicate_owners(metadata: dict[str, Any]) -> list[str]:
    """Remove owner references that are there twice. Returns the warnings."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    texts = [msgspec.json.encode(owner, order="deterministic") for owner in owners]
    distinct = dict(zip(texts, owners, strict=True))
    if len(distinct) == len(owners):
        return []
    metadata["ownerReferences"] = list(distinct.values())
    times = Counter(texts)
    repeated = (owner for text, owner in zip(texts, owners, strict=True) if times[text] > 1)
    uids = ", ".join(dict.fromkeys(str(owner.get("uid", "")) for owner in repeated))
    text = (
        ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
        f"reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
    )
    return [text]


def create_errors(metadata: dict[str, Any], name_errors: NameErrors, *, plain_finalizers: bool) -> list[FieldError]:
    """What is wrong with the metadata of a new object."""
    errors: list[FieldError] = []
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix:
        errors.extend(invalid("metadata.generateName", prefix, text) for text in name_errors(prefix, True))
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors.extend(invalid("metadata.name", name, text) for text in name_errors(name, False))
    return errors + _shared_errors(metadata, plain_finalizers=plain_finalizers)


def update_errors(
    metadata: dict[str, Any], old: dict[str, Any], *, custom: bool, plain_finalizers: bool
) -> list[FieldError]:
    """What is wrong with changed metadata."""
    errors = [
        invalid(f"metadata.{key}", metadata.get(key, ""), "field is immutable")
        for key in ("name", "namespace", "uid", "creationTimestamp", *_DELETION)
        if metadata.get(key) != old.get(key)
    ]
    if "deletionTimestamp" in old:
        added = [f for f in metadata.get("finalizers", ()) if f not in old.get("finalizers", ())]
        if added:
            shown = ", ".join(f'"{f}"' for f in sorted(added))
            text = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{shown}}}"
            )
            errors.append(forbidden("metadata.finalizers", text))
    shared = _shared_errors(metadata, plain_finalizers=plain_finalizers)
    if not custom:
        return shared + errors
    # Upstream looks at the metadata of custom resources as at new ones, and then twice at what may have changed.
    unnamed = [error for error in shared if error.field != "metadata.finalizers" or error.reason != INVALID]
    return shared + (errors + unnamed) * 2


def missing_version_error() -> FieldError:
    return invalid("metadata.resourceVersion", 0, "must be specified for an update")


def _shared_errors(metadata: dict[str, Any], *, plain_finalizers: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in metadata.get("labels", {}).items():
        errors.extend(invalid("metadata.labels", key, text) for text in label_key_errors(key))
        errors.extend(invalid("metadata.labels", value, text) for text in label_value_errors(value))
    errors.extend(_annotation_errors(metadata.get("annotations", {})))
    errors.extend(_owner_errors(metadata.get("ownerReferences", ())))
    finalizers = metadata.get("finalizers", ())
    for name in finalizers:
        errors.extend(invalid("metadata.finalizers", name, text) for text in label_key_errors(name))
    for index, name in enumerate(finalizers):
        if not plain_finalizers and "/" not in name and name not in _STANDARD_FINALIZERS:
            text = "name is neither a standard finalizer name nor is it fully qualified"
            errors.append(invalid(f"metadata.finalizers[{index}]", name, text))
    if ORPHAN in metadata.get("finalizers", ()) and FOREGROUND in metadata.get("finalizers", ()):
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.append(invalid("metadata.finalizers", metadata["finalizers"], both))
    return errors


def _annotation_errors(annotations: dict[str, str]) -> list[FieldError]:
    errors = [
        invalid("metadata.annotations", key, text) for key in annotations for text in label_key_errors(key.lower())
    ]
    if annotations_too_long(annotations):
        errors.append(too_long("metadata.annotations", MAX_ANNOTATIONS))
    return errors


def annotations_too_long(annotations: dict[str, str]) -> bool:
    return sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items()) > MAX_ANNOTATIONS


def _in_go_order(value: Any) -> str:
    """Owner references as Go prints them, fields in the order of the struct."""
    if isinstance(value, list):
        return f"[{','.join(_in_go_order(owner) for owner in value)}]"
    return json.dumps({key: value[key] for key in _OWNER_FIELDS if key in value}, separators=(",", ":"))


# Each of these errors shows all owners: a real server makes as many as there are, and gigabytes of text of them.
_MAX_CONTROLLER_ERRORS = 10


def _owner_errors(owners: Any) -> list[FieldError]:
    errors: list[FieldError] = []
    controller, controllers = "", 0
    for index, owner in enumerate(owners):
        where = f"metadata.ownerReferences[{index}]"
        group, _, version = str(owner.get("apiVersion", "")).rpartition("/")
        if not version:
            errors.append(required(f"{where}.apiVersion", "must not be empty"))
        elif "/" in group:
            text = "must be <group>/<version> or <version>"
            errors.append(invalid(f"{where}.apiVersion", owner["apiVersion"], text))
        errors.extend(
            required(f"{where}.{k}", "must not be empty") for k in ("kind", "name", "uid") if not owner.get(k)
        )
        if owner.get("kind") == "Event" and version == "v1" and group in ("", "events.k8s.io"):
            text = f"{group}/{version}, Kind=Event is disallowed from being an owner"
            errors.append(invalid(where, RawText(_in_go_order(owner)), text))
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller and controllers < _MAX_CONTROLLER_ERRORS:
                controllers += 1
                text = (
                    f'Only one reference can have Controller set to true. Found "true" in references for {controller} '
                    f"and {this}"
                )
                errors.append(invalid("metadata.ownerReferences", RawText(_in_go_order(owners)), text))
            controller = this
    return errors
