"""Validation of the security contexts of pods and containers, and of what fits an operating system. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kopylite.apiserver.builtin import checks
from kopylite.apiserver.builtin.checks import Errors, Object
from kopylite.apiserver.schema.field_errors import (
    GoStruct,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from kopylite.apiserver.schema.names import subdomain_errors

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL = re.compile("[-_a-z0-9]+(?:[./][-_a-z0-9]+)*")
_SYSCTL_TEXT = (
    "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*"
    "[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_BAD_USER = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_LARGEST_CREDENTIALS = 64 * 1024
_GO_CONTAINER = (
    "Capabilities", "Privileged", "SELinuxOptions", "WindowsOptions", "RunAsUser", "RunAsGroup", "RunAsNonRoot",
    "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation", "ProcMount", "SeccompProfile", "AppArmorProfile",
)  # fmt: skip
# What a pod for Windows may not have, in the contexts of a container and a pod, and in the pod itself.
_LINUX_ONLY = ("appArmorProfile", "seLinuxOptions", "seccompProfile")
_LINUX_CONTAINER = (*_LINUX_ONLY, "capabilities", "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation",
                    "procMount", "runAsUser", "runAsGroup")  # fmt: skip
_LINUX_POD = (*_LINUX_ONLY, "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup",
              "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy")  # fmt: skip
_HOST_PROCESS = "pod hostProcess value must be identical if both are specified, was "


def every_container(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    """The containers of all sorts of a pod, in the server's order, with their paths."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{index}]"


def user_ids(context: Object, path: str, *fields: str) -> Errors:
    return [
        error
        for field in fields
        if context.get(field) is not None
        for error in checks.in_range(f"{path}.{field}", context[field], 0, checks.MAX_INT32)
    ]


def _enum(context: Object, path: str, field: str, *allowed: str) -> Errors:
    value = context.get(field)
    return [] if value is None or value in allowed else [unsupported(f"{path}.{field}", value, allowed)]


