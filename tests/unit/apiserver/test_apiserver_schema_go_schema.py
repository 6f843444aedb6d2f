from __future__ import annotations

from kopylite.apiserver.schema.field_errors import go_json
from kopylite.apiserver.schema.go_schema import go_rule, go_schema, go_version


def test_a_rule_is_printed_with_all_its_members() -> None:
    assert go_json(go_rule({"rule": "a < b"})) == (
        '{"Rule":"a \\u003c b","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
    )


def test_a_schema_is_printed_in_the_order_of_its_struct() -> None:
    text = go_json(go_schema({"type": "object", "properties": {"b": {}, "a": {"items": {}}}, "minProperties": 1}))
    assert text.startswith('{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","Nullable":false,')
    assert '"MinProperties":1,"Required":null,"Items":null,' in text
    assert '"Properties":{"a":{"ID":""' in text
    assert '"Items":{"Schema":{"ID":""' in text
    assert '"JSONSchemas":null}' in text


def test_a_version_shows_its_parts() -> None:
    version = {
        "name": "v1",
        "served": True,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
        "additionalPrinterColumns": [{"name": "A", "type": "date", "jsonPath": ".a"}],
        "selectableFields": [{"jsonPath": ".spec.a"}],
    }
    text = go_json(go_version(version))
    assert text.startswith('{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,')
    assert '"Scale":{"SpecReplicasPath":".spec.n","StatusReplicasPath":".status.n","LabelSelectorPath":null}' in text
    assert '{"Name":"A","Type":"date","Format":"","Description":"","Priority":0,"JSONPath":".a"}' in text
    assert '"SelectableFields":[{"JSONPath":".spec.a"}]' in text
