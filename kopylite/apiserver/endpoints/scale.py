"""The scale sub-resource: an autoscaling/v1 Scale as a window on the replica fields of another kind."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import msgspec

from kopylite.apiserver.builtin.column_texts import column_texts
from kopylite.apiserver.endpoints.scale_apply import SCALE_TYPE as _SCALE_TYPE
from kopylite.apiserver.endpoints.scale_apply import apply_scale
from kopylite.apiserver.patching.apply import update_managed_fields
from kopylite.apiserver.printers.tables import NAME, TableView, age_cell
from kopylite.apiserver.request.negotiation import accept_media
from kopylite.apiserver.request.options import WriteQuery, write_options
from kopylite.apiserver.request.request import Response
from kopylite.apiserver.request.selectors import selector_text
from kopylite.apiserver.resources.registry import Column, Resource, ScalePaths
from kopylite.apiserver.schema.field_errors import invalid, invalid_error
from kopylite.apiserver.world import Call, World, object_in
from kopylite.apiserver.writes.decoding import check_namespace_matches, read_typed, typed
from kopylite.apiserver.writes.metadata import timestamp
from kopylite.apiserver.writes.patches import APPLY_PATCH, applied_config, checked_form, patch_function
from kopylite.apiserver.writes.writer import PATCH_RETRIES, UpdatePolicy, Writer, check_name, conflict
from kopylite.errors import ApiError, BadRequest, InternalError, NotFound

_META_KEYS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleEndpoint:
    """Serves GET, PUT and PATCH of `/scale` for every kind that declares its paths."""

    def __init__(self, world: World, writer: Writer) -> None:
        self._world = world
        self._writer = writer

    async def __call__(self, call: Call) -> Response:
        """Raises NotFound, BadRequest, Invalid, Conflict, InternalError."""
        paths = call.resource.scale
        if paths is None:
            raise NotFound("the server could not find the requested resource")
        if call.target.verb == "patch":
            checked_form(call)
        accept_media(call.request, custom=call.resource.custom)
        if call.target.verb == "get":
            for hook in self._world.hooks.read:
                await hook(call)
            record = self._world.store.get(call.resource.storage, call.key)
            if record is None:
                raise call.not_found()
            await self._world.prepare_one(call.resource, record)
            return self._respond(call, scale_of(call.resource, paths, object_in(call.resource, record)))
        if call.target.verb == "update":
            return await self._update(call, paths)
        return await self._patch(call, paths)

    async def _update(self, call: Call, paths: ScalePaths) -> Response:
        options = write_options(call.request, "UpdateOptions")
        given = read_typed(call.request, _SCALE_TYPE, "")
        _check_kind(given)
        metadata = given.get("metadata") or {}
        check_namespace_matches(call, metadata)
        if metadata.get("name", call.target.name) != call.target.name:
            named = metadata["name"]
            raise BadRequest(
                f"the name of the object ({named}) does not match the name on the URL ({call.target.name})"
            )
        return await self._write(call, paths, options, lambda _: given, retries=0)

    async def _patch(self, call: Call, paths: ScalePaths) -> Response:
        form = checked_form(call)
        if form == APPLY_PATCH:
            return await self._apply(call, paths)
        options = write_options(call.request, "PatchOptions")
        function = patch_function(call, form)
        return await self._write(call, paths, options, function, retries=PATCH_RETRIES)

    async def _apply(self, call: Call, paths: ScalePaths) -> Response:
        options = write_options(call.request, "PatchOptions", apply=True)
        config = applied_config(replace(call, resource=_SCALE))
        if "name" in config["metadata"]:  # else it is that of what is stored, to which this is merged
            check_name(call, config)
        if call.resource.custom:
            raise _apply_refused()

        def rescale(live: dict[str, Any] | None) -> dict[str, Any]:
            if live is None:
                raise call.not_found()
            current = scale_of(call.resource, paths, live, strict=False)
            now = timestamp(self._world.clock.now())
            manager, force = options.field_manager, bool(options.force)
            wanted, owners = apply_scale(
                current, config, live, paths.spec_replicas, manager=manager, now=now, force=force
            )
            obj = copy.deepcopy(live)
            _set(obj, paths.spec_replicas, checked_replicas(call, typed(wanted, _SCALE_TYPE)))
            obj["metadata"]["managedFields"] = owners
            obj["metadata"] |= _preconditions(call, config["metadata"], live)
            return obj

        policy = UpdatePolicy(PATCH_RETRIES, patch=True, managed=True)
        written = await self._writer.update(call, rescale, options, policy)
        return self._respond(call, scale_of(call.resource, paths, msgspec.json.decode(written.body)))

    async def _write(
        self, call: Call, paths: ScalePaths, options: WriteQuery, change: Any, *, retries: int
    ) -> Response:
        def rescale(live: dict[str, Any] | None) -> dict[str, Any]:
            assert live is not None, "a scale never creates"
            wanted = typed(change(scale_of(call.resource, paths, live, strict=False)), _SCALE_TYPE)
            obj = copy.deepcopy(live)
            _set(obj, paths.spec_replicas, checked_replicas(call, wanted))
            metadata = wanted.get("metadata") or {}
            obj["metadata"] |= _preconditions(call, metadata, live) if retries else _identity(metadata, live)
            _own_replicas(call, paths.spec_replicas, obj, live, options.field_manager)
            return obj

        policy = UpdatePolicy(retries, patch=retries > 0, managed=True)
        written = await self._writer.update(call, rescale, options, policy)
        return self._respond(call, scale_of(call.resource, paths, msgspec.json.decode(written.body)))

    def _respond(self, call: Call, scale: dict[str, Any]) -> Response:
        media = accept_media(call.request, custom=call.resource.custom)
        if media.view == "Table":
            now = self._world.clock.now()
            table = TableView(_SCALE, media.view_version, media.include_object, now, column_texts("scale"))
            scale = table.single({**scale, "spec": {"replicas": 0, **scale["spec"]}})
        return Response(body=media.encode(scale), content_type=media.type)


def _own_replicas(call: Call, path: tuple[str, ...], obj: dict[str, Any], live: dict[str, Any], manager: str) -> None:
    """Note who set the replicas, in place.

    Upstream turns the owners into those of a Scale and back. On that way it loses the time, keeps no books where
    nobody owned the replicas before, and takes 0 for a field that is not there.
    """
    entries = live["metadata"].get("managedFields", ())
    if not any(_owns(entry.get("fieldsV1", {}), path) for entry in entries):
        return
    strategy, api_version = call.resource.strategy, call.resource.api_version
    update_managed_fields(
        obj,
        live,
        schema=strategy.schema,
        manager=manager,
        api_version=api_version,
        subresource="scale",
        now="",
        schema_in=call.resource.schema_in,
    )
    if not _get(obj, path):
        kept = [
            e for e in obj["metadata"]["managedFields"] if (e.get("subresource"), e["manager"]) != ("scale", manager)
        ]
        obj["metadata"]["managedFields"] = kept


def _owns(fields: Any, path: tuple[str, ...]) -> bool:
    return _get(fields, tuple(f"f:{name}" for name in path)) is not None


def _apply_refused() -> ApiError:
    """The real server cannot do it for custom resources either."""
    return InternalError(
        "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
        "to proper version: request to convert CR to an invalid group/version: autoscaling/v1",
        reason="",
    )


def _read(path: tuple[str, ...]) -> Any:
    return lambda obj: _get(obj, path)


def _no_strategy() -> Any:
    raise AssertionError("a Scale is never stored")


# Only for its columns.
_SCALE = Resource(
    "autoscaling",
    "v1",
    "Scale",
    "scales",
    True,
    _no_strategy,
    columns=(
        NAME,
        Column("Desired", "integer", _read(("spec", "replicas"))),
        Column("Available", "integer", _read(("status", "replicas"))),
        Column("Age", "date", age_cell),
    ),
)


def _check_kind(given: dict[str, Any]) -> None:
    kind, version = given.get("kind", "Scale"), given.get("apiVersion", "autoscaling/v1")
    if kind != "Scale":
        reason = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise BadRequest(f'{kind} in version "v1" cannot be handled as a Scale: {reason}')


def _identity(metadata: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Of which object a Scale says to be, in which version."""
    return {name: metadata.get(name) or live["metadata"][name] for name in ("uid", "resourceVersion")}


