from __future__ import annotations

import pytest

from kopylite import App, Context, CustomResource, Kind, Request, Unstructured
from kopylite.devcluster.embedded import EmbeddedCluster
from kopylite.errors import UsageError
from kopylite.testing import OperatorRunner
from tests.operators import eventually

CONFIG_MAP, DEPLOYMENT = Kind("v1", "ConfigMap"), Kind("apps/v1", "Deployment")


class Page(CustomResource[dict[str, str], None], group="example.com", version="v1"):
    pass


app = App("pages")


@app.reconciler(Page, owns=[CONFIG_MAP])
async def reconcile(ctx: Context, request: Request) -> None:
    page = await ctx.client.find(Page, request)
    if page is not None:
        html = page.spec["html"]
        await ctx.client.create_or_update(CONFIG_MAP, request, lambda obj: obj.update(data={"html": html}), owner=page)


def a_page() -> Page:
    return Page.model_validate({"metadata": {"name": "a", "namespace": "default"}, "spec": {"html": "hello"}})


def a_deployment() -> Unstructured:
    labels = {"app": "a"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    metadata = {"name": "a", "namespace": "default"}
    return Unstructured(apiVersion="apps/v1", kind="Deployment", metadata=metadata, spec=spec)


def test_a_plain_function_tests_an_operator() -> None:
    with OperatorRunner(app, crds=[Page]) as operator:
        operator.call(operator.client.create, a_page())
        child = operator.wait(lambda: operator.client.find(CONFIG_MAP, "a", namespace="default"))
        assert child["data"] == {"html": "hello"}
        assert operator.kubeconfig.exists()
        with pytest.raises(TimeoutError, match="the last answer was None"):
            operator.wait(lambda: operator.client.find(CONFIG_MAP, "b", namespace="default"), timeout=0.1)
    with pytest.raises(UsageError, match="does not run"):
        operator.call(operator.client.create, a_page())
    with pytest.raises(UsageError, match="does not run"):
        _ = operator.client


def test_what_goes_wrong_at_the_start_is_raised_as_it_is_and_leaves_nothing_running() -> None:
    with pytest.raises(TimeoutError, match="is its CRD installed"), OperatorRunner(app, timeout=2):
        raise AssertionError("it began")
    with pytest.raises(UsageError, match="crds are for the cluster"):
        OperatorRunner(app, cluster=EmbeddedCluster(), crds=[Page])


@pytest.mark.kube_cluster(simulator=True, crds=[Page])
async def test_a_mark_says_how_the_fixtures_cluster_is(kube_cluster: EmbeddedCluster) -> None:
    async with kube_cluster.client() as client:
        await client.create(a_page())
        await client.create(a_deployment())

        async def is_ready() -> bool:
            deployment = await client.get(DEPLOYMENT, "a", namespace="default")
            return bool(deployment.status.get("readyReplicas"))

        await eventually(is_ready, "the Deployment is ready")
