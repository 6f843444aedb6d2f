"""What can be asked of a Kubernetes API server, as values. Pure: nothing here sends anything.

A builder turns an operation into one `ApiRequest`. Names are percent-encoded, and a name that would change the
meaning of the path (empty, ".", "..") is refused here: an empty name would turn a delete into a delete of all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal
from urllib.parse import quote

import msgspec

from kopylite.errors import UsageError
from kopylite.objects import Kind, ObjectKey

JSON = "application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

PatchType = Literal["merge", "json", "strategic", "apply"]

PATCH_TYPES: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    # JSON is YAML; servers older than 1.34 or so know only this name for it.
    "apply": "application/apply-patch+yaml",
}

# Objects of a list's page, as client-go asks for (tools/pager): they bound the memory and the pause of each step.
PAGE_SIZE = 500

# What is the same in a URL.
_PLAIN = re.compile(r"[A-Za-z0-9._~-]+").fullmatch


class Timeouts(msgspec.Struct, frozen=True):
    """How long an answer may take, in seconds.

    Attributes:
        begin: until its first byte, at each attempt.
        silence: between one piece and the next, however many there are. None: the answer is small, and `begin` is for
            all of it and all attempts, plus the time that its bytes take on a slow line.
    """

    begin: float = 30.0
    silence: float | None = None


SMALL = Timeouts()
# A page, a list of kinds: nobody knows how long the line takes for it.
BULK = Timeouts(silence=30.0)
# Everything at once: kube-apiserver itself gives up after 60 s, and says so.
WHOLE = Timeouts(begin=70.0, silence=30.0)


class ApiRequest(msgspec.Struct, frozen=True):
    """One HTTP request to the API server.

    Attributes:
        method: an HTTP method, in capitals; not HEAD.
        path: begins with "/", percent-encoded, without a query.
        params: the query, not yet encoded.
        body: the payload, exactly as it goes out.
        content_type: of the body.
        accept: the wanted form of the answer.
        patience: how long the answer may take, unless the caller sets a time for everything.
    """

    method: str
    path: str
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    body: bytes | None = None
    content_type: str | None = None
    accept: str = JSON
    patience: Timeouts = SMALL

    @property
    def target(self) -> str:
        """Path and query, encoded: what stands in the request line."""
        return f"{self.path}?{self.query}" if self.params else self.path

    @property
    def query(self) -> str:
        """The params, encoded."""
        return "&".join([f"{name}={_quoted(value)}" for name, value in self.params.items()])

    def __str__(self) -> str:
        """Method and path: safe to log, since secrets can only stand in query, headers and body."""
        return f"{self.method} {self.path}"

    __repr__ = __str__


class ResourceInfo(msgspec.Struct, frozen=True):
    """A Kind with what a URL needs of it: the plural name and the scope, both known."""

    kind: Kind
    plural: str
    namespaced: bool

    def collection(self, namespace: str = "") -> str:
        """The path of all objects, in one namespace or ("") in all of them."""
        if namespace and not self.namespaced:
            raise UsageError(f"{self.kind} is cluster-scoped: it has no objects in namespace {namespace!r}")
        return _collection_path(self.kind.api_version, self.plural, namespace)

    def object(self, key: ObjectKey, subresource: str | None = None) -> str:
        """The path of one object, or of a sub-resource of it.

        Raises:
            UsageError: the name is empty or unusable, or the namespace does not fit the scope.
        """
        check_scope(self.kind, self.namespaced, key)
        path = f"{self.collection(key.namespace)}/{_segment(key.name, 'name')}"
        return f"{path}/{subresource}" if subresource else path


def check_scope(kind: Kind, namespaced: bool | None, key: ObjectKey) -> None:
    """Refuse a key that no object of a kind can have. An unknown scope (None) is not checked.

    Raises:
        UsageError: a namespace is missing, or is too much.
    """
    if namespaced and not key.namespace:
        raise UsageError(f"{kind} {key.name!r}: a namespaced kind needs a namespace; namespace=..., or a Request")
    if namespaced is False and key.namespace:
        raise UsageError(f"{kind} is cluster-scoped: {key.name!r} is in no namespace, and not in {key.namespace!r}")


def version_path(api_version: str) -> str:
    """The path of a group and version: "/api/v1" for the core group, "/apis/GROUP/VERSION" for the others."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