def _preconditions(call: Call, metadata: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """The same of a patch, which upstream compares itself; of a custom resource it never looks at the uid."""
    found, uid = _identity(metadata, live), live["metadata"]["uid"]
    if found["uid"] != uid and not call.resource.custom:
        text = f"Precondition failed: UID in precondition: {found['uid']}, UID in object meta: {uid}"
        raise conflict(call, text, kind=f"{call.resource.plural}/scale")
    return {**found, "uid": uid}


def checked_replicas(call: Call, scale: dict[str, Any]) -> int:
    """spec.replicas of a Scale. Raises BadRequest or Invalid."""
    replicas = (scale.get("spec") or {}).get("replicas")
    if replicas is None:
        replicas = 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise BadRequest("json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32")
    if replicas < 0 and not call.resource.custom:  # a custom resource is checked as a whole
        error = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid_error("Scale", "autoscaling", call.target.name, [error])
    return replicas


def scale_of(resource: Resource, paths: ScalePaths, obj: dict[str, Any], *, strict: bool = True) -> dict[str, Any]:
    """The Scale that shows `obj`.

    Raises:
        InternalError: `strict`, and a custom resource has no value at the declared path.
    """
    replicas = _get(obj, paths.spec_replicas)
    if replicas is None and resource.custom and strict:
        path = ".".join(paths.spec_replicas)
        raise InternalError(f'the spec replicas field ".{path}" does not exist', reason="")
    status: dict[str, Any] = {"replicas": _get(obj, paths.status_replicas) or 0}
    selector = selector_text(_get(obj, paths.selector)) if paths.selector else ""
    if selector:
        status["selector"] = selector
    metadata = {key: obj["metadata"][key] for key in _META_KEYS if key in obj["metadata"]}
    spec = {"replicas": replicas} if replicas else {}  # Go leaves out a 0 of `omitempty`
    head = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata}
    return {**head, "spec": spec, "status": status}


def _get(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def _set(obj: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *parents, last = path
    for name in parents:
        obj = obj.setdefault(name, {})
    obj[last] = value
