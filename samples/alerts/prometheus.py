"""PrometheusRule of monitoring.coreos.com/v1, from its CustomResourceDefinition."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kopylite.objects import ApiModel, CustomResource, IntOrString, Mark, list_map
from pydantic import Field


class GroupRule(ApiModel):
    alert: str | None = None
    annotations: dict[str, str] = Field(default_factory=dict)
    expr: IntOrString
    for_: Annotated[str, Field(pattern='^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$')] | None = None
    keep_firing_for: Annotated[str, Field(min_length=1, pattern='^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$')] | None = Field(default=None, alias='keep_firing_for')
    labels: dict[str, str] = Field(default_factory=dict)
    record: str | None = None


class Group(ApiModel):
    interval: Annotated[str, Field(pattern='^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$')] | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    limit: int | None = None
    name: Annotated[str, Field(min_length=1)]
    partial_response_strategy: Annotated[str, Field(pattern='^(?i)(abort|warn)?$')] | None = Field(default=None, alias='partial_response_strategy')
    query_offset: Annotated[str, Field(pattern='^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$')] | None = Field(default=None, alias='query_offset')
    rules: list[GroupRule] = Field(default_factory=list)


class PrometheusRuleSpec(ApiModel):
    groups: Annotated[list[Group], list_map('name')] = Field(default_factory=list)


class Condition(ApiModel):
    last_transition_time: datetime
    message: str | None = None
    observed_generation: int | None = None
    reason: str | None = None
    status: Annotated[str, Field(min_length=1)]
    type: Annotated[Literal['Accepted'], Mark({'minLength': 1})]


class Binding(ApiModel):
    conditions: Annotated[list[Condition], list_map('type')] = Field(default_factory=list)
    group: Literal['monitoring.coreos.com']
    name: Annotated[str, Field(min_length=1)]
    namespace: Annotated[str, Field(min_length=1)]
    resource: Literal['prometheuses', 'prometheusagents', 'thanosrulers', 'alertmanagers']


class PrometheusRuleStatus(ApiModel):
    bindings: Annotated[list[Binding], list_map('group', 'resource', 'name', 'namespace')] = Field(default_factory=list)


class PrometheusRule(
    CustomResource[PrometheusRuleSpec, PrometheusRuleStatus],
    group='monitoring.coreos.com',
    version='v1',
    foreign=True,
    short_names=['promrule'],
    categories=['prometheus-operator'],
):
    pass
