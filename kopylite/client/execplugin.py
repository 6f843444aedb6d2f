"""Credential plugins: a program that prints an ExecCredential, run as client-go runs it.

Driven here and not by kubernetes_asyncio, whose runner waits for ever for a plugin that hangs or writes much to
stderr, hides what a plugin says while it runs (a device code), knows no cluster information, and lets malformed
answers escape as whatever they break.
"""

from __future__ import annotations

import codecs
import json
import logging
import math
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from datetime import datetime
from typing import Any

import anyio
import anyio.abc
import msgspec

from kopylite.boundary import printable, read
from kopylite.client.clusterinfo import ClusterInfo
from kopylite.client.credentials import CachedCredentials, ClientIdentity, KeyPair, check_header
from kopylite.client.kubeconfig import ExecSpec
from kopylite.client.tls import check_pair
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import KubeconfigError
from kopylite.redaction import redact

logger = logging.getLogger(__name__)

# A plugin may talk to a cloud's sign-in service; one that waits for a person would wait for ever.
PLUGIN_TIMEOUT = 60.0
# How long a plugin that is ended may clean up before it is killed.
TERMINATION_GRACE = 2.0
# What a plugin that has ended left running (a browser helper) may hold its output open for.
OUTPUT_GRACE = 1.0
# A plugin that returns a token the server rejects would otherwise run for each request.
PLUGIN_MIN_INTERVAL = 10.0
# A token with a certificate chain is 10 KB.
MAX_OUTPUT = 1024 * 1024
# Lines of stderr that are logged for one run, and characters of each.
MAX_LINES = 40
MAX_LINE = 500

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
# metav1.Time, as Go reads it.
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


def exec_plugin(
    spec: ExecSpec, where: str, cluster: ClusterInfo | None = None, *, clock: Clock = SYSTEM_CLOCK
) -> CachedCredentials:
    """Credentials from a client-go credential plugin, run again before they expire and after a 401.

    Its command is run without a shell and without input; after 60 s it is ended, with its children. What it writes to
    stderr is logged while it runs.

    Args:
        spec: the `exec` entry of a kubeconfig user.
        where: names file and user, for errors.
        cluster: told to the plugin if it asks for that.

    Raises:
        KubeconfigError: the entry is one that client-go would refuse, or needs a person.
    """
    _check(spec, where)

    async def load() -> ClientIdentity:
        answer = await _run(spec, where, cluster or ClusterInfo())
        return identity_of(answer, spec.api_version or "", where, clock.now())

    return CachedCredentials(load, min_interval=PLUGIN_MIN_INTERVAL, clock=clock)


def _check(spec: ExecSpec, where: str) -> None:
    if not spec.command or not spec.api_version:
        raise KubeconfigError(f"{where}: exec needs a command and an apiVersion")
    if spec.api_version not in API_VERSIONS:
        raise KubeconfigError(
            f"{where}: exec has apiVersion {spec.api_version!r}; use one of {', '.join(API_VERSIONS)}"
        )
    if any(not variable.name for variable in spec.env or ()):
        raise KubeconfigError(f"{where}: exec has an entry of `env` without a name")
    # Only v1beta1 has a default for it.
    mode = spec.interactive_mode or ("IfAvailable" if spec.api_version.endswith("v1beta1") else "")
    if mode not in _INTERACTIVE_MODES:
        problem = f"has interactiveMode {mode!r}" if mode else "has no interactiveMode"
        raise KubeconfigError(f"{where}: exec {problem}; set it to Never or IfAvailable")
    if mode == "Always":
        raise KubeconfigError(f"{where}: exec has interactiveMode: Always, and an operator has nobody to ask")


def identity_of(answer: bytes, api_version: str, where: str, now: datetime) -> ClientIdentity:
    """The identity in what a plugin printed. Raises KubeconfigError for anything but a usable ExecCredential."""
    told = f"{where}: the exec plugin's answer"

    def refuse(_: bytes, error: Exception) -> KubeconfigError:
        if isinstance(error, KubeconfigError):
            return error
        # A type error of msgspec names the field and the types. Nothing else may say what was printed.
        reason = f": {error}" if isinstance(error, msgspec.ValidationError) else ""
        return KubeconfigError(f"{told} is no ExecCredential as JSON or YAML{reason}")

    return read(lambda answer: _identity_of(answer, api_version, told, now), answer, refuse)


def _identity_of(answer: bytes, api_version: str, told: str, now: datetime) -> ClientIdentity:
    answer = answer.removeprefix(codecs.BOM_UTF8)
    if answer.lstrip().startswith(b"{"):
        credential = msgspec.json.decode(answer, type=_ExecCredential)
    else:
        from kopylite.objects.yamlread import read_document

        credential = msgspec.convert(read_document(answer), _ExecCredential)
    # As client-go: no kind is the expected one, no version is not.
    if (credential.kind or "ExecCredential") != "ExecCredential" or credential.api_version != api_version:
        raise KubeconfigError(f"{told} should be of kind ExecCredential and of apiVersion {api_version}, as configured")
    status = credential.status
    if status is None:
        raise KubeconfigError(f"{told} has no status: neither a token nor a client certificate")
    certificate, key = status.client_certificate_data or "", status.client_key_data or ""
    if bool(certificate) != bool(key):
        raise KubeconfigError(f"{told} has a certificate or a key without the other")
    if not status.token and not certificate:
        raise KubeconfigError(f"{told} has neither a token nor a client certificate")
    pair = None
    if certificate:
        pair = KeyPair(certificate.encode(), key.encode())
        check_pair(pair, f"{told}: its client certificate")
    if status.token:
        check_header(status.token, f"{told}: its token")
    lifetime = math.inf
    if status.expiration_timestamp is not None:
        lifetime = _seconds_until(status.expiration_timestamp, now, told)
    return ClientIdentity(f"Bearer {status.token}" if status.token else None, pair, lifetime)


