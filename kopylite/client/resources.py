"""Plural and scope of kinds: from the kind itself where it says them, else from the server, one group at a time."""

from __future__ import annotations

import re
from functools import partial

import msgspec

from kopylite.boundary import read, say
from kopylite.checks import nearest
from kopylite.client import verbs
from kopylite.client.retries import retry_after
from kopylite.client.transport import Transport
from kopylite.client.verbs import ApiRequest, ResourceInfo
from kopylite.clock import SYSTEM_CLOCK, Clock
from kopylite.errors import ApiError, KindNotFound, StreamBroken, TransportError, api_error
from kopylite.objects import Kind, builtin_kinds, kind_of

# A kind that is missing is asked for again this often: a CRD that appears is found soon, and a controller that
# waits for it costs next to nothing.
MISSING_PERIOD = 3.0
# What can stand in a URL as the name of a resource, or of a sub-resource.
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,62}(/[a-z0-9-]{1,63})*")
_GROUP_VERSION = re.compile(r"[a-z0-9.-]{1,253}/[a-z0-9]{1,63}")
# Of those that a group has, so many are named.
MOST_VERSIONS = 5
# How long a kind is taken to have no status sub-resource: its CRD may get one.
STATUSLESS_PERIOD = 60.0


class _ApiResource(msgspec.Struct, gc=False):
    name: str
    kind: str
    namespaced: bool


class _ApiResourceList(msgspec.Struct, gc=False):
    kind: str = ""
    resources: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET


class _GroupVersion(msgspec.Struct, gc=False):
    api_version: str = msgspec.field(name="groupVersion")


class _ApiGroup(msgspec.Struct, gc=False):
    versions: list[_GroupVersion]


_decode_group = msgspec.json.Decoder(_ApiGroup).decode
_decode_list = msgspec.json.Decoder(_ApiResourceList).decode
_decode_resource = msgspec.json.Decoder(_ApiResource).decode


