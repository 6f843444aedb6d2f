from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite import App, Context, CustomResource, Kind, Request
from kopylite.client import Permission
from kopylite.deploy import ApiCall, Recording, needs_of
from kopylite.deploy.rules import RoleRule, rules_of
from kopylite.errors import UsageError
from kopylite.manager import Options
from kopylite.objects import kind_of


class Thing(CustomResource[dict[str, str], dict[str, str]], group="x.io", version="v1"):
    pass


class Zone(CustomResource[dict[str, str], dict[str, str]], group="x.io", version="v1", scope="Cluster"):
    pass


Deployment, ConfigMap, Foreign = Kind("apps/v1", "Deployment"), Kind("v1", "ConfigMap"), Kind("y.io/v1", "Other")
ALL, LIMITED = Options(), Options(namespaces=("a", "b"))


def an_app(*watches: Kind, kind: type = Thing, election: bool = False) -> App:
    app = App("things", leader_election=election)

    @app.reconciler(kind, owns=[Deployment], watches=watches)
    async def reconcile(ctx: Context, request: Request) -> None:
        return None

    return app


def seen(*calls: ApiCall) -> Recording:
    return Recording({"things": calls})


def lines(permissions: frozenset[Permission]) -> set[str]:
    return {f"{one.verb} {one.resource} {one.namespace or '(all)'} {one.name}".strip() for one in permissions}


def test_what_is_declared_is_read_and_events_are_published() -> None:
    needs = needs_of([an_app(ConfigMap)], ALL, "ops", seen(ApiCall("x.io", "things/status", "patch", "*")))
    reads = {
        f"{verb} {of} (all)" for verb in ("get", "list", "watch") for of in ("things", "deployments", "configmaps")
    }
    assert lines(needs.permissions) == reads | {
        "update things/finalizers (all)",
        "create events (all)",
        "patch events (all)",
        "patch things/status (all)",
    }
    assert (needs.leases, needs.assumed) == ((), ())


def test_without_a_recording_the_usual_writes_are_assumed_and_that_is_said() -> None:
    needs = needs_of([an_app(ConfigMap)], ALL, "ops", Recording({"another": [ApiCall("", "pods", "delete", "*")]}))
    found = lines(needs.permissions)
    assert {"patch things (all)", "patch things/status (all)", "create deployments (all)"} <= found
    assert not any("pods" in line or line.startswith("create configmaps") for line in found)
    assert needs.assumed == ("things",)


def test_limited_to_namespaces_it_needs_nothing_elsewhere() -> None:
    calls = seen(
        ApiCall("", "secrets", "get", "*"),
        ApiCall("", "secrets", "get", "vault"),
        ApiCall("", "nodes", "list", ""),
        ApiCall("x.io", "things", "watch", ""),  # recorded by a test that did not limit it
        ApiCall("apps", "deployments", "list", "test-17"),  # by one that did, to a namespace of its own
        ApiCall("events.k8s.io", "events", "create", "test-17"),
    )
    found = lines(needs_of([an_app()], LIMITED, "ops", calls).permissions)
    assert {line for line in found if "(all)" in line} == {"list nodes (all)"}
    assert {line for line in found if "secrets" in line} == {"get secrets a", "get secrets b", "get secrets vault"}
    assert not any("test-17" in line for line in found)


def test_events_of_objects_without_a_namespace_go_to_default() -> None:
    found = lines(needs_of([an_app(kind=Zone)], LIMITED, "ops", seen()).permissions)
    assert {"create events default", "patch events default", "get zones (all)"} <= found


def test_an_election_needs_its_one_lease_and_events_about_it() -> None:
    needs = needs_of([an_app(election=True)], LIMITED, "ops", seen(ApiCall("", "pods", "get", "*")))
    found = lines(needs.permissions)
    assert {line for line in found if "leases" in line} == {
        "get leases ops things", "watch leases ops things", "update leases ops things"
    }  # fmt: skip
    assert "create events ops" in found
    assert needs.leases == ("things",)
    other = Options(lease_name="l", lease_namespace="n")
    assert "get leases n l" in lines(needs_of([an_app(election=True)], other, "ops").permissions)
    assert needs_of([an_app(election=True)], Options(leader_election=False), "ops").leases == ()


