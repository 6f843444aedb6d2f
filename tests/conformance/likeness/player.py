"""Player: sends a script's requests to one server and keeps the answers."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self

import aiohttp
import yaml
from multidict import CIMultiDict
from yarl import URL

from kopylite.apiserver.request.protobuf import PROTOBUF, decode
from tests.conformance.likeness.frames import decode_event, without_zeros
from tests.conformance.likeness.script import Script, Step

# A loaded machine deletes a namespace slowly; who is quick does not wait.
UNTIL_LIMIT = 60.0
REQUEST_LIMIT = 45.0
AGENT = "likeness/1.0"
# The headers that clients act on.
HEADERS = ("Content-Type", "Warning", "Retry-After", "Cache-Control", "Vary", "WWW-Authenticate", "Location")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `body` is decoded JSON or YAML, a list of events for a watch, else text."""

    code: int
    headers: Mapping[str, list[str]]
    body: Any
    failure: str = ""
    in_vain: bool = False  # the step's `until` did not hold in time


@dataclass(slots=True)
class Player:
    """A connection to one server.

    Args:
        url: its address.
        headers: the administrator's credentials, sent with every request that is not anonymous.
        context: TLS with the administrator's credentials; None for plain HTTP.
        stranger: TLS without credentials.
        variables: what scripts may name beside their namespace.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None
    stranger: ssl.SSLContext | None = None
    variables: dict[str, str] = field(default_factory=dict)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _sessions: dict[bool, aiohttp.ClientSession] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        for anonymous, context in ((False, self.context), (True, self.stranger)):
            connector = aiohttp.TCPConnector(ssl=context or True)
            headers = {"User-Agent": AGENT, **({} if anonymous else self.headers)}
            session = aiohttp.ClientSession(connector=connector, headers=headers)
            self._sessions[anonymous] = await self._stack.enter_async_context(session)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def play(self, script: Script, namespace: str) -> list[Answer]:
        """Play a whole script in a fresh namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await self._send(Step("POST", "/api/v1/namespaces", body), {})
        # Its controllers write to it once, at the start; scripts begin when that is over.
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            await self._until(Step("GET", f"/api/v1/namespaces/{namespace}/{path}", until={"code": 200}), {})
        variables = {**self.variables, "ns": namespace, "kibibyte": "x" * 1024}
        variables["mebibyte"] = variables["kibibyte"] * 1024
        return [await self._answer(step, variables) for step in script.steps]

    async def read(self, path: str, accept: str) -> bytes:
        """The body of an answer, as it came."""
        async with self._sessions[False].get(self.url + path, headers={"Accept": accept}) as reply:
            assert reply.status == 200, reply.status
            return await reply.read()

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """The code of an answer and its body; of a watch its beginning. Code 0: the connection was closed."""
        given = {"Accept": "application/json", "Content-Type": "application/json", **headers}
        try:
            async with self._sessions[False].request(
                method, URL(self.url + path, encoded=True), data=body or None, headers=given,
                timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT), allow_redirects=False,
            ) as reply:  # fmt: skip
                return reply.status, await reply.content.read(2000)
        except aiohttp.ClientError:
            return 0, b""

    async def _answer(self, step: Step, variables: dict[str, str]) -> Answer:
        try:
            answer = await (self._until(step, variables) if step.until else self._send(step, variables))
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(0, {}, None, type(error).__name__)
        for name, path in step.save.items():
            variables[name] = str(lookup(answer.body, path))
        return answer

    async def _until(self, step: Step, variables: dict[str, str]) -> Answer:
        answer = await self._send(step, variables)
        deadline = asyncio.get_running_loop().time() + UNTIL_LIMIT
        while asyncio.get_running_loop().time() < deadline:
            told = {"code": answer.code, "warnings": len(answer.headers.get("Warning", ()))}
            if all((told[path] if path in told else lookup(answer.body, path)) == v for path, v in step.until.items()):
                return answer
            await asyncio.sleep(0.05)  # a poll with a limit
            answer = await self._send(step, variables)
        return replace(answer, in_vain=True)

    async def _send(self, step: Step, variables: dict[str, str]) -> Answer:
        watching = step.method == "WATCH"
        data = None
        headers = CIMultiDict({"Accept": step.accept})
        if step.body is not None:
            text = step.body if isinstance(step.body, str) else json.dumps(step.body)
            data = io.BytesIO(filled(text, variables).encode())
            headers["Content-Type"] = step.content_type
        for name, given in step.headers.items():
            headers.pop(name, None)
            for value in given if isinstance(given, list) else [given]:
                headers.add(name, filled(value, variables))
        timeout = aiohttp.ClientTimeout(total=None if watching else REQUEST_LIMIT)
        method = "GET" if watching else step.method
        url = self.url + filled(step.path, variables)
        session = self._sessions[step.anonymous]
        async with session.request(
            method, url, data=data, headers=headers, timeout=timeout, allow_redirects=False
        ) as reply:
            if watching and reply.status == 200:
                body: Any = await _events(reply, step)
            elif reply.content_type == PROTOBUF:
                body = without_zeros(decode(await reply.read()))
            else:
                body = _decoded(reply.content_type, await reply.text(errors="replace"))
            kept = {name: reply.headers.getall(name) for name in HEADERS if name in reply.headers}
            return Answer(reply.status, kept, body)


async def _events(reply: aiohttp.ClientResponse, step: Step) -> list[Any]:
    events: list[Any] = []
    read = _read_frame if reply.content_type == PROTOBUF else _read_line
    try:
        async with asyncio.timeout(step.seconds):
            while not step.events or len(events) < step.events:
                event = await read(reply.content)
                events.append(event or {"type": "END"})
                if event is None:
                    break
    except TimeoutError:
        events.append({"type": "SILENCE"})
    return events


async def _read_line(content: aiohttp.StreamReader) -> Any:
    line = await content.readline()
    return json.loads(line) if line else None


async def _read_frame(content: aiohttp.StreamReader) -> Any:
    try:
        size = int.from_bytes(await content.readexactly(4), "big")
        return without_zeros(decode_event(await content.readexactly(size)))
    except asyncio.IncompleteReadError:
        return None


def _decoded(content_type: str, text: str) -> Any:
    if content_type == "application/json" or text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return yaml.load(text, Loader=_PlainLoader) if content_type == "application/yaml" else text


class _PlainLoader(yaml.SafeLoader):
    """Reads time stamps as the strings that they are in Kubernetes."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def filled(text: str, variables: Mapping[str, str]) -> str:
    """Replace {name} by its value; other braces stay."""
    for name, value in variables.items():
        text = text.replace("{" + name + "}", value)
    return text


def lookup(body: Any, path: str) -> Any:
    """The value at a dotted path (numbers index lists); None where there is none."""
    for part in path.split("."):
        if isinstance(body, list) and part.lstrip("-").isdigit() and -len(body) <= int(part) < len(body):
            body = body[int(part)]
        elif isinstance(body, dict):
            body = body.get(part)
        else:
            return None
    return body