class Resources:
    """Finds the resource of a kind.

    Custom resource classes and the kinds of Kubernetes itself need no request. For others the server is asked
    for the one group and version of the kind, so a broken API group harms only those who use it. What was
    found is kept; what was missing is asked for again after 3 s.
    """

    __slots__ = ("_clock", "_found", "_missing", "_rechecked", "_statusless", "_subresources", "_transport")

    def __init__(self, transport: Transport, clock: Clock = SYSTEM_CLOCK) -> None:
        self._transport = transport
        self._clock = clock
        self._found: dict[Kind, ResourceInfo] = {}
        # When a kind was not there, and what may help; also in which versions its group is there, asked for once.
        self._missing: dict[Kind, tuple[float, str, str | None]] = {}
        # When the scope of a kind was asked for again.
        self._rechecked: dict[Kind, float] = {}
        # Until when a kind is taken to have no status sub-resource.
        self._statusless: dict[Kind, float] = {}
        # When the server was asked for a kind's sub-resources, and what it listed; None: not even the kind.
        self._subresources: dict[Kind, tuple[float, frozenset[str] | None]] = {}

    def known(self, kind: Kind) -> ResourceInfo | None:
        """The resource, if no request is needed to know it."""
        found = self._found.get(kind)
        if found is None:
            complete = kind_of(kind)
            if complete.plural is not None and complete.namespaced is not None:
                found = self._found[kind] = ResourceInfo(complete, complete.plural, complete.namespaced)
        return found

    async def find(self, kind: Kind, *, again: bool = False) -> ResourceInfo:
        """The resource of a kind.

        Args:
            again: ask the server, whatever is known; say, because a request for the resource found nothing there.

        Raises:
            KindNotFound: the server does not serve it, or did not 3 s ago.
            ApiError, TransportError: the server could not be asked, or its answer could not be read.
        """
        found = None if again else self.known(kind)
        if found is not None:
            return found
        now = self._clock.monotonic()
        asked, hint, others = self._missing.get(kind, (-MISSING_PERIOD, "", None))
        if not again and now - asked < MISSING_PERIOD:
            raise _not_found(kind, hint)
        served, fault = await self._served(kind.api_version)
        for resource in served:
            # Sub-resources ("deployments/scale") are in the list too, under the kind of their body.
            if resource.kind == kind.kind and "/" not in resource.name:
                self._missing.pop(kind, None)
                found = self._found[kind] = ResourceInfo(kind, resource.name, resource.namespaced)
                return found
        if fault:
            raise StreamBroken(f"whether the server serves {kind} is not clear: its discovery can't be read: {fault}")
        hint = _hint(kind, [resource.kind for resource in served if "/" not in resource.name])
        if not served and others is None:
            others = await self._others(kind.group)
        hint += others or ""
        self._missing[kind] = now, hint, others
        raise _not_found(kind, hint)

    async def find_for(self, kind: Kind, *, namespaced: bool) -> ResourceInfo:
        """As `find`, for a key that is in a namespace, or in none.

        Where the kind was found to be otherwise, the server is asked again, every 3 s at most: a CRD may have been
        replaced by one of the other scope, and what nobody asks for again would be wrong for ever.
        """
        found = self.known(kind) or await self.find(kind)
        if found.namespaced == namespaced or kind_of(kind).namespaced is not None:
            return found
        now = self._clock.monotonic()
        if now - self._rechecked.get(kind, -MISSING_PERIOD) < MISSING_PERIOD:
            return found
        self._rechecked[kind] = now
        return await self.find(kind, again=True)

    def learn(self, resource: ResourceInfo) -> None:
        """Take over what the server's objects have shown."""
        self._found[resource.kind] = resource

    def forget(self, kind: Kind) -> None:
        """Ask the server again: a request for the resource found nothing there."""
        self._found.pop(kind, None)

    def is_statusless(self, kind: Kind) -> bool:
        """Whether the server was found to have no status sub-resource for a kind, a minute ago at most."""
        return self._clock.monotonic() < self._statusless.get(kind, 0.0)

    def note_statusless(self, kind: Kind) -> None:
        self._statusless[kind] = self._clock.monotonic() + STATUSLESS_PERIOD

    async def lacks(self, kind: Kind, subresource: str, *, again: bool = False) -> bool:
        """Whether the server serves a kind and lists no such sub-resource. Asked at most every 3 s.

        False also when discovery cannot be asked: then nobody knows.

        Args:
            again: ask, whatever was listed: the answer looked as if the kind itself were gone.
        """
        now = self._clock.monotonic()
        asked, listed = self._subresources.get(kind, (-MISSING_PERIOD, None))
        if again or now - asked >= MISSING_PERIOD:
            try:
                served, fault = await self._served(kind.api_version)
            except (ApiError, TransportError):
                return False
            if fault:
                return False
            plural = next((each.name for each in served if each.kind == kind.kind and "/" not in each.name), None)
            listed = (
                None
                if plural is None
                else frozenset(each.name.partition("/")[2] for each in served if each.name.startswith(f"{plural}/"))
            )
            self._subresources[kind] = now, listed
        return listed is not None and subresource not in listed

    async def _served(self, api_version: str) -> tuple[list[_ApiResource], str]:
        request = verbs.discovery(api_version)
        response = await self._transport.request(request)
        if response.status == 404:
            return [], ""
        if response.status >= 400:
            wait = retry_after(response.headers)
            raise api_error(response.status, response.body, retry_after=wait, request=str(request))
        return read(_resources, response.body, partial(_no_list, request))

    async def _others(self, group: str) -> str:
        """In which versions a group is served, for the hint; "" also where that cannot be told."""
        if not group:
            return ""
        request = verbs.versions(group)
        try:
            response = await self._transport.request(request)
            found = read(_versions, response.body, partial(_no_group, request))
        except TransportError:
            return ""
        return f" The server has {group} as {', '.join(found)}" if found else ""


def _resources(body: bytes) -> tuple[list[_ApiResource], str]:
    """The entries that can be read, and what is wrong with the others, so that these are not taken for absent."""
    found = _decode_list(body)
    if found.kind != "APIResourceList" and found.resources is msgspec.UNSET:
        raise ValueError("it has no resources")
    served, fault = [], ""
    for entry in found.resources or ():
        try:
            resource = _decode_resource(entry)
        except Exception as error:
            fault = say(error)
            continue
        if _NAME.fullmatch(resource.name):
            served.append(resource)
        else:
            fault = "a resource has a name that fits no URL"
    return served, fault


def _versions(body: bytes) -> list[str]:
    found = [each.api_version for each in _decode_group(body).versions]
    return [each for each in found[:MOST_VERSIONS] if _GROUP_VERSION.fullmatch(each)]


def _no_group(request: ApiRequest, body: bytes, error: Exception) -> StreamBroken:
    return StreamBroken(f"{request}: the answer is no APIGroup: {say(error)}")


def _no_list(request: ApiRequest, body: bytes, error: Exception) -> StreamBroken:
    return StreamBroken(f"{request}: the answer is no APIResourceList: {say(error)}")


def _not_found(kind: Kind, hint: str) -> KindNotFound:
    return KindNotFound(f"the server does not serve {kind}: {hint}")


def _hint(kind: Kind, served: list[str]) -> str:
    """What may help: another spelling, another apiVersion, or its CRD."""
    spelled = nearest(kind.kind, served)
    elsewhere = [known.api_version for known in builtin_kinds() if known.kind == kind.kind and known != kind]
    likely = [f"{spelled}.{kind.api_version}"] if spelled and spelled != kind.kind else []
    likely += [f"{kind.kind}.{api_version}" for api_version in elsewhere]
    return f"did you mean {' or '.join(likely)}?" if likely else "is its CRD installed?"
