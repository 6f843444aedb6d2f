"""Exposition: the metrics of several processes as those of one, each sample with the number of its process. Pure.

Works on the text, of Prometheus' format and of OpenMetrics: all come from one version of one encoder, so lines are
passed on as they are, and no figure is rounded on its way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LABEL = "process"
# What ends a text in the OpenMetrics format.
END = "# EOF"

_HEAD = re.compile(r"# (HELP|TYPE|UNIT) (\S+)")
# Name, labels, and the value with what may follow it. A brace in the value of a label is no end.
_SAMPLE = re.compile(r'([^\s{]*)(?:\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?(.*)')
_PAIR = re.compile(r'([^\s,="]+)="((?:[^"\\]|\\.)*)"')


def merged(texts: Mapping[str, str]) -> str:
    """One text of several, by their processes. A family is described once; its samples stand together.

    A label `process` of the user's own becomes `exported_process`, as Prometheus does it.
    """
    heads: dict[str, dict[str, str]] = {}
    samples: dict[str, list[str]] = {}
    for process, text in texts.items():
        family = ""
        for line in text.split("\n"):
            if found := _HEAD.match(line):
                family = found[2]
                heads.setdefault(family, {}).setdefault(found[1], line)
                samples.setdefault(family, [])
            elif line and not line.startswith("#"):
                samples.setdefault(family, []).append(_labelled(line, process))
    lines = [line for family in samples for line in (*heads.get(family, {}).values(), *samples[family])]
    ends = any(text.rstrip().endswith(END) for text in texts.values())
    return "\n".join([*lines, *([END] if ends else []), ""])


def _labelled(sample: str, process: str) -> str:
    """A sample with one more label."""
    found = _SAMPLE.fullmatch(sample)
    if found is None:  # no line of an encoder
        return sample
    labels = _PAIR.sub(lambda pair: f"exported_{pair[0]}" if pair[1] == LABEL else pair[0], found[2] or "")
    return f'{found[1]}{{{labels}{"," if labels else ""}{LABEL}="{process}"}}{found[3]}'
