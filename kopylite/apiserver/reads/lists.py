"""Get and list: consistent pages, resourceVersion semantics, selectors."""

from __future__ import annotations

import base64
import binascii
import itertools
import posixpath
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kopylite.apiserver.aside import aside
from kopylite.apiserver.reads.views import View
from kopylite.apiserver.request.negotiation import Media
from kopylite.apiserver.request.options import ListOptions, parse_version
from kopylite.apiserver.request.selectors import check_field_labels
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.storage.history import Compacted, StoredObject
from kopylite.apiserver.world import Call, World, body_in, fields_in
from kopylite.errors import BadRequest, Cause, Expired, GatewayTimeout

# A selector looks at a record in the time in which other work looks at about this many bytes.
_RECORD_WEIGHT = 16
# How long upstream's watch cache waits for a version that it has not seen.
FRESHNESS_SECONDS = 3.0
_POLL_SECONDS = 0.05
_TOKEN_VERSION = "meta.k8s.io/v1"


Matches = Callable[[StoredObject], bool]


class ContinueExpired(Expired):
    """The snapshot that a continue token belongs to is compacted; carries a token that goes on from now."""

    def __init__(self, token: str) -> None:
        super().__init__(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list."
        )
        self.token = token

    def to_status(self) -> dict[str, Any]:
        return {**super().to_status(), "metadata": {"continue": self.token}}


class ObjectReader:
    """Answers get and list."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def get(self, call: Call, media: Media) -> bytes:
        """The object that the path names. Raises NotFound, or GatewayTimeout for a version from the future."""
        for hook in self._world.hooks.read:
            await hook(call)
        text = call.request.param("resourceVersion")
        if text:
            await wait_for_version(self._world, parse_version(text))
        record = self._world.store.get(call.resource.storage, call.key)
        if record is None:
            raise call.not_found()
        await self._world.prepare_one(call.resource, record)
        return View(self._world, call.resource, media).object(body_in(call.resource, record))

    async def collection(self, call: Call, media: Media, options: ListOptions) -> bytes:
        """A page. Raises BadRequest, Expired, GatewayTimeout."""
        for hook in self._world.hooks.read:
            await hook(call)
        page, metadata = await self.page(call, options)
        await self._world.prepare_list(call.resource, page)
        return await View(self._world, call.resource, media).list(page, metadata)

    async def page(self, call: Call, options: ListOptions) -> tuple[list[StoredObject], dict[str, Any]]:
        """The records of a page and the list's metadata."""
        resource = call.resource
        prefix = f"{call.target.namespace}/" if resource.namespaced and call.target.namespace else ""
        matches = matcher(call, options)
        version, start = await self._position(options)
        collection = self._world.store.collection(resource.storage)
        try:
            records = collection.scan(prefix, start, version)
        except Compacted:
            raise self._too_old(options, start) from None
        limit = 0 if options.version == 0 else options.limit
        page, more = await self._chosen(resource, records, matches, limit)
        metadata: dict[str, Any] = {"resourceVersion": str(version)}
        if more:
            after = page[-1].key + "\0"
            metadata["continue"] = encode_token(version, after)
            if matches is None:
                metadata["remainingItemCount"] = collection.count(prefix, after, version)
        return page, metadata

    async def _chosen(
        self, resource: Resource, records: Iterator[StoredObject], matches: Matches | None, limit: int
    ) -> tuple[list[StoredObject], bool]:
        """The first records that match, at most `limit` (0: all), and whether others come after them.

        Whether what comes after a full page matches is not looked at, as upstream.
        """
        if matches is None:
            page = list(itertools.islice(records, limit or None))
            return page, bool(limit) and len(page) == limit and next(records, None) is not None
        everything = list(records)  # as it is now: others write while it is looked through
        await self._world.prepare_list(resource, everything)

        def look() -> tuple[list[StoredObject], bool]:
            page = []
            for seen, record in enumerate(everything, 1):
                if matches(record):
                    page.append(record)
                    if len(page) == limit:
                        return page, seen < len(everything)
            return page, False

        # What a webhook has converted is at hand in this turn only.
        return await aside(look, 0 if resource.conversion else len(everything) * _RECORD_WEIGHT)

    async def _position(self, options: ListOptions) -> tuple[int, str]:
        """The version to list at, and the first key."""
        store = self._world.store
        if options.continue_token:
            version, start = decode_token(options.continue_token)
            if options.version:
                raise BadRequest("specifying resource version is not allowed when using continue")
            return (store.version if version < 0 else version), start
        wanted = options.version or 0
        if wanted:
            await wait_for_version(self._world, wanted)
        exact = options.match == "Exact" or (not options.match and options.limit > 0)
        return (wanted if wanted and exact else store.version), ""

    def _too_old(self, options: ListOptions, start: str) -> Expired:
        if options.continue_token:
            return ContinueExpired(encode_token(-1, start))
        return Expired("The resourceVersion for the provided list is too old.")


