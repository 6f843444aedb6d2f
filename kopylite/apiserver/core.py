"""Core: from Request to Response, with no socket in sight. The HTTP front and in-process clients share it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from kopylite.apiserver.access.authorization import Authorizer, check
from kopylite.apiserver.aside import aside
from kopylite.apiserver.deletion.deleter import Deleter
from kopylite.apiserver.depth import deep, deep_stream
from kopylite.apiserver.endpoints.discovery import Discovery, page_not_found
from kopylite.apiserver.endpoints.metrics import RequestMetrics, labels_of
from kopylite.apiserver.reads.lists import ObjectReader
from kopylite.apiserver.reads.views import View
from kopylite.apiserver.reads.watches import WatchStream
from kopylite.apiserver.request.bodies import decode_body
from kopylite.apiserver.request.log import AccessLog
from kopylite.apiserver.request.negotiation import Media, accept_media
from kopylite.apiserver.request.options import WriteQuery, check_timeout, delete_options, list_options, write_options
from kopylite.apiserver.request.request import HttpRequest, Response, Target, parse_target
from kopylite.apiserver.resources.registry import Resource
from kopylite.apiserver.slices import in_slices
from kopylite.apiserver.world import Call, Disconnect, World, not_found, qualified_details
from kopylite.apiserver.writes.decoding import check_namespace_matches, decode_object, read_delete_options
from kopylite.apiserver.writes.patches import checked_form, patch
from kopylite.apiserver.writes.writer import PATCH_RETRIES, UpdatePolicy, Writer, Written, check_name
from kopylite.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    RequestEntityTooLarge,
)

# --max-resource-write-bytes of upstream's handlers.
MAX_BODY_BYTES = 3 * 1024 * 1024
# sendInitialEvents is served from this minor on.
STREAMING_LISTS_MINOR = 34

# Errors about paths and methods, and refused patches, carry details with nothing in them.
_EMPTY_DETAILS = (404, 405, 422)
_WEBHOOK = 'admission webhook "'

logger = logging.getLogger(__name__)

CallHandler = Callable[[Call], Awaitable[Response]]
_COLLECTION_VERBS = ("create", "list", "watch", "deletecollection")
# Sub-resources whose body is the parent itself: they are updates of a part of it.
_PARTIAL = frozenset({"status", "finalize", "approval", "ephemeralcontainers", "resize"})


class _PageNotFound(Exception):
    """No handler knows the path: in groups that only CRDs define, that is a plain 404."""


class _Missing(NotFound):
    """The path is below a known group, and leads to nothing."""

    def __init__(self) -> None:
        super().__init__("the server could not find the requested resource")


class Core:
    """Answers requests against a World.

    Attributes:
        special: handlers of resources and sub-resources that are no stored objects, by (group, plural,
            sub-resource): reviews, scale, eviction, ...
        documents: handlers of paths that are no resources, by path prefix; the longest match wins. One whose answer
            takes long makes it in steps.
        log: the requests of late, for tests.
        metrics: what /metrics tells of requests.
    """

    def __init__(self, world: World, authorizer: Authorizer) -> None:
        self.world = world
        self.writer = Writer(world)
        self.deleter = Deleter(world)
        self.reader = ObjectReader(world)
        self.authorizer = authorizer
        self.log = AccessLog()
        self.metrics = RequestMetrics()
        self.special: dict[tuple[str, str, str], CallHandler] = {}
        self.discovery = Discovery(world.registry)
        self.documents: dict[str, Callable[[HttpRequest], Response | Generator[None, None, Response]]] = {}

    async def handle(self, request: HttpRequest) -> Response:
        """Answer a request whose user is known. Never raises ApiError: errors come back as Status.

        Raises:
            Disconnect: a hook wants the connection cut.
        """
        response = await deep(self._handle(request))
        if response.stream is not None:
            response.stream = deep_stream(response.stream)
        return response

    async def _handle(self, request: HttpRequest) -> Response:
        target = parse_target(request)
        began, kind = self.world.clock.monotonic(), self.metrics.begin(target)
        try:
            response = await self._safely(request, target)
        finally:
            self.metrics.end(kind)
        now = self.world.clock.monotonic()
        self.log.add(now, request, target, response)
        resource = self.world.registry.find(target.group, target.version, target.resource)
        labels = labels_of(target, resource, self.documents)
        self.metrics.note(labels, request, response.status, now - began)
        for hook in self.world.hooks.after:
            response = await hook(request, response)
        return response

    async def _safely(self, request: HttpRequest, target: Target) -> Response:
        """The answer, whatever happens. Raises Disconnect."""
        warnings: list[str] = []
        try:
            response = await self._answer(request, target, warnings)
        except _PageNotFound:
            response = page_not_found()
        except ApiError as error:
            response = error_response(request, error)
        except Disconnect:
            raise
        except RecursionError:  # within the bounds of bodies, and yet deeper than Python's stack
            response = error_response(request, BadRequest("the object nests deeper than this server can follow"))
        except Exception as error:  # a fault of ours is an answer too: the client must not hang or guess
            logger.exception("%s %s failed", request.method, request.path)
            response = error_response(request, InternalError(f"Internal error occurred: {error}"))
        response.warnings[:0] = dict.fromkeys(warnings)
        return response

    async def _answer(self, request: HttpRequest, target: Target, warnings: list[str]) -> Response:
        for hook in self.world.hooks.before:
            early = await hook(request)
            if early is not None:
                return early
        check_timeout(request, target)
        check(self.authorizer, request.user, target)
        if "//" in request.path:
            return page_not_found()
        if not target.is_resource:
            return await self._document(request)
        call = Call(request, target, self._resource(request, target), warnings)
        if not call.resource.loaded:
            await aside(lambda: call.resource.strategy, call.resource.size)
        if call.resource.deprecation:
            warnings.append(call.resource.deprecation)
        special = self.special.get((call.resource.group, call.resource.plural, target.subresource))
        if special is None and target.subresource == "scale":
            special = self.special.get(("*", "*", "scale"))
        if special is not None:
            return await special(call)
        if target.subresource and target.subresource not in _PARTIAL:
            raise NotFound("the server could not find the requested resource")
        return await self._serve(call)

    async def _document(self, request: HttpRequest) -> Response:
        for prefix in sorted(self.documents, key=len, reverse=True):
            below = prefix != "/" and request.path.startswith(prefix.rstrip("/") + "/")
            if request.path == prefix or below:
                found = self.documents[prefix](request)
                return found if isinstance(found, Response) else await in_slices(found)
        return self.discovery.respond(request)

    def _resource(self, request: HttpRequest, target: Target) -> Resource:
        """The resource that the path names. Raises NotFound or MethodNotAllowed."""
        resource = self.world.registry.find(target.group, target.version, target.resource)
        if request.method == "HEAD" and resource is not None and not resource.custom:
            raise not_allowed()  # each method of a built-in kind has its own route, and this one has none
        missing = _Missing if self.world.registry.has_builtin(target.group) else _PageNotFound
        if resource is None:
            raise missing()
        own_namespace = resource.storage == "namespaces"
        if resource.namespaced != bool(target.namespace) and not own_namespace:
            collection = not _path_name(target)
            if not resource.namespaced or not collection:
                raise missing()
            if "list" not in resource.verbs:
                raise missing()
            if target.verb not in ("list", "watch"):
                raise missing if resource.custom else not_allowed()
        subresource = resource.subresources.get(target.subresource) if target.subresource else None
        if target.subresource and subresource is None:
            raise not_found(resource, target.name) if resource.custom else missing()
        self._check_verb(resource, target, subresource.verbs if subresource else resource.verbs)
        return resource

    def _check_verb(self, resource: Resource, target: Target, verbs: Sequence[str]) -> None:
        """Raises MethodNotAllowed."""
        if _path_name(target) and not target.subresource and set(verbs) <= set(_COLLECTION_VERBS):
            raise _Missing()
        on_collection = target.verb in _COLLECTION_VERBS and not target.subresource
        if on_collection == bool(_path_name(target)) and not (resource.custom and target.verb == "create"):
            # Custom resources have no routes of their own for each method.
            raise BadRequest("name must be provided") if resource.custom else not_allowed()
        # Discovery no longer offers writes of a terminating kind; they still work, so that finalizers can go.
        if target.verb not in verbs and not (resource.terminating and target.verb in ("create", "update", "patch")):
            raise not_supported(resource, target.verb) if resource.custom else not_allowed()

    async def _serve(self, call: Call) -> Response:
        if len(call.request.body) > MAX_BODY_BYTES:
            raise too_large()
        verb = call.target.verb
        if verb == "watch":
            return await self._watch(call)
        if verb == "patch":
            checked_form(call)  # what comes in is looked at before what shall go out
        media = accept_media(call.request, collection=verb in _COLLECTION_VERBS, custom=call.resource.custom)
        if verb == "get":
            return Response(body=await self.reader.get(call, media), content_type=media.type)
        if verb in ("list", "deletecollection"):
            return await self._collection(call, media)
        if verb == "delete":
            return await self._delete(call, media)
        if verb == "create":
            return self._written(call, await self._create(call), media)
        if verb == "update":
            return self._written(call, await self._update(call), media)
        return self._written(call, await patch(self.world, self.writer, call), media)

    async def _watch(self, call: Call) -> Response:
        media = accept_media(call.request, watch=True, custom=call.resource.custom)
        streaming = self.world.minor >= STREAMING_LISTS_MINOR
        options = list_options(call.request, watch=True, streaming_lists=streaming)
        # Upstream would compress what may be long.
        headers = {"Vary": "Accept-Encoding"} if options.initial_events and options.bookmarks else {}
        stream = await WatchStream(self.world, call, media, options).open()
        return Response(content_type=media.stream_type, headers=headers, stream=stream)

    async def _collection(self, call: Call, media: Media) -> Response:
        options = list_options(call.request, watch=False)
        if call.target.verb == "list":
            return Response(body=await self.reader.collection(call, media, options), content_type=media.type)
        deleting = delete_options(call.request, read_delete_options(call.request))
        records, metadata = await self.reader.page(call, options)
        await self.deleter.delete_collection(call, records, deleting)
        return Response(
            body=await View(self.world, call.resource, media).list(records, metadata), content_type=media.type
        )

    async def _delete(self, call: Call, media: Media) -> Response:
        deleting = delete_options(call.request, read_delete_options(call.request))
        status, answer = await self.deleter.delete(call, deleting)
        if answer.startswith(b'{"kind":"Status"'):
            return Response(status, media.finish(answer), media.type)
        return Response(status, View(self.world, call.resource, media).object(answer), media.type)

    async def _create(self, call: Call) -> Written:
        options = write_options(call.request, "CreateOptions")
        obj = await aside(lambda: _decoded(call, options), len(call.request.body))
        check_namespace_matches(call, obj["metadata"])
        if call.resource.terminating:
            raise _terminating(call.resource, obj["metadata"].get("name", ""))
        return await self.writer.create(call, obj, options)

    async def _update(self, call: Call) -> Written:
        options = write_options(call.request, "UpdateOptions")
        sent = [await aside(lambda: _replacement(call, options), len(call.request.body))]
        create = call.resource.strategy.create_on_update and not call.target.subresource

        def change(_: dict[str, Any] | None) -> dict[str, Any]:
            # Asked again, because somebody else wrote meanwhile, the first one has been worked on.
            return sent.pop() if sent else _replacement(call, options)

        return await self.writer.update(call, change, options, UpdatePolicy(PATCH_RETRIES, create=create))

    def _written(self, call: Call, written: Written, media: Media) -> Response:
        body = View(self.world, call.resource, media).object(written.body)
        return Response(201 if written.created else 200, body, media.type)


def _decoded(call: Call, options: WriteQuery) -> dict[str, Any]:
    """The object in the body. Raises ApiError."""
    obj, duplicates = decode_body(call.request, call.resource.kind, custom=call.resource.custom)
    return decode_object(call, obj, duplicates, options.field_validation)


def _replacement(call: Call, options: WriteQuery) -> dict[str, Any]:
    """The object in the body, which is the one that the path names. Raises ApiError."""
    obj = _decoded(call, options)
    check_name(call, obj)
    check_namespace_matches(call, obj["metadata"])
    return obj


def _terminating(resource: Resource, name: str) -> Forbidden:
    text = "create not allowed while custom resource definition is terminating"
    details = qualified_details(resource, name)
    return Forbidden(f'{resource.qualified} "{name}" is forbidden: {text}', details=details)


def error_response(request: HttpRequest, error: ApiError) -> Response:
    """The Status in a form that the client accepts, else JSON."""
    try:
        media = accept_media(request, views=False)
    except ApiError:
        media = Media()
    status = error.to_status()
    pathless = error.code == 403 and not error.details
    told = error.message.startswith(_WEBHOOK)  # the Status is the webhook's own
    if (
        (error.code in _EMPTY_DETAILS and not told)
        or (pathless and not told)
        or error.message.startswith(("406:", "415:"))
    ):
        status.setdefault("details", {})
    headers = {"Retry-After": str(int(error.retry_after))} if error.retry_after is not None else {}
    return Response(error.code, media.encode(status), media.type, headers)


def not_supported(resource: Resource, verb: str) -> MethodNotAllowed:
    details = qualified_details(resource, "")
    return MethodNotAllowed(f'{verb} is not supported on resources of kind "{resource.qualified}"', details=details)


def not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource")


def too_large() -> ApiError:
    return RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY_BYTES}")


def _path_name(target: Target) -> str:
    """The name in the path; a list's name may come from its selector instead."""
    return "" if target.verb in ("list", "watch", "deletecollection") else target.name
