"""The way to the server, step by step: name, connection, TLS, credentials; so that the step that fails has a name."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

import anyio
from anyio.streams.tls import TLSAttribute

from kopylite.boundary import json_object, say
from kopylite.client import ApiRequest, ClientConfig, Transport
from kopylite.client.tls import build_context
from kopylite.clock import Clock
from kopylite.doctor.access import server_certificate
from kopylite.doctor.findings import Finding, error
from kopylite.doctor.versions import judge_clock, server_time
from kopylite.doctor.wire import text
from kopylite.errors import KubeconfigError, TransportError, api_error

VERSION = ApiRequest("GET", "/version")


@dataclass(slots=True)
class Contact:
    """What was learned on the way.

    Attributes:
        failed: the step that failed: "dns", "tcp", "tls", "auth" or "api"; "" if none did.
        version: of Kubernetes.
        now: the server's time; ours, if it does not tell.
    """

    now: datetime
    failed: str = ""
    version: str = ""
    findings: list[Finding] = field(default_factory=list)

    def fail(self, step: str, where: str, what: str, fix: str) -> None:
        """Note the step that fails; there is no next one."""
        self.failed = step
        self.findings.append(error(step, where, what, fix))


async def reach(config: ClientConfig, transport: Transport, timeout: float, clock: Clock) -> Contact:
    """Go the way to the server, until a step fails."""
    contact = Contact(clock.now())
    url = urlsplit(config.server)
    host, secure = url.hostname or "", url.scheme == "https"
    port = url.port or (443 if secure else 80)
    via = urlsplit(config.proxy) if config.proxy is not None else None
    if via is not None:
        await _connect(contact, via.hostname or "", via.port or 1080, f"the proxy of {config.source}", timeout)
    elif await _connect(contact, host, port, config.source, timeout) and secure:
        await _shake_hands(contact, config, host, port, timeout)
    if not contact.failed:
        await _introduce(contact, config, transport, timeout, clock)
    return contact


async def _connect(contact: Contact, host: str, port: int, source: str, timeout: float) -> bool:
    where = f"{host}:{port}"
    try:
        with anyio.fail_after(timeout):
            await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as failure:  # a TimeoutError is an OSError, too
        text = f"the name {host} has no address: {getattr(failure, 'strerror', None) or say(failure)}"
        fix = f"getent hosts {host}    # then mend the server's name in {source}, DNS, or the VPN"
        contact.fail("dns", where, text, fix)
        return False
    try:
        with anyio.fail_after(timeout):
            await (await anyio.connect_tcp(host, port)).aclose()
    except TimeoutError:
        text = f"nothing answers within {timeout:g} s: a firewall, another network, or a machine that is down"
        contact.fail("tcp", where, text, f"nc -vz {host} {port}    # from here; look at VPN, firewall and the server")
        return False
    except OSError as failure:
        text = f"no connection: {_reason(failure)}"
        fix = f"look whether the API server runs, and whether {source} names its port"
        contact.fail("tcp", where, text, fix)
        return False
    return True


async def _shake_hands(contact: Contact, config: ClientConfig, host: str, port: int, timeout: float) -> None:
    where, name = f"{host}:{port}", config.tls.server_name or host
    try:
        context = await anyio.to_thread.run_sync(build_context, config.tls)
        with anyio.fail_after(timeout):
            stream = await anyio.connect_tcp(host, port, tls=True, ssl_context=context, tls_hostname=name)
            shown = stream.extra(TLSAttribute.peer_certificate, None)
            with anyio.move_on_after(1):
                await stream.aclose()
    except KubeconfigError as failure:
        contact.fail("tls", config.source, str(failure), f"mend the certificates in {config.source}")
    except ssl.SSLCertVerificationError as failure:
        contact.fail("tls", where, f"its certificate is not trusted: {failure.verify_message}", _trust(failure, config))
    except TimeoutError:
        contact.fail(
            "tls",
            where,
            f"no TLS within {timeout:g} s of the connection: is it an API server?",
            f"openssl s_client -connect {where}",
        )
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream) as failure:
        text = f"no TLS: {_reason(failure)}"
        contact.fail(
            "tls", where, text, f"write http:// in {config.source} if it is plain; openssl s_client -connect {where}"
        )
    else:
        if isinstance(shown, dict) and shown:
            ends, begins = (str(shown.get(each, "")) for each in ("notAfter", "notBefore"))
            contact.findings.extend(server_certificate(where, ends, begins, contact.now))


async def _introduce(
    contact: Contact, config: ClientConfig, transport: Transport, timeout: float, clock: Clock
) -> None:
    before = clock.now()
    try:
        answer = await transport.request(VERSION, timeout=timeout)
    except KubeconfigError as failure:
        contact.fail("auth", config.source, str(failure), f"mend the credentials in {config.source}, or log in anew")
        return
    except TransportError as failure:
        fix = 'kubectl get --raw "/readyz?verbose"    # what the server says of itself'
        if config.server.startswith("http:"):
            fix = f"write https:// in {config.source}, if the server speaks TLS"
        contact.fail("api", config.server, str(failure), fix)
        return
    after, theirs = clock.now(), server_time(answer.headers.get("Date", ""))
    contact.now = theirs or after
    contact.findings.extend(judge_clock(config.server, theirs, before, after))
    if answer.status == 401:
        refusal = api_error(401, answer.body).message
        fix = f"log in anew, or mend the credentials of {config.source}"
        contact.fail("auth", config.source, f"the server refuses the credentials: {refusal}", fix)
    elif answer.status not in (200, 403):
        what = f"/version answers {api_error(answer.status, answer.body)}: it is not ready, or no Kubernetes API server"
        contact.fail("api", config.server, what, 'kubectl get --raw "/readyz?verbose"')
    elif answer.status == 200:
        try:
            contact.version = text(json_object(answer.body), "gitVersion")
        except Exception:
            contact.version = ""
        if not contact.version:
            what = "/version is none of a Kubernetes API server"
            contact.fail("api", config.server, what, f"look what {config.source} names as the server")


def _trust(failure: ssl.SSLCertVerificationError, config: ClientConfig) -> str:
    message = failure.verify_message or ""
    if "expired" in message:
        return "renew the server's certificate (kubeadm: kubeadm certs renew apiserver), or mend this machine's clock"
    if "not yet valid" in message:
        return "timedatectl set-ntp true    # this machine's clock is behind"
    if "ostname" in message or "IP address" in message:
        return f"use a name that the certificate has, or set tls-server-name in {config.source}"
    return f"put the authority that signed it into {config.source}: certificate-authority-data"


def _reason(failure: Exception) -> str:
    """Of a name with several addresses, what each has answered."""
    cause = failure.__cause__ or failure
    causes = cause.exceptions if isinstance(cause, BaseExceptionGroup) else [cause]
    return ", ".join(dict.fromkeys(getattr(each, "strerror", None) or say(each) for each in causes))
