"""What each source of a volume needs: one table for pods, one for persistent volumes, in the server's order. Pure.

A source's checks get its object and its path; of several sources in one volume only the first is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.builtin.validation_claims import claim_spec
from kopylite.apiserver.builtin.validation_projected import downward_api, items, projected
from kopylite.apiserver.schema.field_errors import forbidden, invalid, required, unsupported
from kopylite.apiserver.schema.names import label_errors, subdomain_errors
from kopylite.objects.amounts import parse_quantity

SourceCheck = Callable[[Object, str], Errors]

_HOST_PATHS = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+", re.ASCII),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}"),
}
_MANAGED = "{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_DISK_URIS = {
    True: ("/subscriptions/", f"/subscriptions/{_MANAGED}"),
    False: ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
}
_ONE_TYPE = "may not specify more than 1 volume type"


def pod_source(volume: Object, path: str, pod_name: str) -> Errors:
    """The source of a pod's volume. Args: pod_name: "" where it is not known yet."""
    found = _first(volume, path, POD_SOURCES)
    name = volume["name"]
    given = [kind for kind in POD_SOURCES if kind in volume]
    if given[:1] == ["ephemeral"] and pod_name and name:
        claim = f"{pod_name}-{name}"
        found += [invalid(f"{path}.name", name, f'PVC name "{claim}": {text}') for text in subdomain_errors(claim)]
    if "iscsi" in volume:
        found += _initiator_length(volume["iscsi"], name, f"{path}.name", name)
    return found


def persistent_source(spec: Object, path: str, volume_name: str) -> Errors:
    """The source of a persistent volume."""
    found = _first(spec, path, PERSISTENT_SOURCES)
    if not any(kind in spec for kind in PERSISTENT_SOURCES):
        found.append(required(path, "must specify a volume type"))
    if next((kind for kind in PERSISTENT_SOURCES if kind in spec), "") == "iscsi":
        portal = spec["iscsi"].get("targetPortal", "")
        found += _initiator_length(spec["iscsi"], volume_name, f"{path}.iscsi.targetportal", portal)
    if "local" in spec and "nodeAffinity" not in spec:
        found.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    return found


def _first(holder: Object, path: str, sources: Mapping[str, SourceCheck]) -> Errors:
    found: Errors = []
    seen = False
    for kind, check in sources.items():
        if kind not in holder:
            continue
        if seen and not (kind == "flexVolume" and sources is PERSISTENT_SOURCES):
            found.append(forbidden(f"{path}.{_FORBIDDEN.get(kind, kind)}", _ONE_TYPE))
        else:
            found += check(holder[kind], f"{path}.{_SHOWN.get(kind, kind)}")
        seen = True
    return found


# The server's own spelling of a source where it is wrong, and where it is one too many.
_SHOWN = {"gcePersistentDisk": "persistentDisk"}
_FORBIDDEN = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}


def needs(*fields: str) -> SourceCheck:
    """Each of the fields must be there and not empty."""

    def check(source: Object, path: str) -> Errors:
        return [required(f"{path}.{field}") for field in fields if not source.get(field)]

    return check


def _all(*parts: SourceCheck) -> SourceCheck:
    return lambda source, path: [error for part in parts for error in part(source, path)]


def _within(field: str, least: int, most: int) -> SourceCheck:
    return lambda source, path: checks.in_range(f"{path}.{field}", source.get(field) or 0, least, most)


def _reference(field: str, *fields: str) -> SourceCheck:
    """A reference that may be left out, of which the fields are needed."""

    def check(source: Object, path: str) -> Errors:
        return needs(*fields)(source[field], f"{path}.{field}") if source.get(field) is not None else []

    return check


def _empty_dir(source: Object, path: str) -> Errors:
    limit = source.get("sizeLimit")
    if limit is not None and parse_quantity(limit).value < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Object, path: str) -> Errors:
    if not source.get("path"):
        return [required(f"{path}.path")]
    found = checks.no_backsteps(f"{path}.path", source["path"])
    kind = source.get("type") or ""
    return found if kind in _HOST_PATHS else [*found, unsupported(f"{path}.type", kind, _HOST_PATHS)]


def _git(source: Object, path: str) -> Errors:
    return needs("repository")(source, path) + checks.descending_path(f"{path}.directory", source.get("directory", ""))


def _nfs(source: Object, path: str) -> Errors:
    found = needs("server", "path")(source, path)
    if not source.get("path", "").startswith("/"):
        found.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return found


def _initiator(field: str, name: str) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        return [invalid(field, name, "must be valid format starting with iqn, eui, or naa")]
    return [] if pattern.fullmatch(name) else [invalid(field, name, "must be valid format")]


def _iscsi(source: Object, path: str) -> Errors:
    found = needs("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        found += _initiator(f"{path}.iqn", source["iqn"])
    found += _within("lun", 0, 255)(source, path)
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        found.append(required(f"{path}.secretRef"))
    if source.get("initiatorName") is not None:
        found += _initiator(f"{path}.initiatorname", source["initiatorName"])
    return found


def _initiator_length(source: Object, name: str, field: str, shown: str) -> Errors:
    if source.get("initiatorName") is None or len(f"{name}:{source.get('targetPortal', '')}".encode()) <= 64:
        return []
    text = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
        "specified."
    )
    return [invalid(field, shown, text)]


def _persistent_glusterfs(source: Object, path: str) -> Errors:
    found = needs("endpoints", "path")(source, path)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        found.append(invalid(f"{path}.endpointsNamespace", namespace, text))
    return found + checks.optional(label_errors, f"{path}.endpointsNamespace", namespace)


def _flocker(source: Object, path: str) -> Errors:
    name, uid = source.get("datasetName", ""), source.get("datasetUUID", "")
    found: Errors = []
    if not name and not uid:
        found.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and uid:
        found.append(invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
    if "/" in name:
        found.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))
    return found