def pod_context(spec: Object, path: str) -> Errors:
    context = spec.get("securityContext") or {}
    found = user_ids(context, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        found += checks.in_range(f"{path}.supplementalGroups[{index}]", group, 0, checks.MAX_INT32)
    found += _sysctls(context, spec, f"{path}.sysctls")
    found += _enum(context, path, "fsGroupChangePolicy", "Always", "OnRootMismatch")
    found += _profiles(context, path)
    found += _enum(context, path, "supplementalGroupsPolicy", "Merge", "Strict")
    return found + _enum(context, path, "seLinuxChangePolicy", "MountOption", "Recursive")


def container_context(context: Object | None, path: str, *, host_users: bool) -> Errors:
    if context is None:
        return []
    found = user_ids(context, path, "runAsUser", "runAsGroup")
    mount = context.get("procMount")
    found += _enum(context, path, "procMount", "Default", "Unmasked")
    if mount == "Unmasked" and host_users:
        found.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.get("allowPrivilegeEscalation") is False:
        shown = checks.go_struct({name: context.get(name[:1].lower() + name[1:]) for name in _GO_CONTAINER})
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            found.append(invalid(path, shown, text))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            found.append(invalid(path, shown, text))
    return found + _profiles(context, path)


def _profiles(context: Object, path: str) -> Errors:
    found = _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile")
    found += _windows_options(context.get("windowsOptions"), f"{path}.windowsOptions")
    return found + _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile")


def _seccomp(profile: Object | None, path: str) -> Errors:
    if profile is None:
        return []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    found: Errors = []
    if not kind:
        found.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    else:
        found += checks.one_of(f"{path}.type", kind, _PROFILES)
    where = f"{path}.localhostProfile"
    if kind == "Localhost":
        missing = required(where, "must be set when seccomp type is Localhost")
        found += [missing] if local is None else checks.descending_path(where, local)
    elif local is not None:
        shown = GoStruct({"Type": kind, "LocalhostProfile": local})
        found.append(invalid(where, shown, "can only be set when seccomp type is Localhost"))
    return found


def _app_armor(profile: Object | None, path: str) -> Errors:
    if profile is None:
        return []
    kind, local, where = profile.get("type", ""), profile.get("localhostProfile"), f"{path}.localhostProfile"
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILES:
        return [unsupported(f"{path}.type", kind, _PROFILES)]
    if kind != "Localhost":
        text = "can only be set when AppArmor type is Localhost"
        return [] if local is None else [invalid(where, local, text)]
    if not local:
        return [required(where, "must be set when AppArmor type is Localhost")]
    found: Errors = []
    if local.strip() != local:
        found.append(invalid(where, local, "must not be padded with whitespace"))
    return found + ([too_long(where, 4095)] if len(local.encode()) > 4095 else [])


def _sysctls(context: Object, spec: Object, path: str) -> Errors:
    found: Errors = []
    names: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        where, name = f"{path}[{index}].name", sysctl.get("name", "")
        if not name:
            found.append(required(where))
        elif not _is_sysctl(name):
            found.append(invalid(where, name, _SYSCTL_TEXT))
        elif name in names:
            found.append(duplicate(where, name))
        names.add(name)
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") and plain.startswith("net."):
            found.append(invalid(where, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and plain.startswith(_IPC_SYSCTLS):
            found.append(invalid(where, name, "may not be specified when 'hostIPC' is true"))
    return found


def _is_sysctl(name: str) -> bool:
    if len(name.encode()) > 253 or not _SYSCTL.fullmatch(name):
        return False
    return all(part[0] not in "-_" and part[-1] not in "-_" for part in re.split(r"[./]", name))


def _windows_options(options: Object | None, path: str) -> Errors:
    if options is None:
        return []
    found: Errors = []
    name, credentials = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        found += checks.texts(f"{path}.gmsaCredentialSpecName", name, subdomain_errors(name))
    if credentials == "":
        text = "gmsaCredentialSpec cannot be an empty string"
        found.append(invalid(f"{path}.gmsaCredentialSpec", credentials, text))
    elif credentials is not None and len(credentials.encode()) > _LARGEST_CREDENTIALS:
        text = "gmsaCredentialSpec size must be under 64 KiB"
        found.append(invalid(f"{path}.gmsaCredentialSpec", credentials, text))
    user = options.get("runAsUserName")
    if user is not None:
        found += checks.texts(f"{path}.runAsUserName", user, [f"runAsUserName{t}" for t in _user_problems(user)])
    return found


def _user_problems(name: str) -> list[str]:
    """Why a name is no `DOMAIN\\user` of Windows."""
    if not name:
        return [" cannot be an empty string"]
    if _CONTROL.search(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    found = ["'s Domain length must be under 256 characters"] if len(domain.encode()) >= 256 else []
    if backslash and not _NETBIOS.fullmatch(domain) and subdomain_errors(domain.lower()):
        found.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("'s User cannot be empty")
    elif len(user.encode()) > 104:
        found.append("'s User length must not be longer than 104 characters")
    if user and not user.strip(". "):
        found.append("'s User cannot contain only periods or spaces")
    if _BAD_USER.search(user):
        found.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return found


def host_process(spec: Object, path: str) -> Errors:
    """Host processes of Windows: all containers or none, on the host's network."""
    pod = _host_process(spec)
    found: Errors = []
    listed = list(every_container(spec, path))
    count = 0
    for container, where in listed:
        own = _host_process(container)
        if pod is not None and own is not None and pod != own:
            text = f"{_HOST_PROCESS}{str(pod).lower()}"
            found.append(invalid(f"{where}.securityContext.windowsOptions.hostProcess", own, text))
        count += bool(pod if own is None else own)
    if not count:
        return found
    if count != len(listed):
        text = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        found.append(invalid(path, "", text))
    if not spec.get("hostNetwork"):
        text = "hostNetwork must be true if pod contains any hostProcess containers"
        found.append(invalid(f"{path}.hostNetwork", False, text))
    return found


def _host_process(holder: Object) -> bool | None:
    value: bool | None = ((holder.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    return value


def operating_system(spec: Object, path: str) -> Errors:
    """The system that a pod is for, and that nothing in it is of the other one."""
    system = spec.get("os")
    if system is None:
        return []
    name = system.get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [unsupported(f"{path}.os", name, ("linux", "windows"))]
    contexts: list[tuple[Object | None, str, tuple[str, ...]]] = [
        (spec.get("securityContext"), f"{path}.securityContext", _LINUX_POD)
    ]
    contexts += [
        (container.get("securityContext"), f"{where}.securityContext", _LINUX_CONTAINER)
        for container, where in every_container(spec, path)
    ]
    found: Errors = []
    for context, where, fields in contexts:
        if name == "linux" and (context or {}).get("windowsOptions") is not None:
            found.append(forbidden(f"{where}.windowsOptions", "windows options cannot be set for a linux pod"))
        if name == "windows":
            held = [field for field in fields if (context or {}).get(field) is not None]
            found += [forbidden(f"{where}.{field}", "cannot be set for a windows pod") for field in held]
    if name == "windows":
        held = [f for f in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace") if spec.get(f) is not None]
        found += [forbidden(f"{path}.{field}", "cannot be set for a windows pod") for field in held]
    return found
