"""The static types of what expressions of admission see, as upstream declares them. Pure."""

from __future__ import annotations

from kopylite.apiserver.schema.cel.shapes import DYN, Shape

_TEXT, _INTEGER, _TIME = Shape("string"), Shape("int"), Shape("timestamp")
_TEXTS = Shape("list", element=_TEXT)


def struct(**fields: Shape) -> Shape:
    """An object with these fields and no others."""
    return Shape("object", {name: (name, shape) for name, shape in fields.items()})


_KIND = struct(group=_TEXT, version=_TEXT, kind=_TEXT)
_RESOURCE = struct(group=_TEXT, version=_TEXT, resource=_TEXT)
_USER = struct(username=_TEXT, uid=_TEXT, groups=_TEXTS, extra=Shape("map", element=_TEXTS))
REQUEST = struct(
    kind=_KIND,
    resource=_RESOURCE,
    subResource=_TEXT,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=_TEXT,
    name=_TEXT,
    namespace=_TEXT,
    operation=_TEXT,
    userInfo=_USER,
    dryRun=Shape("bool"),
    options=DYN,
)
_LABELS = Shape("map", element=_TEXT)
_METADATA = struct(
    name=_TEXT,
    generateName=_TEXT,
    namespace=_TEXT,
    labels=_LABELS,
    annotations=_LABELS,
    UID=_TEXT,
    creationTimestamp=_TIME,
    deletionGracePeriodSeconds=_INTEGER,
    deletionTimestamp=_TIME,
    generation=_INTEGER,
    resourceVersion=_TEXT,
    finalizers=_TEXTS,
)
_CONDITION = struct(status=_TEXT, type=_TEXT, lastTransitionTime=_TIME, message=_TEXT, reason=_TEXT)
NAMESPACE = struct(
    metadata=_METADATA,
    spec=struct(finalizers=_TEXTS),
    status=struct(conditions=Shape("list", element=_CONDITION), phase=_TEXT),
)
