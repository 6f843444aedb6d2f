"""Admission policies, evaluated by the embedded server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.conftest import CONFIG_MAPS, Api

POLICIES = "/apis/admissionregistration.k8s.io/v1"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
MAP: dict[str, Any] = {"metadata": {"name": "a"}}


async def validating(api: Api, *, binding: dict[str, Any] | None = None, **spec: Any) -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}, **spec}
    await api.create(f"{POLICIES}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    bound = {"policyName": "p", "validationActions": ["Deny"], **(binding or {})}
    await api.create(f"{POLICIES}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})


async def mutating(api: Api, *mutations: dict[str, Any], name: str = "p", **spec: Any) -> None:
    listed = [
        {"patchType": kind, ("jsonPatch" if kind == "JSONPatch" else "applyConfiguration"): {"expression": text}}
        for mutation in mutations
        for kind, text in mutation.items()
    ]
    operations = {"matchConstraints": {"resourceRules": [RULE]}, "mutations": listed, "reinvocationPolicy": "Never"}
    body = {"metadata": {"name": name}, "spec": {**operations, **spec}}
    await api.create(f"{POLICIES}/mutatingadmissionpolicies", body)
    bound = {"metadata": {"name": name}, "spec": {"policyName": name}}
    await api.create(f"{POLICIES}/mutatingadmissionpolicybindings", bound)


DENIED = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"expression": "has(object.data)"}, "failed expression: has(object.data)"),
        ({"expression": "has(object.data)", "message": " no data "}, "no data"),
        ({"expression": "has(object.data)", "messageExpression": "'none in ' + object.metadata.name"}, "none in a"),
        ({"expression": "has(object.data)", "messageExpression": "string(object.nope)", "message": "m"}, "m"),
        ({"expression": "object.data.x == '1'"},
         "expression 'object.data.x == '1'' resulted in error: no such key: data"),
        ({"expression": "variables.n > 3"}, "failed expression: variables.n > 3"),
        ({"expression": "variables.bad == 1"},
         ("expression 'variables.bad == 1' resulted in error: composited variable "
          '"bad" fails to evaluate: no such key: nope')),
        ({"expression": "namespaceObject.metadata.name == 'other'"},
         "failed expression: namespaceObject.metadata.name == 'other'"),
        ({"expression": "!authorizer.requestResource.check('create').allowed()"},
         "failed expression: !authorizer.requestResource.check('create').allowed()"),
        ({"expression": "request.userInfo.username == 'x'"}, "failed expression: request.userInfo.username == 'x'"),
    ],
)  # fmt: skip
async def test_a_validation_denies(api: Api, validation: dict[str, Any], message: str) -> None:
    variables = [
        {"name": "n", "expression": "size(object.metadata.name)"},
        {"name": "bad", "expression": "object.nope"},
    ]
    await validating(api, validations=[validation], variables=variables)
    status, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == DENIED + message
    assert answer["details"]["causes"] == [{"message": answer["message"].partition(": ")[2]}]


async def test_what_is_valid_is_let_in_and_other_requests_are_no_matter(api: Api) -> None:
    await validating(api, validations=[{"expression": "has(object.data)", "reason": "Forbidden"}])
    await api.create(
        CONFIG_MAPS, {**MAP, "data": {}, "metadata": {"name": "b"}, "binaryData": {}} | {"data": {"a": "b"}}
    )
    assert (await api.call("POST", CONFIG_MAPS, MAP))[0] == 403
    assert (await api.call("DELETE", f"{CONFIG_MAPS}/b"))[0] == 200


async def test_failures_can_be_ignored_and_denials_cannot(api: Api) -> None:
    validations = [{"expression": "object.data.x == '1'"}]
    await validating(api, validations=validations, failurePolicy="Ignore")
    assert (await api.call("POST", CONFIG_MAPS, MAP))[0] == 201
    assert (await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"x": "2"}}))[0] == 422


async def test_a_binding_may_only_warn_and_note(api: Api) -> None:
    annotations = [{"key": "seen", "valueExpression": "'name ' + object.metadata.name"}]
    await validating(
        api,
        validations=[{"expression": "false", "message": "never"}],
        auditAnnotations=annotations,
        binding={"validationActions": ["Warn", "Audit"]},
    )
    response = await api.respond("POST", CONFIG_MAPS, MAP)
    assert response.status == 201
    assert response.warnings == ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never"]
    audit = list(api.core.log)[-1].audit
    assert audit["p/seen"] == "name a"
    assert '"message":"never"' in audit["validation.policy.admission.k8s.io/validation_failure"]


async def test_conditions_decide_whether_it_counts(api: Api) -> None:
    conditions = [{"name": "c", "expression": "object.metadata.name == 'b'"}]
    await validating(api, validations=[{"expression": "false"}], matchConditions=conditions)
    assert (await api.call("POST", CONFIG_MAPS, MAP))[0] == 201
    assert (await api.call("POST", CONFIG_MAPS, {"metadata": {"name": "b"}}))[0] == 422


@pytest.mark.parametrize(
    ("reference", "status", "message"),
    [
        ({"name": "limits", "namespace": "default"}, 422, "failed expression: params.data.max == '9'"),
        ({"selector": {"matchLabels": {"a": "b"}}}, 422, "failed expression: params.data.max == '9'"),
        ({"name": "nope"}, 422, ("failed to configure binding: no params found for policy binding with `Deny` "
         "parameterNotFoundAction")),
        ({"name": "nope", "parameterNotFoundAction": "Allow"}, 201, ""),
    ],
)  # fmt: skip
async def test_parameters_come_from_the_binding(api: Api, reference: dict[str, Any], status: int, message: str) -> None:
    await api.create(CONFIG_MAPS, {"metadata": {"name": "limits", "labels": {"a": "b"}}, "data": {"max": "3"}})
    await validating(
        api,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        validations=[{"expression": "params.data.max == '9'"}],
        binding={"paramRef": {"parameterNotFoundAction": "Deny", **reference}},
    )
    code, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert code == status
    assert message in answer.get("message", "")


async def test_an_unknown_parameter_kind_is_a_misconfigured_policy(api: Api) -> None:
    await validating(
        api,
        paramKind={"apiVersion": "example.com/v1", "kind": "Nope"},
        validations=[{"expression": "params == null"}],
        binding={"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}},
    )
    _, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert answer["message"].endswith(
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource "
        "referenced by paramKind: 'example.com/v1, Kind=Nope'"
    )


async def test_policies_are_no_subject_of_policies(api: Api) -> None:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}
    await validating(api, matchConstraints={"resourceRules": [rule]}, validations=[{"expression": "false"}])
    assert (await api.call("DELETE", f"{POLICIES}/validatingadmissionpolicies/p"))[0] == 200


async def test_mutations_apply_in_order(api: Api) -> None:
    apply = 'Object{metadata: Object.metadata{labels: {"seen": string(size(object.data))}}}'
    path = '"/metadata/annotations/" + jsonpatch.escapeKey("x/y")'
    patch = f'[JSONPatch{{op: "add", path: {path}, value: object.metadata.labels.seen}}]'
    await mutating(api, {"ApplyConfiguration": apply}, {"JSONPatch": patch})
    metadata = {"name": "a", "annotations": {"k": "v"}}
    created = await api.create(CONFIG_MAPS, {"metadata": metadata, "data": {"k": "v"}})
    assert created["metadata"]["labels"] == {"seen": "1"}
    assert created["metadata"]["annotations"] == {"k": "v", "x/y": "1"}


async def test_an_apply_configuration_merges_lists_by_key(api: Api) -> None:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}
    expression = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{"
        'initContainers: [Object.spec.template.spec.initContainers{name: "mesh", image: "mesh"}]}}}}'
    )
    await mutating(api, {"ApplyConfiguration": expression}, matchConstraints={"resourceRules": [rule]})
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod}}
    created = await api.create("/apis/apps/v1/namespaces/default/deployments", body)
    spec = created["spec"]["template"]["spec"]
    assert [each["name"] for each in spec["initContainers"]] == ["mesh"]
    assert spec["initContainers"][0]["imagePullPolicy"] == "Always"
    assert [each["name"] for each in spec["containers"]] == ["c"]


@pytest.mark.parametrize(
    ("mutation", "message"),
    [
        ({"ApplyConfiguration": "Object{spec: Object.wrong{a: 1}}"}, "type mismatch: unexpected type name"),
        ({"JSONPatch": '[JSONPatch{op: "remove", path: "/nope"}]'}, "JSON Patch: "),
        ({"ApplyConfiguration": "Object{data: object.nope}"}, "resulted in error: no such key: nope"),
    ],
)  # fmt: skip
async def test_a_mutation_that_cannot_be_made_denies(api: Api, mutation: dict[str, Any], message: str) -> None:
    await mutating(api, mutation)
    _, answer = await api.call("POST", CONFIG_MAPS, MAP)
    assert answer["message"].startswith("policy 'p' with binding 'p' denied request: ")
    assert message in answer["message"]


async def test_a_policy_that_wants_to_is_asked_again(api: Api) -> None:
    count = (
        'Object{metadata: Object.metadata{labels: {"n": string(int(has(object.metadata.labels) && "n" in '
        'object.metadata.labels ? object.metadata.labels.n : "0") + 1)}}}'
    )
    await mutating(api, {"ApplyConfiguration": count}, name="p1", reinvocationPolicy="IfNeeded")
    await mutating(api, {"JSONPatch": '[JSONPatch{op: "add", path: "/data", value: {"x": "y"}}]'}, name="p2")
    created = await api.create(CONFIG_MAPS, MAP)
    assert created["metadata"]["labels"]["n"] == "2"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.flag", "must evaluate to bool but got dyn"),
        ("object.items[0].?x", "must evaluate to bool but got dyn"),
        ("true ? true : object.x", "must evaluate to bool but got dyn"),
        ("variables.a", "must evaluate to bool but got dyn"),
        ("request.userInfo.username", "must evaluate to bool but got string"),
        ("null", "must evaluate to bool but got null_type"),
        ("variables.nope", "undefined field 'nope'"),
        ("has(variables.nope)", "undefined field 'nope'"),
        ("request.object.x == 1", "undefined field 'object'"),
        ("namespaceObject.x == 1", "undefined field 'x'"),
        ("variables.b > 1", "found no matching overload for '_>_' applied to '(bool, int)'"),
        ("variables.b && object.x", ""),
        ("request.dryRun", ""),
        ('{"a": true}["a"]', ""),
        ("object.?x.hasValue() || namespaceObject.metadata.labels['x'] == request.name", ""),
    ],
)
async def test_an_expression_of_the_wrong_type_is_refused_with_its_policy(
    api: Api, expression: str, problem: str
) -> None:
    """The expectations are those of the real server."""
    variables = [{"name": "a", "expression": "object.a"}, {"name": "b", "expression": "variables.a > 3"}]
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "variables": variables}
    body = {"metadata": {"name": "p"}, "spec": {**spec, "validations": [{"expression": expression}]}}
    status, answer = await api.call("POST", f"{POLICIES}/validatingadmissionpolicies", body)
    assert (status, problem in answer.get("message", "")) == (422 if problem else 201, True), answer


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"validations": [{"expression": "variables.a"}]}, "undeclared reference to 'variables'"),
        ({"variables": [{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]},
         "undefined field 'b'"),
        ({"matchConditions": [{"name": "c", "expression": "variables.a"}],
          "variables": [{"name": "a", "expression": "true"}]}, "undeclared reference to 'variables'"),
        ({"auditAnnotations": [{"key": "k", "valueExpression": "1"}]},
         "must evaluate to one of [string null_type] but got int"),
        ({"validations": [{"expression": "true", "messageExpression": "object.x"}]},
         "must evaluate to string but got dyn"),
    ],
)  # fmt: skip
async def test_variables_are_known_from_where_they_are_declared(api: Api, spec: dict[str, Any], problem: str) -> None:
    whole = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}], **spec}
    body = {"metadata": {"name": "p"}, "spec": whole}
    status, answer = await api.call("POST", f"{POLICIES}/validatingadmissionpolicies", body)
    assert status == 422
    assert problem in answer["message"]
