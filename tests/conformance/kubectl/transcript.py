"""Scripts of kubectl commands, and what they print, without what differs from run to run."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
MANIFESTS = Path(__file__).parent / "manifests"
# Of one command; kubectl itself waits up to 30 s in places.
COMMAND_SECONDS = 60

# What each command may use besides kubectl. `watching N COMMAND` starts it and goes on once it has printed N lines;
# `watched N` waits until it has printed N in all, ends it and prints them. `fields` keeps what `kubectl explain` says
# about names and types: the prose is not the server's to be compared.
PRELUDE = r"""
watching() { n=$1; shift; "$@" > "$SCRATCH/watched" 2>&1 & watcher=$!; printed "$n"; }
printed() { for _ in $(seq 200); do [ "$(wc -l < "$SCRATCH/watched")" -ge "$1" ] && return; sleep 0.05; done; }
watched() { printed "$1"; kill $watcher; cat "$SCRATCH/watched"; }
fields() { grep -E '^[A-Z]+:|^ +[^ ]+'$'\t''<|^error|^ *enum:' || true; }
"""

# In order: each pattern and what is put in its place.
_MASKS = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} UTC", "TIME"),
    (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w+ \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "TIME"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"https?://127\.0\.0\.1:\d+", "SERVER"),
    (r"127\.0\.0\.1:\d+", "SERVER"),
    (r"\b10\.(\d+)\.\d+\.\d+\b", r"10.\1.IP"),
    (r"(resourceVersion\\?\"?: ?\\?\"?)\d+", r"\1RV"),
    (r"(Resource Version: +)\d+", r"\1RV"),
    (r"(?<=[ \t(])\d+[smhd](\d+[smhd])?(?=[ \t)]|$)", "AGE"),
    (r"(?<=[ \t])<(unknown|invalid)>(?=\s|$)", "AGE"),
    (r"kubectl-edit-\d+", "kubectl-edit-N"),
    (r"^[IW]\d{4} [\d:.]+ +\d+ ", ""),
    (r"kube-api-access-\w{5}", "kube-api-access-N"),
    # What the client says of a connection that it has ended itself; it comes or not.
    (r"^.*very short watch.*\n", ""),
    # A column is as wide as its widest cell, which may be one of the above.
    (r" {2,}", "  "),
    (r"[ \t]+$", ""),
)


@dataclass(frozen=True, slots=True)
class Output:
    """What one command did, masked."""

    command: str
    code: int
    text: str


def commands(script: str) -> list[str]:
    """The commands of a script: paragraphs of it, comments aside."""
    lines = [line for line in script.splitlines() if not line.startswith("#")]
    return [paragraph.strip("\n") for paragraph in re.split(r"\n\s*\n", "\n".join(lines)) if paragraph.strip()]


def play(script: str, environment: Mapping[str, str]) -> list[Output]:
    """Run the commands of a script one after the other, in the folder of the manifests."""
    return [_run(command, environment) for command in commands(script)]


def _run(command: str, environment: Mapping[str, str]) -> Output:
    ran = subprocess.run(
        ["bash", "-c", PRELUDE + command],
        cwd=MANIFESTS,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
    )
    return Output(command, ran.returncode, masked(ran.stdout + ran.stderr, environment))


def masked(text: str, environment: Mapping[str, str]) -> str:
    """The text without ages, times, uids, resourceVersions, addresses and the run's own files."""
    for value in environment.values():
        if value.startswith("/"):
            text = text.replace(value, "FILE")
    for pattern, instead in _MASKS:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text


def differences(real: Sequence[Output], embedded: Sequence[Output]) -> str:
    """Each command whose outputs differ, as a diff from the real server's to the embedded one's; "" for none."""
    return "\n".join(_difference(a, b) for a, b in zip(real, embedded, strict=True) if a != b)


def _difference(real: Output, embedded: Output) -> str:
    before, after = ([f"exit {output.code}", *output.text.splitlines()] for output in (real, embedded))
    diff = difflib.unified_diff(before, after, "real", "embedded", lineterm="", n=2)
    return "\n".join([f"$ {real.command}", *diff])
