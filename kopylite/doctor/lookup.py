"""From what people call a resource ("myapps.example.com", "configmaps", "MyApp") to its kind, by discovery."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from kopylite.boundary import json_object
from kopylite.client import ApiRequest
from kopylite.doctor.reader import Reader
from kopylite.doctor.wire import maps, part, text, texts
from kopylite.errors import KindNotFound, KopyliteError
from kopylite.objects import Kind


async def find_kind(reader: Reader, word: str) -> Kind:
    """The kind of a plural, singular, short name or kind, with or without its group, in the group's preferred version.

    Raises:
        KindNotFound: there is none.
        ApiError, TransportError: the server could not be asked.
    """
    called, _, group = word.partition(".")
    broken: KopyliteError | None = None
    async with aclosing(_versions(reader, group, named="." in word)) as versions:
        async for version in versions:
            path = f"/apis/{version}" if "/" in version else f"/api/{version}"
            try:
                found = json_object((await reader.send(ApiRequest("GET", path))).body)
            except KopyliteError as error:
                broken = error  # an aggregated group whose server is down must not hide the others
                continue
            for each in maps(found, "resources"):
                plural, kind = text(each, "name"), text(each, "kind")
                names = {plural, kind.lower(), text(each, "singularName"), *texts(each, "shortNames")}
                if "/" not in plural and called.lower() in names:
                    return Kind(version, kind, plural, part(each, "namespaced") is True)
    if broken is not None:
        raise broken
    raise KindNotFound(f"the server has no resource {word!r}; kubectl api-resources lists those that it has")


async def _versions(reader: Reader, group: str, *, named: bool) -> AsyncGenerator[str, None]:
    """Where to look: of a named group its preferred version and then its others; else everywhere."""
    if not named:
        yield "v1"
    listed = json_object((await reader.send(ApiRequest("GET", "/apis"))).body)
    for each in maps(listed, "groups"):
        if named and text(each, "name") != group:
            continue
        preferred = text(each, "preferredVersion", "groupVersion")
        others = [text(version, "groupVersion") for version in maps(each, "versions")]
        for version in dict.fromkeys([preferred, *others]) if named else [preferred]:
            if version:
                yield version