SHARD_SELECTOR = "shardSelector"


class Selection(msgspec.Struct, frozen=True):
    """Which objects of a collection: by label selector and field selector, in the server's syntax.

    `shards` is one, too, and many servers send everything all the same: so it is for reads alone.
    """

    labels: str = ""
    fields: str = ""
    shards: str = ""

    def params(self) -> dict[str, str]:
        params = {}
        if self.labels:
            params["labelSelector"] = self.labels
        if self.fields:
            params["fieldSelector"] = self.fields
        if self.shards:
            params[SHARD_SELECTOR] = self.shards
        return params


EVERYTHING = Selection()


class WriteOptions(msgspec.Struct, frozen=True):
    """What every write may carry.

    Attributes:
        field_manager: the owner of the written fields; "" leaves the choice to the server (User-Agent).
        dry_run: the server does everything but store the result.
        force: server-side apply takes fields over from their owners.
        strict: unknown and duplicate fields are an error instead of a warning.
    """

    field_manager: str = ""
    dry_run: bool = False
    force: bool = False
    strict: bool = False

    def params(self) -> dict[str, str]:
        params = {}
        if self.field_manager:
            params["fieldManager"] = self.field_manager
        if self.dry_run:
            params["dryRun"] = "All"
        if self.force:
            params["force"] = "true"
        if self.strict:
            params["fieldValidation"] = "Strict"
        return params


PLAIN = WriteOptions()


class Preconditions(msgspec.Struct, frozen=True):
    """What must hold for a delete to happen, and how it happens. None leaves a choice to the server.

    Attributes:
        uid, resource_version: of the object that may be deleted; another one gives Conflict.
        propagation: Background (dependents go later), Foreground (they go first) or Orphan (they stay).
        grace_period: seconds; 0 at once.
    """

    uid: str | None = None
    resource_version: str | None = None
    propagation: Literal["Background", "Foreground", "Orphan"] | None = None
    grace_period: int | None = None

    def to_dict(self, dry_run: bool) -> dict[str, object]:
        """The body of the delete: a `v1 DeleteOptions`."""
        body: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        wanted = {"uid": self.uid, "resourceVersion": self.resource_version}
        if conditions := {name: value for name, value in wanted.items() if value is not None}:
            body["preconditions"] = conditions
        if self.propagation is not None:
            body["propagationPolicy"] = self.propagation
        if self.grace_period is not None:
            body["gracePeriodSeconds"] = self.grace_period
        if dry_run:
            body["dryRun"] = ["All"]
        return body


def get(resource: ResourceInfo, key: ObjectKey, subresource: str | None = None) -> ApiRequest:
    return ApiRequest("GET", resource.object(key, subresource))


def list_page(
    resource: ResourceInfo,
    namespace: str = "",
    selection: Selection = EVERYTHING,
    *,
    limit: int = 0,
    continue_token: str = "",
    resource_version: str = "",
    metadata_only: bool = False,
) -> ApiRequest:
    """One page of a list.

    Args:
        limit: the most items of a page; 0 asks for everything in one.
        continue_token: of the page before; the server refuses a resource_version beside it, so it is left out.
        resource_version: answer with a state not older than this one; "" asks for the newest.
        metadata_only: items come as PartialObjectMetadata.
    """
    params = selection.params()
    if limit:
        params["limit"] = str(limit)
    if continue_token:
        params["continue"] = continue_token
    elif resource_version:
        params |= {"resourceVersion": resource_version, "resourceVersionMatch": "NotOlderThan"}
    accept = f"{METADATA_LIST},{JSON}" if metadata_only else JSON
    patience = BULK if limit else WHOLE
    return ApiRequest("GET", resource.collection(namespace), params, accept=accept, patience=patience)


