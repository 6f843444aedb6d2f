"""Validation of CRDs. The texts were read off a real kube-apiserver 1.37."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kopylite.apiserver.crd.validation import crd_errors, is_true, status_errors

VERSION: dict[str, Any] = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {
        "openAPIV3Schema": {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "properties": {"a": {"type": "string"}, "l": {"type": "object"}}}
            },
        }
    },
}


def crd(**changes: Any) -> dict[str, Any]:
    """A valid CRD; changes are by dotted path with double underscores: spec__names__kind="X"."""
    obj: dict[str, Any] = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [copy.deepcopy(VERSION)],
            "conversion": {"strategy": "None"},
        },
        "status": {"storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}},
    }
    for path, value in changes.items():
        *parents, last = path.split("__")
        target = obj
        for parent in parents:
            target = target[parent]
        target[last] = value
    return obj


def version(**members: Any) -> dict[str, Any]:
    return {**copy.deepcopy(VERSION), **members}


def errors_of(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in crd_errors(obj, old)]


LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def test_a_good_crd_has_no_errors() -> None:
    assert errors_of(crd()) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"metadata__name": "foo"},
            'metadata.name: Invalid value: "foo": must be spec.names.plural+"."+spec.group',
        ),
        ({"spec__scope": ""}, "spec.scope: Required value"),
        ({"spec__scope": "X"}, 'spec.scope: Unsupported value: "X": supported values: "Cluster", "Namespaced"'),
        ({"spec__names__kind": ""}, "spec.names.kind: Required value"),
        (
            {"spec__names__kind": "A_b"},
            f'spec.names.kind: Invalid value: "A_b": may have mixed case, but should otherwise match: {LABEL}',
        ),
        ({"spec__names__shortNames": ["W"]}, f'spec.names.shortNames[0]: Invalid value: "W": {LABEL}'),
        (
            {"spec__names__listKind": "Widget"},
            'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
        ),
        (
            {"spec__versions": [version(schema=None)]},
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            {"spec__versions": [version(deprecationWarning="x")]},
            'spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions',
        ),
        (
            {"spec__preserveUnknownFields": True},
            ("spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"),
        ),
        (
            {"spec__versions": [version(additionalPrinterColumns=[{"name": "a", "type": "bad", "jsonPath": ".x"}])]},
            ('spec.additionalPrinterColumns[0].type: Invalid value: "bad": must be one of '
            "boolean,date,integer,number,string"),
        ),
        (
            {"spec__versions": [version(additionalPrinterColumns=[{"name": "a", "type": "date", "jsonPath": "x"}])]},
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
        ),
        (
            {"spec__versions": [version(selectableFields=[{"jsonPath": ".spec.l"}])]},
            ('spec.selectableFields[0].jsonPath: Invalid value: ".spec.l": must point to a field of '
            'type string, boolean '
            "or integer. Enum string fields and strings with formats are allowed."),
        ),
        (
            {"spec__versions": [version(selectableFields=[{"jsonPath": ".spec.zz"}])]},
            ('spec.selectableFields[0].jsonPath: Invalid value: ".spec.zz": is an invalid path: does '
            'not refer to a valid '
            "field"),
        ),
        (
            {"spec__versions": [version(selectableFields=[{"jsonPath": ".spec.a"}, {"jsonPath": ".spec.a"}])]},
            'spec.selectableFields[1].jsonPath: Duplicate value: ".spec.a"',
        ),
        (
            {"spec__versions": [version(subresources={"scale": {"statusReplicasPath": ".status.x"}})]},
            "spec.subresources.scale.specReplicasPath: Required value",
        ),
        (
            {
                "spec__versions": [
                    version(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.x"}})
                ]
            },
            'spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec',
        ),
        (
            {"spec__conversion": {"strategy": "Webhook"}},
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ),
        (
            {"spec__conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}},
            ("spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is "
            "not set to Webhook"),
        ),
        (
            {
                "spec__conversion": {
                    "strategy": "Webhook",
                    "webhook": {"conversionReviewVersions": ["v2"], "clientConfig": {"url": "https://a"}},
                }
            },
            'spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
        ),
        (
            {"status__storedVersions": []},
            "status.storedVersions: Invalid value: null: must have at least one stored version",
        ),
        (
            {"status__storedVersions": ["v1", "v0"]},
            ('status.storedVersions[1]: Invalid value: "v0": missing from spec.versions; v0 was previously a storage '
            "version, and must remain in spec.versions until a storage migration ensures no data "
            "remains persisted in v0 "
            "and removes v0 from status.storedVersions"),
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_its_place(changes: dict[str, Any], expected: str) -> None:
    assert expected in errors_of(crd(**changes))


def test_one_version_is_the_storage_version() -> None:
    (error,) = errors_of(crd(spec__versions=[version(storage=False)]))
    assert error == (
        'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,'
        '"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,'
        '"SelectableFields":null}]: must have exactly one version marked as storage version'
    )


def test_schemas_that_differ_are_named_by_their_version() -> None:
    bad = version(name="v2", storage=False, schema={"openAPIV3Schema": {"type": "object", "properties": {"x": {}}}})
    assert errors_of(crd(spec__versions=[version(), bad])) == [
        (
            "spec.versions[1].schema.openAPIV3Schema.properties[x].type: Required value: must not be "
            "empty for specified "
            "object fields"
        )
    ]
    both = [{**bad, "name": "v1", "storage": True}, bad]
    assert errors_of(crd(spec__versions=both)) == [
        (
            "spec.validation.openAPIV3Schema.properties[x].type: Required value: must not be empty for "
            "specified object "
            "fields"
        )
    ]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, "Required value: protected groups must have approval annotation"),
        ("bad", 'Invalid value: "bad": protected groups must have approval annotation'),
        ("unapproved, for a test", ""),
        ("https://github.com/x", ""),
    ],
)
def test_groups_of_kubernetes_need_approval(annotation: str | None, expected: str) -> None:
    obj = crd(spec__group="x.k8s.io", metadata__name="widgets.x.k8s.io")
    if annotation is not None:
        obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    found = errors_of(obj)
    assert (
        found == []
        if not expected
        else found[0].startswith(f"metadata.annotations[api-approved.kubernetes.io]: {expected}")
    )


def test_names_that_storage_depends_on_do_not_change() -> None:
    old = crd(status__conditions=[{"type": "Established", "status": "True"}])
    new = crd(spec__scope="Cluster", spec__names__kind="Other", spec__names__plural="others", spec__group="b.c")
    assert [e for e in errors_of(new, old) if "immutable" in e] == [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Other": field is immutable',
        'spec.group: Invalid value: "b.c": field is immutable',
        'spec.names.plural: Invalid value: "others": field is immutable',
    ]
    assert [e for e in errors_of(crd(spec__scope="Cluster"), crd()) if "immutable" in e] == []


def test_a_status_update_checks_accepted_names_only() -> None:
    assert status_errors(crd(spec__scope="")) == []
    (error,) = status_errors(crd(status__acceptedNames={"plural": "A"}))
    assert error.field == "status.acceptedNames.plural"


def test_conditions_are_true_when_they_say_so() -> None:
    obj = crd(status__conditions=[{"type": "A", "status": "True"}, {"type": "B", "status": "False"}])
    assert is_true(obj, "A")
    assert not is_true(obj, "B")
    assert not is_true(obj, "C")