def _seconds_until(timestamp: str, now: datetime, told: str) -> float:
    try:
        if _RFC3339.fullmatch(timestamp):
            return (datetime.fromisoformat(timestamp) - now).total_seconds()
    except (ValueError, OverflowError):
        pass
    raise KubeconfigError(f"{told}: expirationTimestamp should be a time with a zone, such as 2030-01-31T12:00:00Z")


async def _run(spec: ExecSpec, where: str, cluster: ClusterInfo) -> bytes:
    """What the plugin printed. Raises KubeconfigError: it is not there, fails, or takes too long."""
    command, name = _found(spec, where), os.path.basename(spec.command or "")
    environment = {**os.environ, **{v.name or "": v.value or "" for v in spec.env or ()}}
    environment["KUBERNETES_EXEC_INFO"] = _exec_info(spec, cluster, where)
    try:
        # A session of its own, so that its children can be ended with it.
        process = await anyio.open_process(
            [command, *(spec.args or ())], stdin=subprocess.DEVNULL, env=environment, start_new_session=True
        )
    except (OSError, ValueError) as error:  # ValueError: a zero byte in an argument, or the like
        reason = error.strerror if isinstance(error, OSError) else "its arguments or environment cannot be passed on"
        raise KubeconfigError(f"{where}: the exec plugin {spec.command!r} cannot be started: {reason}") from None
    output, said = _Output(), _StderrLog(name)
    try:
        with anyio.fail_after(PLUGIN_TIMEOUT):
            await _finish(process, output, said)
    except TimeoutError:
        raise KubeconfigError(
            f"{where}: the exec plugin {name} gave no answer in {PLUGIN_TIMEOUT:.0f} s and was ended{said.tail()}"
        ) from None
    finally:
        with anyio.CancelScope(shield=True):
            await _end(process)
    if output.too_long:
        raise KubeconfigError(f"{where}: the exec plugin {name} printed more than {MAX_OUTPUT >> 20} MiB")
    if process.returncode != 0:
        raise KubeconfigError(f"{where}: the exec plugin {name} failed (exit code {process.returncode}){said.tail()}")
    return bytes(output.content)


def _found(spec: ExecSpec, where: str) -> str:
    """The plugin's file. Raises KubeconfigError: it is not there, or is no program."""
    command = shutil.which(spec.command or "")
    if command is not None:
        return command
    if os.path.isfile(spec.command or ""):
        raise KubeconfigError(f"{where}: the exec plugin {spec.command!r} cannot be run: chmod +x it")
    hint = printable(spec.install_hint or f"install {spec.command!r} or put it on the PATH", 2000)
    raise KubeconfigError(f"{where}: the exec plugin {spec.command!r} was not found: {hint}")


def _exec_info(spec: ExecSpec, cluster: ClusterInfo, where: str) -> str:
    told: dict[str, Any] = {"interactive": False}
    if spec.provide_cluster_info:
        told["cluster"] = cluster.spec()
    try:
        return json.dumps({"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": told})
    except (TypeError, ValueError, RecursionError):
        raise KubeconfigError(f"{where}: the cluster's extension for exec plugins cannot be said as JSON") from None


async def _finish(process: anyio.abc.Process, output: _Output, said: _StderrLog) -> None:
    assert process.stdout is not None
    assert process.stderr is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_drain, process.stdout, output.take)
        tasks.start_soon(_drain, process.stderr, said.take)
        await process.wait()
        tasks.cancel_scope.deadline = anyio.current_time() + OUTPUT_GRACE
    said.end()


async def _drain(stream: anyio.abc.ByteReceiveStream, take: Any) -> None:
    try:
        async for chunk in stream:
            take(chunk)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


async def _end(process: anyio.abc.Process) -> None:
    """End a plugin that still runs, and its children; let go of its pipes."""
    if process.returncode is None:
        _signal_group(process, signal.SIGTERM)
        with anyio.move_on_after(TERMINATION_GRACE):
            await process.wait()
        _signal_group(process, signal.SIGKILL)
    await process.aclose()


def _signal_group(process: anyio.abc.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


class _Output:
    """What a plugin prints, up to a limit."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.too_long = False

    def take(self, chunk: bytes) -> None:
        self.too_long = self.too_long or len(self.content) + len(chunk) > MAX_OUTPUT
        if not self.too_long:
            self.content += chunk


class _StderrLog:
    """Logs what a plugin says, line by line as it comes: a person may have to act on it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = b""
        self._lines = 0
        self._last = b""

    def take(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._say(line)
        # The beginning of a line is all that will be shown of it.
        self._rest = rest[: 4 * MAX_LINE]

    def end(self) -> None:
        self._say(self._rest)
        if self._lines > MAX_LINES:
            logger.warning("exec plugin %s: %d more lines are not shown", self._name, self._lines - MAX_LINES)

    def tail(self) -> str:
        """The last line, for an error."""
        return f": {self._shown(self._last)}" if self._last else ""

    def _say(self, line: bytes) -> None:
        if line := line[: 4 * MAX_LINE].strip():
            self._last = line
            self._lines += 1
            if self._lines <= MAX_LINES:  # of those beyond, which may be thousands, none is made ready to be read
                logger.warning("exec plugin %s: %s", self._name, self._shown(line))

    @staticmethod
    def _shown(line: bytes) -> str:
        # Redacted for the error, too: it may go further than the log.
        return printable(redact(line.decode(errors="backslashreplace").strip()), MAX_LINE)