def watch(
    resource: ResourceInfo,
    namespace: str = "",
    selection: Selection = EVERYTHING,
    *,
    resource_version: str = "",
    timeout_seconds: int = 0,
    send_initial_events: bool = False,
    metadata_only: bool = False,
) -> ApiRequest:
    """A watch with bookmarks.

    Args:
        resource_version: begin after this state.
        timeout_seconds: the server ends the stream cleanly after this time; 0 leaves it to the server.
        send_initial_events: begin with the present objects and a bookmark that ends them (WatchList).
        metadata_only: objects come as PartialObjectMetadata.
    """
    params = selection.params() | {"watch": "true", "allowWatchBookmarks": "true"}
    if resource_version:
        params["resourceVersion"] = resource_version
    if timeout_seconds:
        params["timeoutSeconds"] = str(timeout_seconds)
    if send_initial_events:
        params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    accept = f"{METADATA_OBJECT},{JSON}" if metadata_only else JSON
    return ApiRequest("GET", resource.collection(namespace), params, accept=accept)


def create(resource: ResourceInfo, namespace: str, body: bytes, options: WriteOptions = PLAIN) -> ApiRequest:
    """A POST to the collection.

    Raises:
        UsageError: the kind is namespaced and `namespace` is empty, or the other way round.
    """
    if resource.namespaced and not namespace:
        raise UsageError(f"create of a {resource.kind}: a namespaced kind needs a namespace in its metadata")
    return ApiRequest("POST", resource.collection(namespace), options.params(), body, JSON)


def create_subresource(
    resource: ResourceInfo, key: ObjectKey, subresource: str, body: bytes, options: WriteOptions = PLAIN
) -> ApiRequest:
    """A POST to a sub-resource: eviction, binding, token."""
    return ApiRequest("POST", resource.object(key, subresource), options.params(), body, JSON)


def update(
    resource: ResourceInfo,
    key: ObjectKey,
    body: bytes,
    subresource: str | None = None,
    options: WriteOptions = PLAIN,
) -> ApiRequest:
    return ApiRequest("PUT", resource.object(key, subresource), options.params(), body, JSON)


def patch(
    resource: ResourceInfo,
    key: ObjectKey,
    body: bytes,
    patch_type: PatchType,
    subresource: str | None = None,
    options: WriteOptions = PLAIN,
) -> ApiRequest:
    """A PATCH with the content type of `patch_type`.

    Raises:
        UsageError: `patch_type` is unknown, or is "apply" without a field manager.
    """
    content_type = PATCH_TYPES.get(patch_type)
    if content_type is None:
        raise UsageError(f"unknown patch type {patch_type!r}: one of {', '.join(PATCH_TYPES)}")
    if patch_type == "apply" and not options.field_manager:
        raise UsageError("server-side apply needs a field manager: it is the owner of the applied fields")
    return ApiRequest("PATCH", resource.object(key, subresource), options.params(), body, content_type)


def delete(resource: ResourceInfo, key: ObjectKey, body: bytes) -> ApiRequest:
    """A DELETE of one object; `body` is a DeleteOptions."""
    return ApiRequest("DELETE", resource.object(key), body=body, content_type=JSON)


def delete_collection(resource: ResourceInfo, namespace: str, selection: Selection, body: bytes) -> ApiRequest:
    """A DELETE of all selected objects of a namespace, or ("") of all namespaces; `body` is a DeleteOptions."""
    return ApiRequest("DELETE", resource.collection(namespace), selection.params(), body, JSON, patience=WHOLE)


def discovery(api_version: str) -> ApiRequest:
    """The resources of one group and version, as an APIResourceList."""
    return ApiRequest("GET", version_path(api_version), patience=BULK)


def versions(group: str) -> ApiRequest:
    """The versions of a group that is not the core group, as an APIGroup."""
    return ApiRequest("GET", f"/apis/{group}", patience=BULK)


@lru_cache(maxsize=1024)  # an operator works in few collections, over and over
def _collection_path(api_version: str, plural: str, namespace: str) -> str:
    if not namespace:
        return f"{version_path(api_version)}/{plural}"
    return f"{version_path(api_version)}/namespaces/{_segment(namespace, 'namespace')}/{plural}"


def _segment(name: str, what: str) -> str:
    if name in ("", ".", ".."):
        raise UsageError(f"a {what} cannot be {name!r}: the request would mean something else")
    return _quoted(name)


def _quoted(text: str) -> str:
    """Percent-encoded. Most names need none of it, and to see that is a tenth of the work."""
    return text if _PLAIN(text) else quote(text, safe="")
