from __future__ import annotations

import msgspec
import pytest

from kopylite.client import verbs
from kopylite.client.verbs import Preconditions, ResourceInfo, Selection, WriteOptions
from kopylite.errors import UsageError
from kopylite.objects import Kind, ObjectKey

DEPLOYMENTS = ResourceInfo(Kind("apps/v1", "Deployment"), "deployments", True)
NODES = ResourceInfo(Kind("v1", "Node"), "nodes", False)
WEB = ObjectKey("shop", "web")


def test_paths_follow_group_version_scope_and_subresource() -> None:
    assert verbs.get(DEPLOYMENTS, WEB).path == "/apis/apps/v1/namespaces/shop/deployments/web"
    assert verbs.get(DEPLOYMENTS, WEB, "scale").path == "/apis/apps/v1/namespaces/shop/deployments/web/scale"
    assert verbs.get(NODES, ObjectKey("", "n1")).path == "/api/v1/nodes/n1"
    assert verbs.list_page(DEPLOYMENTS).path == "/apis/apps/v1/deployments"
    assert verbs.discovery("apps/v1").path == "/apis/apps/v1"
    assert verbs.discovery("v1").path == "/api/v1"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_name_another_path_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="name cannot be"):
        verbs.delete(DEPLOYMENTS, ObjectKey("shop", name), b"{}")
    if name:
        with pytest.raises(UsageError, match="namespace cannot be"):
            verbs.get(DEPLOYMENTS, ObjectKey(name, "web"))


def test_names_are_percent_encoded() -> None:
    role = ResourceInfo(Kind("rbac.authorization.k8s.io/v1", "ClusterRole"), "clusterroles", False)
    path = verbs.get(role, ObjectKey("", "system:a/../b?c=d%2f")).path
    assert path.endswith("/clusterroles/system%3Aa%2F..%2Fb%3Fc%3Dd%252f")


def test_a_key_that_does_not_fit_the_scope_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a namespace"):
        verbs.get(DEPLOYMENTS, ObjectKey("", "web"))
    with pytest.raises(UsageError, match="cluster-scoped"):
        verbs.get(NODES, ObjectKey("shop", "n1"))
    with pytest.raises(UsageError, match="cluster-scoped"):
        verbs.list_page(NODES, "shop")
    with pytest.raises(UsageError, match="needs a namespace"):
        verbs.create(DEPLOYMENTS, "", b"{}")


def test_a_query_is_encoded() -> None:
    request = verbs.list_page(DEPLOYMENTS, "shop", Selection("app in (a,b)", "metadata.name=x"), limit=5)
    assert request.target == (
        "/apis/apps/v1/namespaces/shop/deployments"
        "?labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%3Dx&limit=5"
    )


def test_a_continued_list_carries_no_resource_version() -> None:
    first = verbs.list_page(DEPLOYMENTS, resource_version="7")
    assert first.params == {"resourceVersion": "7", "resourceVersionMatch": "NotOlderThan"}
    assert verbs.list_page(DEPLOYMENTS, resource_version="7", continue_token="t").params == {"continue": "t"}


def test_a_watch_asks_for_bookmarks_and_on_demand_for_initial_events() -> None:
    plain = verbs.watch(DEPLOYMENTS, resource_version="7", timeout_seconds=300)
    assert plain.params == {
        "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "7", "timeoutSeconds": "300",
    }  # fmt: skip
    streamed = verbs.watch(DEPLOYMENTS, send_initial_events=True, metadata_only=True)
    assert streamed.params["sendInitialEvents"] == "true"
    assert streamed.params["resourceVersionMatch"] == "NotOlderThan"
    assert streamed.accept.startswith("application/json;as=PartialObjectMetadata;")


def test_write_options_become_parameters() -> None:
    options = WriteOptions("me", dry_run=True, force=True, strict=True)
    request = verbs.patch(DEPLOYMENTS, WEB, b"{}", "apply", None, options)
    assert request.params == {"fieldManager": "me", "dryRun": "All", "force": "true", "fieldValidation": "Strict"}
    assert request.content_type == "application/apply-patch+yaml"


def test_apply_without_a_field_manager_and_unknown_patch_types_are_refused() -> None:
    with pytest.raises(UsageError, match="field manager"):
        verbs.patch(DEPLOYMENTS, WEB, b"{}", "apply")
    with pytest.raises(UsageError, match="unknown patch type"):
        verbs.patch(DEPLOYMENTS, WEB, b"{}", "yaml")  # type: ignore[arg-type]


def test_preconditions_become_delete_options() -> None:
    assert Preconditions().to_dict(dry_run=False) == {"kind": "DeleteOptions", "apiVersion": "v1"}
    full = Preconditions("u", "7", "Foreground", 0).to_dict(dry_run=True)
    assert full["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert full["propagationPolicy"] == "Foreground"
    assert full["gracePeriodSeconds"] == 0
    assert full["dryRun"] == ["All"]


def test_neither_text_nor_repr_of_a_request_shows_query_or_body() -> None:
    request = verbs.create(DEPLOYMENTS, "shop", msgspec.json.encode({"data": "hush"}), WriteOptions("me"))
    assert str(request) == "POST /apis/apps/v1/namespaces/shop/deployments"
    assert "hush" not in repr(request)