def _quobyte(source: Object, path: str) -> Errors:
    registry, text = source.get("registry", ""), "must be a host:port pair or multiple pairs separated by commas"
    found: Errors = []
    if not registry:
        found.append(required(f"{path}.registry", text))
    elif len(source.get("tenant", "").encode()) >= 65:
        found.append(required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters"))
    else:
        found += [invalid(f"{path}.registry", registry, text) for pair in registry.split(",") if pair.count(":") != 1]
    return found + needs("volume")(source, path)


def _fibre_channel(source: Object, path: str) -> Errors:
    names, ids, lun = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    found: Errors = []
    if not names and not ids:
        found.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if names and ids:
        text = "targetWWNs and wwids can not be specified simultaneously"
        found.append(invalid(f"{path}.targetWWNs", names, text))
    if names and lun is None:
        found.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
    return found + (checks.in_range(f"{path}.lun", lun, 0, 255) if names and lun is not None else [])


def _flex(source: Object, path: str) -> Errors:
    found = needs("driver")(source, path)
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            found.append(invalid(f"{path}.options[{key}]", key, text))
    return found


def _persistent_azure_file(source: Object, path: str) -> Errors:
    found = needs("secretName", "shareName")(source, path)
    return [*found, required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else found


def _azure_disk(source: Object, path: str) -> Errors:
    found = needs("diskName", "diskURI")(source, path)
    mode, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    if mode is not None and mode not in ("None", "ReadOnly", "ReadWrite"):
        found.append(unsupported(f"{path}.cachingMode", mode, ("None", "ReadOnly", "ReadWrite")))
    if kind is not None and kind not in ("Dedicated", "Managed", "Shared"):
        found.append(unsupported(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared")))
    if kind is not None:
        start, form = _DISK_URIS[kind == "Managed"]
        found += [] if uri.startswith(start) else [unsupported(f"{path}.diskURI", uri, (form,))]
    return found


def _storage_os(*reference: str) -> SourceCheck:
    def check(source: Object, path: str) -> Errors:
        found = checks.label_name(f"{path}.volumeName", source.get("volumeName", ""))
        found += checks.optional(label_errors, f"{path}.volumeNamespace", source.get("volumeNamespace"))
        return found + _reference("secretRef", *reference)(source, path)

    return check


def _csi(source: Object, path: str) -> Errors:
    found = checks.csi_driver_name(f"{path}.driver", source.get("driver", ""))
    if source.get("nodePublishSecretRef") is not None:
        name = source["nodePublishSecretRef"].get("name", "")
        if not name:
            found.append(required(f"{path}.nodePublishSecretRef.name"))
        found += checks.subdomain(f"{path}.name", name)
    return found


def _persistent_csi(source: Object, path: str) -> Errors:
    found = checks.csi_driver_name(f"{path}.driver", source.get("driver", "")) + needs("volumeHandle")(source, path)
    references = (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    )
    for field in references:
        reference, where = source.get(field), f"{path}.{field}"
        if reference is not None:
            found += needs("name")(reference, where) + checks.subdomain(f"{where}.name", reference.get("name"))
            found += checks.label_name(f"{where}.namespace", reference.get("namespace", ""))
    return found


def _local(source: Object, path: str) -> Errors:
    return needs("path")(source, path) + checks.no_backsteps(f"{path}.path", source.get("path", ""))


def _ephemeral(source: Object, path: str) -> Errors:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    where = f"{path}.volumeClaimTemplate"
    found = checks.template_metadata(template.get("metadata") or {}, f"{where}.metadata")
    return found + claim_spec(template.get("spec") or {}, f"{where}.spec")


def _image(source: Object, path: str) -> Errors:
    policy = checks.one_of(f"{path}.pullPolicy", source.get("pullPolicy"), _PULL_POLICIES, needed=True)
    return needs("reference")(source, path) + policy


_DISK = {
    "gcePersistentDisk": _all(needs("pdName"), _within("partition", 0, 255)),
    "awsElasticBlockStore": _all(needs("volumeID"), _within("partition", 0, 255)),
}
_CINDER = partial(_reference, "secretRef")

POD_SOURCES: Mapping[str, SourceCheck] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git,
    **_DISK,
    "secret": _all(needs("secretName"), items),
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": needs("claimName"),
    "rbd": needs("monitors", "image"),
    "cinder": _all(needs("volumeID"), _CINDER("name")),
    "cephfs": needs("monitors"),
    "quobyte": _quobyte,
    "downwardAPI": downward_api,
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "configMap": _all(needs("name"), items),
    "azureFile": needs("secretName", "shareName"),
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os("name"),
    "projected": projected,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
PERSISTENT_SOURCES: Mapping[str, SourceCheck] = {
    "hostPath": _host_path,
    **_DISK,
    "glusterfs": _persistent_glusterfs,
    "flocker": _flocker,
    "nfs": _nfs,
    "rbd": needs("monitors", "image"),
    "quobyte": _quobyte,
    "cephfs": needs("monitors"),
    "iscsi": _all(_iscsi, _reference("secretRef", "name")),
    "cinder": _all(needs("volumeID"), _CINDER("name", "namespace")),
    "fc": _fibre_channel,
    "flexVolume": _flex,
    "azureFile": _persistent_azure_file,
    "vsphereVolume": needs("volumePath"),
    "photonPersistentDisk": needs("pdID"),
    "portworxVolume": needs("volumeID"),
    "azureDisk": _azure_disk,
    "scaleIO": needs("gateway", "system", "volumeName"),
    "local": _local,
    "storageos": _storage_os("name", "namespace"),
    "csi": _persistent_csi,
}
