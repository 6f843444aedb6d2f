"""The examination: the way to the server first, then one check after the other, each within its limits."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import anyio

from kopylite.boundary import say
from kopylite.client import ClientConfig, HttpTransport
from kopylite.client.credentials import CachedCredentials
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.doctor import access, cluster, subject, versions
from kopylite.doctor.cluster import Ward, unreadable
from kopylite.doctor.findings import Diagnosis, Finding, Unchecked
from kopylite.doctor.reachability import Contact, reach
from kopylite.doctor.reader import NotAllowed, Reader
from kopylite.doctor.subject import Subject
from kopylite.errors import KindNotFound, KopyliteError, KubeconfigError

MakeCheck = Callable[[], AsyncGenerator[Finding | Unchecked, None]]

# All together may take so many times as long as one request.
ALL_TOGETHER = 30


@dataclass(frozen=True, slots=True)
class Patient:
    """What is to be looked at.

    Attributes:
        config: of the cluster.
        subject: the Apps; None: the cluster alone.
        namespaces: only these are looked into; none: all.
        limit: of the objects of one kind.
        timeout: seconds for each request; for all checks together 30 times as long.
        progress: told of each check that begins: its name, its number, and how many there are.
    """

    config: ClientConfig
    subject: Subject | None = None
    namespaces: Sequence[str] = ()
    limit: int = 1000
    timeout: float = 10.0
    progress: Callable[[str, int, int], None] = field(default=lambda name, number, count: None)


async def examine(patient: Patient, clock: Clock = SYSTEM_CLOCK) -> Diagnosis:
    """Look at all of it. Nothing is written to the cluster: the only POSTs are access reviews, which are not stored."""
    diagnosis = Diagnosis(server=patient.config.server)
    async with HttpTransport(patient.config, clock=clock) as transport:
        contact = await reach(patient.config, transport, patient.timeout, clock)
        diagnosis.version, diagnosis.unreachable = contact.version, contact.failed
        diagnosis.add(contact.findings)
        diagnosis.add(_credentials(patient, contact))
        if contact.failed:
            diagnosis.add([Unchecked(contact.failed, "all that is in the cluster: see the step that fails")])
            return diagnosis
        diagnosis.add(versions.judge_version(patient.config.server, contact.version, _models()))
        reader = Reader(transport, patient.namespaces, patient.limit, patient.timeout)
        ward = Ward(reader, contact.now, patient.subject.kinds if patient.subject is not None else [])
        await _all_of(_checks(patient.subject, ward), patient, diagnosis)
    return diagnosis


async def _all_of(checks: Sequence[tuple[str, MakeCheck]], patient: Patient, diagnosis: Diagnosis) -> None:
    done = 0
    with anyio.move_on_after(ALL_TOGETHER * patient.timeout) as limit:
        for name, check in checks:
            patient.progress(name, done + 1, len(checks))
            await _carry_out(name, check, diagnosis)
            done += 1
    if limit.cancelled_caught:
        why = f"not reached within {ALL_TOGETHER * patient.timeout:g} s, the time for all together (--timeout)"
        diagnosis.add(Unchecked(name, why) for name, _ in checks[done:])


async def _carry_out(name: str, check: MakeCheck, diagnosis: Diagnosis) -> None:
    """A check that cannot be made is told as that, and keeps no other one from being made."""
    try:
        async with aclosing(check()) as each:
            async for found in each:
                diagnosis.add([found])
    except KindNotFound:
        return  # not every server has it, and then nothing of it is wrong
    except (NotAllowed, KopyliteError) as error:
        diagnosis.add([unreadable(name, f"what the check {name!r} needs", error)])
    except Exception as error:
        diagnosis.add([Unchecked(name, f"a fault of this command, please report it: {say(error)}")])


def _checks(apps: Subject | None, ward: Ward) -> list[tuple[str, MakeCheck]]:
    """All checks, in the order in which they are made: `scan` reads what those after it judge."""
    found: list[tuple[str, MakeCheck]] = []
    if apps is not None:
        found += [
            ("operator", lambda: subject.check_operator(apps, ward)),
            ("crd", lambda: subject.check_kinds(apps, ward)),
            ("rights", lambda: subject.check_rights(apps, ward)),
            ("rights", lambda: subject.check_account(apps, ward)),
            ("lease", lambda: subject.check_leases(apps, ward)),
        ]
    found += [
        ("crd", lambda: cluster.check_definitions(ward)),
        ("apiservices", lambda: cluster.check_api_services(ward)),
        ("priority", lambda: cluster.check_flow_schemas(ward)),
        ("webhooks", lambda: cluster.check_webhooks(ward)),
        ("namespaces", lambda: cluster.check_namespaces(ward)),
        ("objects", lambda: cluster.scan(ward)),
        ("finalizers", lambda: cluster.check_deletions(ward)),
        ("owners", lambda: cluster.check_owners(ward)),
    ]
    if apps is not None:
        found.append(("paused", lambda: subject.check_paused(apps, ward)))
    return found


def _credentials(patient: Patient, contact: Contact) -> Iterator[Finding]:
    yield from access.judge(shown_by(patient.config), contact.now)


def shown_by(config: ClientConfig) -> access.Shown:
    """What a configuration shows of us at this moment."""
    certificate = config.tls.certificate or b""
    try:
        pem = certificate.read_bytes() if isinstance(certificate, Path) else certificate
    except OSError:
        pem = b""
    identity, lifetime = None, None
    renews = isinstance(config.credentials, CachedCredentials)
    try:
        identity = config.credentials.current()
    except KubeconfigError:
        identity = None
    if identity is not None:
        pem = identity.key_pair.certificate if identity.key_pair is not None else pem
        lifetime = None if math.isinf(identity.lifetime) else identity.lifetime
    authorization = (identity.authorization or "") if identity is not None else ""
    return access.Shown(config.source or config.server, pem, authorization, renews, lifetime)


def _models() -> str:
    try:
        return version("kubernetes_asyncio")
    except PackageNotFoundError:
        return ""