def test_shards_need_a_lease_each_and_one_of_each_replica() -> None:
    needs = needs_of([an_app()], Options(shards=2), "ops", seen(ApiCall("", "pods", "get", "*")))
    assert needs.leases == ("things-shard-0", "things-shard-1")
    verbs = ("list", "create", "delete", "get", "watch", "update")
    assert {f"{verb} leases ops" for verb in verbs} <= {line.strip() for line in lines(needs.permissions)}


def test_a_kind_whose_plural_nobody_knows_is_named_with_the_way_out() -> None:
    with pytest.raises(UsageError, match=r"Kind\('y.io/v1', 'Other', plural=..., namespaced=...\)"):
        needs_of([an_app(Foreign)], ALL, "ops")

    def ask(kind: Kind) -> Kind:
        return dataclasses.replace(kind, plural="others", namespaced=True) if kind == Foreign else kind_of(kind)

    assert "list others (all)" in lines(needs_of([an_app(Foreign)], ALL, "ops", complete=ask).permissions)


def test_a_role_that_is_bound_is_named() -> None:
    call = ApiCall("rbac.authorization.k8s.io", "clusterroles", "bind", "*", "edit")
    for options, where in ((ALL, [""]), (LIMITED, list(LIMITED.scope.names))):
        found = needs_of([an_app()], options, "ops", seen(call)).permissions
        bound = sorted((one.namespace, one.name) for one in found if one.verb == "bind")
        assert bound == sorted((namespace, "edit") for namespace in where)


CALLS = st.builds(
    ApiCall,
    st.sampled_from(["", "apps", "x.io"]),
    st.sampled_from(["pods", "things", "things/status", "deployments"]),
    st.sampled_from(["get", "list", "watch", "create", "patch", "delete"]),
    st.sampled_from(["", "*", "a", "z"]),
)


@given(st.lists(CALLS, max_size=8), st.sampled_from([ALL, LIMITED]))
def test_everything_seen_is_allowed_and_no_right_is_said_twice(calls: list[ApiCall], options: Options) -> None:
    found = needs_of([an_app()], options, "ops", seen(*calls)).permissions
    for call in calls:
        of = [one for one in found if (one.verb, one.group) == (call.verb, call.group)]
        assert any(one.resource == call.resource for one in of)
    wide = {(one.verb, one.group, one.resource) for one in found if not one.namespace and not one.name}
    assert not any(one.namespace and (one.verb, one.group, one.resource) in wide for one in found)


@given(st.frozensets(CALLS))
def test_rules_allow_exactly_the_permissions_in_a_fixed_order(calls: frozenset[ApiCall]) -> None:
    permissions = [Permission(call.verb, call.resource, call.group) for call in calls]
    rules = rules_of(permissions)
    allowed = {(verb, resource, rule.group) for rule in rules for resource in rule.resources for verb in rule.verbs}
    assert allowed == {(one.verb, one.resource, one.group) for one in permissions}
    assert rules_of(reversed(permissions)) == rules


def test_a_rule_reads_as_in_a_role() -> None:
    assert RoleRule("g", ("things",), ("get",), ("one",)).to_wire() == {
        "apiGroups": ["g"], "resources": ["things"], "resourceNames": ["one"], "verbs": ["get"]
    }  # fmt: skip


@pytest.mark.parametrize("options", [Options(namespaces=("shop", "team-*")), Options(namespaces_labelled="tier=prod")])
def test_a_scope_that_is_followed_needs_a_cluster_role_and_the_sight_of_namespaces(options: Options) -> None:
    found = lines(needs_of([an_app(ConfigMap)], options, "ops").permissions)
    assert {"list namespaces (all)", "watch namespaces (all)", "list things (all)", "patch things (all)"} <= found
    assert not any("(all)" not in line for line in found)
    assert not any("namespaces" in line for line in lines(needs_of([an_app()], LIMITED, "ops").permissions))
