"""Manifests as YAML text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


def to_yaml(documents: Sequence[dict[str, Any]]) -> str:
    """YAML documents in the order of their keys, long texts as blocks, without anchors."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True, explicit_start=True)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
