"""LabelSelector: which objects are meant, by their labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from kopylite.objects.apimodel import ApiModel
from kopylite.objects.selectors import OPERATORS, Requirement

_ATOMIC = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})


class LabelSelectorRequirement(ApiModel, defer_build=True):
    """One condition on one label."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] = Field(default_factory=list)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels fulfil it. A missing label is in no list of values."""
        return Requirement(self.key, OPERATORS[self.operator], frozenset(self.values)).matches(labels)

    def __str__(self) -> str:
        if self.operator == "Exists":
            return self.key
        if self.operator == "DoesNotExist":
            return f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


class LabelSelector(ApiModel, defer_build=True):
    """All conditions must hold; an empty selector matches everything (metav1.LabelSelector)."""

    model_config = _ATOMIC

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: list[LabelSelectorRequirement] = Field(default_factory=list)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        """As the `labelSelector` parameter of a list."""
        return ",".join(
            [*(f"{key}={value}" for key, value in self.match_labels.items()), *map(str, self.match_expressions)]
        )
