"""Player: sends a script's requests to one server and keeps the answers."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
import yaml

from tests.conformance.likeness.script import Script, Step

UNTIL_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `body` is decoded JSON or YAML, a list of events for a watch, else text."""

    code: int
    content_type: str
    warnings: tuple[str, ...]
    body: Any
    failure: str = ""


@dataclass(slots=True)
class Player:
    """A connection to one server.

    Args:
        url: its address.
        headers: sent with every request (credentials).
        context: TLS; None for plain HTTP.
    """

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    context: ssl.SSLContext | None = None
    _session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self.context if self.context else True)
        self._session = aiohttp.ClientSession(connector=connector, headers=self.headers, auto_decompress=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def play(self, script: Script, namespace: str) -> list[Answer]:
        """Play a whole script in a fresh namespace, which is deleted at the end."""
        namespace_body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await self._send(Step("POST", "/api/v1/namespaces", namespace_body), {})
        variables = {"ns": namespace}
        try:
            return [await self._answer(step, variables) for step in script.steps]
        finally:
            await self._send(Step("DELETE", f"/api/v1/namespaces/{namespace}"), {})

    async def _answer(self, step: Step, variables: dict[str, str]) -> Answer:
        try:
            answer = await (self._until(step, variables) if step.until else self._send(step, variables))
        except (aiohttp.ClientError, TimeoutError) as error:
            return Answer(0, "", (), None, f"{type(error).__name__}: {error}")
        for name, path in step.save.items():
            variables[name] = str(lookup(answer.body, path))
        return answer

    async def _until(self, step: Step, variables: dict[str, str]) -> Answer:
        answer = await self._send(step, variables)
        deadline = asyncio.get_running_loop().time() + UNTIL_LIMIT
        while asyncio.get_running_loop().time() < deadline:
            found = {path: answer.code if path == "code" else lookup(answer.body, path) for path in step.until}
            if found == dict(step.until):
                break
            await asyncio.sleep(0.05)  # a poll with a limit
            answer = await self._send(step, variables)
        return answer

    async def _send(self, step: Step, variables: dict[str, str]) -> Answer:
        assert self._session is not None
        watching = step.method == "WATCH"
        headers = {"Accept": step.accept, **step.headers}
        data = None
        if step.body is not None:
            data = filled(step.body if isinstance(step.body, str) else json.dumps(step.body), variables)
            headers["Content-Type"] = step.content_type
        timeout = aiohttp.ClientTimeout(total=None if watching else 45)
        method = "GET" if watching else step.method
        url = self.url + filled(step.path, variables)
        async with self._session.request(method, url, data=data, headers=headers, timeout=timeout) as reply:
            if watching and reply.status == 200:
                body: Any = await _events(reply, step)
            else:
                body = _decoded(reply.content_type, await reply.text())
            warnings = tuple(reply.headers.getall("Warning", ()))
            return Answer(reply.status, reply.content_type, warnings, body)


async def _events(reply: aiohttp.ClientResponse, step: Step) -> list[Any]:
    events: list[Any] = []
    try:
        async with asyncio.timeout(step.seconds):
            while not step.events or len(events) < step.events:
                line = await reply.content.readline()
                if not line:
                    events.append({"type": "END"})
                    break
                events.append(json.loads(line))
    except TimeoutError:
        events.append({"type": "SILENCE"})
    return events


def _decoded(content_type: str, text: str) -> Any:
    if content_type == "application/json":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return yaml.safe_load(text) if content_type == "application/yaml" else text


def filled(text: str, variables: dict[str, str]) -> str:
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
