"""The Pod Security Standards: what the levels baseline and restricted forbid pods, in upstream's words. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kopylite.apiserver.schema.field_errors import go_quote

Object = dict[str, Any]
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_PROFILES = ("RuntimeDefault", "Localhost")
_CAPABILITIES = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
     "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}
)  # fmt: skip
_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
     "secret"}
)  # fmt: skip
# Since which minor a sysctl counts as harmless.
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0,
    "net.ipv4.ip_local_port_range": 0,
    "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0,
    "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29,
    "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29,
    "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
    "net.ipv4.tcp_slow_start_after_idle": 37,
    "net.ipv4.tcp_notsent_lowat": 37,
}
_SELINUX_TYPES = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}


@dataclass(frozen=True, slots=True)
class Violation:
    """Why a pod breaks a standard: the reason in short, and the details."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod or the template of one, under the standards of a Kubernetes minor."""

    annotations: Object
    spec: Object
    minor: int

    def containers(self) -> Iterator[Object]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from self.spec.get(field) or ()

    def contexts(self) -> Iterator[tuple[str, Object]]:
        for container in self.containers():
            yield container["name"], container.get("securityContext") or {}

    @property
    def context(self) -> Object:
        return self.spec.get("securityContext") or {}

    @property
    def windows(self) -> bool:
        return self.minor >= 25 and (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def relaxed(self) -> bool:
        """Pods in user namespaces may do more."""
        return self.minor >= 35 and self.spec.get("hostUsers") is False


PodCheck = Callable[[Pod], Violation | None]


def violations(level: str, minor: int, annotations: Object | None, spec: Object) -> list[Violation]:
    """What of a pod the level forbids; in upstream's order.

    Args:
        minor: the version of the standards.
    """
    if level == PRIVILEGED:
        return []
    checks = _BASELINE
    if level == RESTRICTED:
        replaced = {_capabilities, _host_paths, _seccomp, *([_proc_mount] if minor >= 35 else [])}
        checks = tuple(check for check in _BASELINE if check not in replaced)
        checks += tuple(check for check in _RESTRICTED if check is not _any_proc_mount or minor >= 35)
    pod = Pod(annotations or {}, spec, minor)
    return [found for check in checks if (found := check(pod)) is not None]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _some(singular: str, names: Iterable[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    listed = list(names)
    return f"{singular if len(listed) == 1 else singular + 's'} {_names(listed)}"


def _setters(pod: bool, containers: list[str]) -> str:
    """Who sets a value: the pod, its containers, or both."""
    return " and ".join([*(["pod"] if pod else []), *([_some("container", containers)] if containers else [])])


def _app_armor(pod: Pod) -> Violation | None:
    allowed = ("", *_PROFILES)
    values: set[str] = set()
    containers = []
    own = (pod.context.get("appArmorProfile") or {}).get("type", "")
    for name, context in pod.contexts():
        kind = (context.get("appArmorProfile") or {}).get("type", "")
        if kind not in allowed:
            containers.append(name)
            values.add(kind)
    values |= set() if own in allowed else {own}
    setters = _setters(own not in allowed, containers)
    annotations = [
        f"{key}={go_quote(value)}"
        for key, value in sorted(pod.annotations.items())
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    ]
    listed = [*sorted(values), *annotations]
    if annotations:
        setters = " and ".join(
            [*([setters] if setters else []), "annotation" if len(annotations) == 1 else "annotations"]
        )
    if not setters:
        return None
    reason = "forbidden AppArmor profile" if len(listed) == 1 else "forbidden AppArmor profiles"
    return Violation(reason, f"{setters} must not set AppArmor profile type to {_names(listed)}")


def _capabilities(pod: Pod) -> Violation | None:
    containers, added = [], set()
    for name, context in pod.contexts():
        odd = set((context.get("capabilities") or {}).get("add") or ()) - _CAPABILITIES
        if odd:
            containers.append(name)
            added |= odd
    if not containers:
        return None
    text = (
        f"{_some('container', containers)} must not include {_names(sorted(added))} in securityContext.capabilities.add"
    )
    return Violation("non-default capabilities", text)


def _host_namespaces(pod: Pod) -> Violation | None:
    used = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_paths(pod: Pod) -> Violation | None:
    names = [volume["name"] for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", _some("volume", names)) if names else None


def _host_ports(pod: Pod) -> Violation | None:
    containers, ports = [], set()
    for container in pod.containers():
        used = {str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")}
        if used:
            containers.append(container["name"])
            ports |= used
    if not containers:
        return None
    verb, noun = "uses" if len(containers) == 1 else "use", "hostPort" if len(ports) == 1 else "hostPorts"
    return Violation("hostPort", f"{_some('container', containers)} {verb} {noun} {', '.join(sorted(ports))}")


def _probe_hosts(pod: Pod) -> Violation | None:
    if pod.minor < 34:
        return None
    names: set[str] = set()
    hosts: set[str] = set()
    for container in pod.containers():
        lifecycle = container.get("lifecycle") or {}
        probes = [container.get(f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        for handler in (*probes, lifecycle.get("postStart"), lifecycle.get("preStop")):
            for action in ("httpGet", "tcpSocket"):
                host = ((handler or {}).get(action) or {}).get("host")
                if host:
                    names.add(container["name"])
                    hosts.add(host)
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    text = f"{_some('container', sorted(names))} {verb} {_some('probe or lifecycle host', sorted(hosts))}"
    return Violation("probe or lifecycle host", text)


def _privileged(pod: Pod) -> Violation | None:
    names = [name for name, context in pod.contexts() if context.get("privileged")]
    text = f"{_some('container', names)} must not set securityContext.privileged=true"
    return Violation("privileged", text) if names else None


def _proc_mount(pod: Pod) -> Violation | None:
    return None if pod.relaxed else _any_proc_mount(pod)


def _any_proc_mount(pod: Pod) -> Violation | None:
    mounts = {name: context["procMount"] for name, context in pod.contexts() if context.get("procMount") is not None}
    odd = {name: mount for name, mount in mounts.items() if mount != "Default"}
    if not odd:
        return None
    kinds = _names(sorted(set(odd.values())))
    return Violation("procMount", f"{_some('container', odd)} must not set securityContext.procMount to {kinds}")


def _se_linux(pod: Pod) -> Violation | None:
    types: set[str] = set()
    user = role = False
    setters = []
    for name, context in [("", pod.context), *pod.contexts()]:
        options = context.get("seLinuxOptions")
        if options is None:
            continue
        kind = options.get("type", "")
        odd_type = _SELINUX_TYPES.get(kind, pod.minor + 1) > pod.minor
        types |= {kind} if odd_type else set()
        user, role = user or bool(options.get("user")), role or bool(options.get("role"))
        if odd_type or options.get("user") or options.get("role"):
            setters.append(name)
    if not setters:
        return None
    data = [_some("type", sorted(types))] if types else []
    data += [f"{field} may not be set" for field, given in (("user", user), ("role", role)) if given]
    who = _setters("" in setters, [name for name in setters if name])
    return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}")


def _odd_seccomp(pod: Pod) -> Violation | None:
    """A profile that is set and not allowed."""
    own = (pod.context.get("seccompProfile") or {}).get("type")
    values = {own} if own is not None and own not in _PROFILES else set()
    odd_pod, containers = bool(values), []
    for name, context in pod.contexts():
        kind = (context.get("seccompProfile") or {}).get("type")
        if kind is not None and kind not in _PROFILES:
            containers.append(name)
            values.add(kind)
    if not values:
        return None
    who, shown = _setters(odd_pod, containers), _names(sorted(values))
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {shown}")


def _seccomp(pod: Pod) -> Violation | None:
    return _odd_seccomp(pod)


def _sysctls(pod: Pod) -> Violation | None:
    names = [sysctl["name"] for sysctl in pod.context.get("sysctls") or ()]
    odd = [name for name in names if _SYSCTLS.get(name, pod.minor + 1) > pod.minor]
    return Violation("forbidden sysctls", ", ".join(odd)) if odd else None


def _host_process(pod: Pod) -> Violation | None:
    own = bool((pod.context.get("windowsOptions") or {}).get("hostProcess"))
    names = [name for name, c in pod.contexts() if (c.get("windowsOptions") or {}).get("hostProcess")]
    text = f"{_setters(own, names)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", text) if own or names else None


def _escalation(pod: Pod) -> Violation | None:
    if pod.minor < 8 or pod.windows:
        return None
    names = [name for name, context in pod.contexts() if context.get("allowPrivilegeEscalation") is not False]
    text = f"{_some('container', names)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", text) if names else None


def _dropped_capabilities(pod: Pod) -> Violation | None:
    if pod.minor < 22:
        return _capabilities(pod)
    if pod.windows:
        return None
    keeping, adding, added = [], [], set()
    for name, context in pod.contexts():
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        odd = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        if odd:
            adding.append(name)
            added |= odd
    details = []
    if keeping:
        details.append(f'{_some("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        shown = _names(sorted(added))
        details.append(f"{_some('container', adding)} must not include {shown} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _volume_types(pod: Pod) -> Violation | None:
    names, kinds = [], set()
    for volume in pod.spec.get("volumes") or ():
        sources = [field for field, value in volume.items() if field != "name" and value is not None]
        if _VOLUMES.isdisjoint(sources):
            names.append(volume["name"])
            kinds.add(sources[0] if sources else "unknown")
    if not names:
        return None
    verb = "uses" if len(names) == 1 else "use"
    text = f"{_some('volume', names)} {verb} {_some('restricted volume type', sorted(kinds))}"
    return Violation("restricted volume types", text)


def _non_root(pod: Pod) -> Violation | None:
    if pod.relaxed:
        return None
    own = pod.context.get("runAsNonRoot")
    contexts = [(name, context.get("runAsNonRoot")) for name, context in pod.contexts()]
    odd = [name for name, value in contexts if value is False]
    if own is False or odd:
        text = f"{_setters(own is False, odd)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", text)
    unset = [name for name, value in contexts if value is None and not own]
    text = f"pod or {_some('container', unset)} must set securityContext.runAsNonRoot=true"
    return Violation("runAsNonRoot != true", text) if unset else None


def _root_user(pod: Pod) -> Violation | None:
    if pod.minor < 23 or pod.relaxed:
        return None
    own = pod.context.get("runAsUser") == 0
    odd = [name for name, context in pod.contexts() if context.get("runAsUser") == 0]
    return Violation("runAsUser=0", f"{_setters(own, odd)} must not set runAsUser=0") if own or odd else None


def _needed_seccomp(pod: Pod) -> Violation | None:
    if pod.minor < 19 or pod.windows:
        return None
    odd = _odd_seccomp(pod)
    if odd is not None:
        return odd
    if pod.context.get("seccompProfile"):
        return None
    unset = [name for name, context in pod.contexts() if not context.get("seccompProfile")]
    text = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", f"pod or {_some('container', unset)} {text}") if unset else None


# In the order of upstream's names of the checks.
_BASELINE: tuple[PodCheck, ...] = (
    _app_armor, _capabilities, _host_namespaces, _host_paths, _host_ports, _probe_hosts, _privileged, _proc_mount,
    _se_linux, _seccomp, _sysctls, _host_process,
)  # fmt: skip
_RESTRICTED: tuple[PodCheck, ...] = (
    _escalation, _dropped_capabilities, _any_proc_mount, _volume_types, _non_root, _root_user, _needed_seccomp,
)  # fmt: skip
