"""CustomResourceDefinitions: from CustomResource classes to what `kubectl apply` takes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kopylite.crds.schema import Schema, schema_of
from kopylite.errors import RegistrationError
from kopylite.objects.kinds import GroupKind
from kopylite.objects.resource import CustomResource, Declaration

ResourceClass = type[CustomResource[Any, Any]]

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
# The CRD says these once for all versions of a kind: the stored version's class does, the others repeat or omit them.
_SHARED = ("plural", "singular", "list_kind", "scope", "short_names", "categories", "annotations")


def crd_of(*versions: ResourceClass) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind, from one class a version.

    Raises:
        RegistrationError: the classes do not fit together, not exactly one is stored, or a field cannot be
            expressed in a CRD.
    """
    declared = sorted(((_declaration(cls), cls) for cls in versions), key=lambda pair: _age(pair[0].version))
    first = _stored([declaration for declaration, _ in declared])
    names: dict[str, Any] = {
        "kind": first.kind,
        "listKind": first.list_kind,
        "plural": first.plural,
        "singular": first.singular,
    }
    if first.short_names:
        names["shortNames"] = list(first.short_names)
    if first.categories:
        names["categories"] = list(first.categories)
    metadata: dict[str, Any] = {"name": f"{first.plural}.{first.group}"}
    if first.annotations:
        metadata["annotations"] = dict(first.annotations)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": first.group,
            "names": names,
            "scope": first.scope,
            "versions": [_version(declaration, cls) for declaration, cls in declared],
        },
    }


def crds_of(classes: Iterable[ResourceClass]) -> list[dict[str, Any]]:
    """One CustomResourceDefinition for each kind among the classes, by name."""
    by_kind: dict[GroupKind, list[ResourceClass]] = {}
    for cls in dict.fromkeys(classes):
        declaration = _declaration(cls)
        by_kind.setdefault(GroupKind(declaration.group, declaration.kind), []).append(cls)
    return sorted((crd_of(*versions) for versions in by_kind.values()), key=lambda crd: str(crd["metadata"]["name"]))


def version_schema(cls: ResourceClass) -> Schema:
    """The `openAPIV3Schema` of the version that a class declares.

    Raises:
        RegistrationError: the class declares none, or a field cannot be expressed in a CRD.
    """
    return _object_schema(cls, _declaration(cls))


def _declaration(cls: ResourceClass) -> Declaration:
    if cls.declaration is None:
        raise RegistrationError(f"{cls.__name__} is no kind yet: add group= and version=")
    return cls.declaration


def _stored(declared: list[Declaration]) -> Declaration:
    """The declaration of the stored version, after a check that all fit together."""
    first = declared[0]
    names = [declaration.version for declaration in declared]
    if len(set(names)) < len(names):
        raise RegistrationError(
            f"{first.kind}.{first.group}: two classes declare the same version ({', '.join(names)})"
        )
    stored = [declaration for declaration in declared if declaration.storage]
    if len(stored) != 1:
        raise RegistrationError(
            f"{first.kind}.{first.group}: exactly one version is stored, not {len(stored)} "
            f"({', '.join(entry.version for entry in stored) or 'none'}): say storage=False for the others"
        )
    for declaration in declared:
        for name in _SHARED:
            value, expected = getattr(declaration, name), getattr(stored[0], name)
            if value and value != expected:
                raise RegistrationError(
                    f"{first.kind}.{first.group}: version {declaration.version} says {name}={value!r}, "
                    f"but the stored version {stored[0].version} says {expected!r}"
                )
    return stored[0]


def _age(version: str) -> tuple[int, int, int, str]:
    """Sort key: the version that clients should prefer comes first, as the API server orders them."""
    match = _VERSION.fullmatch(version)
    if not match:
        return 3, 0, 0, version
    major, stage, minor = match.groups()
    return {None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version


def _version(declaration: Declaration, cls: ResourceClass) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": declaration.version,
        "served": declaration.served,
        "storage": declaration.storage,
    }
    if declaration.deprecated:
        version["deprecated"] = True
        if isinstance(declaration.deprecated, str):
            version["deprecationWarning"] = declaration.deprecated
    schema = _object_schema(cls, declaration)
    version["schema"] = {"openAPIV3Schema": schema}
    subresources: dict[str, Any] = {}
    wanted = declaration.status_subresource
    if "status" in schema["properties"] if wanted is None else wanted:
        subresources["status"] = {}
    if scale := declaration.scale:
        subresources["scale"] = {"specReplicasPath": scale.spec_replicas, "statusReplicasPath": scale.status_replicas}
        if scale.label_selector:
            subresources["scale"]["labelSelectorPath"] = scale.label_selector
    if subresources:
        version["subresources"] = subresources
    if declaration.columns:
        version["additionalPrinterColumns"] = [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            | {key: value for key in ("format", "description", "priority") if (value := getattr(column, key))}
            for column in declaration.columns
        ]
    if declaration.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in declaration.selectable_fields]
    return version


def _object_schema(cls: ResourceClass, declaration: Declaration) -> Schema:
    schema = schema_of(cls)
    properties = schema["properties"]
    text = {"type": "string"}
    shaped: Schema = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}}
    for name, part in properties.items():
        if name in shaped:
            continue
        # Of a status that nobody has written yet, the server shall not make one up.
        shaped[name] = _without_defaults(part) if name == "status" else part
    for name in ("spec", "status"):
        if cls.model_fields[name].annotation in (None, type(None)):
            shaped.pop(name, None)
    result: Schema = {key: schema[key] for key in ("description",) if key in schema}
    result |= {"type": "object", "properties": shaped}
    if required := [name for name in schema.get("required", ()) if name in shaped]:
        result["required"] = required
    result |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    if declaration.rules:
        result["x-kubernetes-validations"] = [rule.to_dict() for rule in declaration.rules]
    return result


def _without_defaults(schema: Schema) -> Schema:
    result = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in result:
        result["properties"] = {name: _without_defaults(part) for name, part in result["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(result.get(inner), dict):
            result[inner] = _without_defaults(result[inner])
    return result