async def wait_for_version(world: World, version: int) -> None:
    """Return when the store has come to `version`. Raises GatewayTimeout after 3 seconds."""
    waited = 0.0
    while world.store.version < version:
        if waited >= FRESHNESS_SECONDS:
            raise GatewayTimeout(
                f"Timeout: Too large resource version: {version}, current: {world.store.version}",
                causes=(Cause("ResourceVersionTooLarge", "Too large resource version"),),
                retry_after=1,
            )
        await world.clock.sleep(_POLL_SECONDS)
        waited += _POLL_SECONDS


def matcher(call: Call, options: ListOptions) -> Matches | None:
    """What the selectors ask of a record; None: nothing. Raises BadRequest for a field that is not selectable."""
    labels, fields, resource = options.labels, options.fields, call.resource
    known = {"metadata.name", *resource.fields}
    if resource.namespaced or resource.custom or not resource.fields:
        known.add("metadata.namespace")
    check_field_labels(fields, known, unsupported=lambda label: _unsupported(resource, label))
    if not labels and not fields:
        return None
    if not fields:
        return lambda record: labels.matches(record.labels)

    def matches(record: StoredObject) -> bool:
        return labels.matches(record.labels) and fields.matches(fields_in(resource, record))

    return matches


def _unsupported(resource: Resource, label: str) -> str:
    if resource.custom or resource.fields:
        return f"field label not supported: {label}"
    return f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def encode_token(version: int, start: str) -> str:
    """Opaque to clients; version -1 means: newest, whatever it is by then."""
    token = msgspec.json.encode({"v": _TOKEN_VERSION, "rv": version, "start": f"/{start}"})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def decode_token(token: str) -> tuple[int, str]:
    """Raises BadRequest."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _bad_token("illegal base64 data at input byte 0") from None
    try:
        decoded = msgspec.json.decode(raw)
    except ValueError:
        shown = raw[:1].decode("latin-1")
        shown = shown if shown.isprintable() else f"\\u{ord(shown):04x}"
        raise _bad_token(f"invalid character '{shown}' looking for beginning of value") from None
    if not isinstance(decoded, dict | None):
        found = {list: "array", str: "string", bool: "bool"}.get(type(decoded), "number")
        raise _bad_token(f"json: cannot unmarshal {found} into Go value of type storage.continueToken")
    if not decoded or decoded.get("v") != _TOKEN_VERSION:
        version = decoded.get("v", "") if decoded else ""
        raise _bad_token(f"server does not recognize this encoded version {version}")
    version, start = decoded.get("rv"), decoded.get("start")
    if not isinstance(version, int) or version == 0:
        raise _bad_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _bad_token("encoded start key empty (version meta.k8s.io/v1)")
    key = start.removeprefix("/")
    if key and posixpath.normpath(f"/all/{key}") != f"/all/{key}":
        raise _bad_token(start)
    return version, key


def _bad_token(text: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {text}")
