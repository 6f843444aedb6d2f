"""Objects that are kept and not acted upon say so, once, and only where it was not turned off."""

from __future__ import annotations

from typing import Any

import pytest

from kopylite.apiserver.admission.unheeded import _NOTES
from kopylite.apiserver.server import ApiServer, ApiServerOptions
from tests.unit.apiserver.conftest import CONFIG_MAPS, Api

Object = dict[str, Any]
OPTIONS = ApiServerOptions(listen=False, own_warnings=True)
SCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
SCALER: Object = {"metadata": {"name": "a"}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}}


def api_service(**spec: Any) -> Object:
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 100}
    spec = {"group": "metrics.k8s.io", "version": "v1beta1", **priorities, **spec}
    return {"metadata": {"name": "v1beta1.metrics.k8s.io"}, "spec": spec}


async def warnings(options: ApiServerOptions, *requests: tuple[str, str, Object]) -> list[str]:
    """Of the last of some requests."""
    async with ApiServer(options) as server:
        for method, path, obj in requests:
            response = await Api(server).respond(method, path, obj)
            assert response.status in (200, 201), response.body
        return response.warnings


async def test_a_new_object_that_nothing_will_act_upon_says_so_and_what_to_do() -> None:
    (text,) = await warnings(OPTIONS, ("POST", SCALERS, SCALER))
    assert text.startswith("kopylite keeps this HorizontalPodAutoscaler and does not act upon it: ")
    assert "kubectl scale" in text


async def test_an_api_service_with_a_service_names_the_version_that_is_not_passed_on() -> None:
    service = {"service": {"namespace": "kube-system", "name": "metrics"}, "insecureSkipTLSVerify": True}
    (text,) = await warnings(OPTIONS, ("POST", SERVICES, api_service(**service)))
    assert "metrics.k8s.io/v1beta1" in text
    assert await warnings(OPTIONS, ("POST", SERVICES, api_service())) == []


async def test_what_was_said_of_a_new_object_is_not_said_of_its_changes() -> None:
    requests = [("POST", SCALERS, SCALER), ("PATCH", f"{SCALERS}/a", {"spec": {"maxReplicas": 4}})]
    assert await warnings(OPTIONS, *requests) == []


async def test_other_kinds_and_servers_that_are_to_be_like_a_real_one_say_nothing() -> None:
    assert await warnings(OPTIONS, ("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})) == []
    assert await warnings(ApiServerOptions(listen=False), ("POST", SCALERS, SCALER)) == []


@pytest.mark.parametrize("storage", _NOTES)
async def test_the_kinds_are_served_and_their_text_fits_into_a_header(storage: str) -> None:
    async with ApiServer(OPTIONS) as server:
        assert any(resource.storage == storage for resource in server.world.registry)
    text = _NOTES[storage]
    assert callable(text) or (text.isascii() and '"' not in text)
