from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.apiserver.inprocess import Api, Object, serving

NAMESPACES = "/api/v1/namespaces"
# What a fresh cluster holds by itself.
SYSTEM = ["kube-apiserver-legacy-service-account-token-tracking"]
HOLD = "example.com/hold"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving("namespace") as api:
        await api.create(NAMESPACES, "shop")
        yield api


async def test_a_deleted_namespace_goes_with_everything_in_it(api: Api) -> None:
    await api.create(f"{NAMESPACES}/shop/configmaps", "a")
    await api.create(f"{NAMESPACES}/shop/secrets", "b")
    await api.create(f"{NAMESPACES}/default/configmaps", "kept")
    await api.delete(f"{NAMESPACES}/shop")
    await api.settle()
    assert await api.get(f"{NAMESPACES}/shop") is None
    assert await api.names("/api/v1/configmaps") == ["kept", *SYSTEM]
    assert await api.names("/api/v1/secrets") == []


async def test_it_waits_for_finalizers_and_says_for_which(api: Api) -> None:
    await api.create(f"{NAMESPACES}/shop/configmaps", "held", finalizers=[HOLD])
    await api.create(f"{NAMESPACES}/shop/secrets", "held", finalizers=[HOLD])
    await api.create(f"{NAMESPACES}/shop/secrets", "loose")
    await api.delete(f"{NAMESPACES}/shop")
    await api.settle()
    namespace = await api.get(f"{NAMESPACES}/shop")
    assert namespace is not None
    assert namespace["status"]["phase"] == "Terminating"
    assert await api.names(f"{NAMESPACES}/shop/secrets") == ["held"]
    assert texts(namespace) == {
        "NamespaceDeletionDiscoveryFailure": ("False", "All resources successfully discovered"),
        "NamespaceDeletionGroupVersionParsingFailure": ("False", "All legacy kube types successfully parsed"),
        "NamespaceDeletionContentFailure": (
            "False",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances, secrets. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            f"Some content in the namespace has finalizers remaining: {HOLD} in 2 resource instances",
        ),
    }
    for kind in ("configmaps", "secrets"):
        await api.merge(f"{NAMESPACES}/shop/{kind}/held", {"metadata": {"finalizers": None}})
    await api.settle()
    assert await api.get(f"{NAMESPACES}/shop") is None


async def test_pods_go_before_everything_else(api: Api) -> None:
    spec = {"containers": [{"name": "a", "image": "a"}]}
    await api.create(f"{NAMESPACES}/shop/pods", "held", content={"spec": spec}, finalizers=[HOLD])
    await api.create(f"{NAMESPACES}/shop/configmaps", "needed-by-the-pod")
    await api.delete(f"{NAMESPACES}/shop")
    await api.settle()
    assert await api.names(f"{NAMESPACES}/shop/configmaps") == ["needed-by-the-pod"]
    await api.merge(f"{NAMESPACES}/shop/pods/held", {"metadata": {"finalizers": None}})
    await api.settle()
    assert await api.get(f"{NAMESPACES}/shop") is None


async def test_a_finalizer_of_somebody_else_keeps_the_namespace(api: Api) -> None:
    await api.merge(f"{NAMESPACES}/shop", {"metadata": {"finalizers": [HOLD]}})
    await api.create(f"{NAMESPACES}/shop/configmaps", "a")
    await api.delete(f"{NAMESPACES}/shop")
    await api.settle()
    namespace = await api.get(f"{NAMESPACES}/shop")
    assert namespace is not None
    assert namespace["spec"] == {}, "the controller has done its part"
    assert await api.names("/api/v1/configmaps") == SYSTEM
    await api.merge(f"{NAMESPACES}/shop", {"metadata": {"finalizers": None}})
    assert await api.get(f"{NAMESPACES}/shop") is None


async def test_the_name_is_free_again_afterwards(api: Api) -> None:
    before = await api.get(f"{NAMESPACES}/shop")
    await api.delete(f"{NAMESPACES}/shop")
    await api.settle()
    after = await api.create(NAMESPACES, "shop")
    assert before is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_without_the_controller_a_namespace_stays_as_with_a_bare_api_server() -> None:
    async with serving() as api:
        await api.create(NAMESPACES, "shop")
        await api.delete(f"{NAMESPACES}/shop")
        await api.settle()
        assert "shop" in await api.names(NAMESPACES)


async def test_every_namespace_gets_what_pods_expect_of_it_and_gets_it_back() -> None:
    async with serving("namespace", "namespace-publisher") as api:
        await api.create(NAMESPACES, "shop")
        await api.settle()
        assert await api.names(f"{NAMESPACES}/shop/serviceaccounts") == ["default"]
        assert await api.names(f"{NAMESPACES}/default/configmaps") == ["kube-root-ca.crt"]
        await api.delete(f"{NAMESPACES}/shop/configmaps/kube-root-ca.crt")
        await api.merge(f"{NAMESPACES}/default/configmaps/kube-root-ca.crt", {"data": {"ca.crt": "another"}})
        await api.settle()
        assert await api.names(f"{NAMESPACES}/shop/configmaps") == ["kube-root-ca.crt"]
        published = await api.get(f"{NAMESPACES}/default/configmaps/kube-root-ca.crt")
        assert published is not None
        assert published["data"] == {"ca.crt": ""}, "this server has no TLS"
        await api.delete(f"{NAMESPACES}/shop")
        await api.settle()
        assert await api.get(f"{NAMESPACES}/shop") is None, "nothing is put into a namespace that goes"


def texts(namespace: Object) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["message"]) for c in namespace["status"]["conditions"]}
