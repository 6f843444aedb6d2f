"""ProjectNames: what a new project calls its package, kind and group, all of one name. Pure.

Each is checked by the rule of whoever reads it: Python, the API server, or the files of the project.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys
import unicodedata
from dataclasses import dataclass

from kopylite.boundary import show
from kopylite.errors import UsageError
from kopylite.objects.resource import plural_of

DEFAULT_GROUP = "example.com"
# Names of pods, Services and Leases are made of it, of which none has more than 63 characters.
LONGEST = 40
LONGEST_KIND = 40
# The name of a CRD, the plural and the group, has 253.
LONGEST_GROUP = 253 - LONGEST_KIND - len("es.")

_NAME = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
# What a package of that name would hide: the project's own folders, kopylite, and what both import.
TAKEN_PACKAGES = frozenset(
    {
        "aiohappyeyeballs", "aiohttp", "aiosignal", "annotated_types", "anyio", "ast_serialize", "attr", "attrs",
        "certifi", "cffi", "cryptography", "dateutil", "deploy", "frozenlist", "hatchling", "httptools", "idna",
        "iniconfig", "kopylite", "kubernetes_asyncio", "librt", "msgspec", "multidict", "mypy", "mypy_extensions",
        "mypyc", "packaging", "pathspec", "pip", "pluggy", "prometheus_client", "propcache", "py", "pycparser",
        "pydantic", "pydantic_core", "pygments", "pytest", "re2", "ruff", "setuptools", "six", "tests",
        "typing_extensions", "typing_inspection", "tzdata", "urllib3", "uvloop", "wheels", "yaml", "yarl",
    }
)  # fmt: skip
# What the project's modules import, so that a class of that name would hide it.
TAKEN_KINDS = frozenset(
    {
        "Any", "App", "BaseModel", "Context", "CustomResource", "DEPLOYMENT", "EmbeddedCluster", "EnvTest", "Field",
        "Invalid", "Iterator", "Kind", "OperatorRunner", "PrinterColumn", "Request", "Rule", "Unstructured",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """The names of a project.

    Attributes:
        name: of the App, its Namespace and its image: "web-cache".
        package: of its Python package: "web_cache".
        kind: of its resource: "WebCache".
        plural: of that, in URLs: "webcaches".
        group: of its API: "example.com".
    """

    name: str
    package: str
    kind: str
    plural: str
    group: str


def names_of(name: str, kind: str = "", group: str = "") -> ProjectNames:
    """The names that follow from one.

    Args:
        kind: "": the name in capitals, WebCache for web-cache.
        group: "": example.com.

    Raises:
        UsageError: one of them is none; says the rule, and a name near it that is one.
    """
    if problem := _wrong_name(name):
        near = _near(name)
        raise UsageError(f"the name {show(name)} {problem}" + (f"; try {near}" if near else ""))
    kind = kind or _kind_of(name)
    if problem := _wrong_kind(kind):
        raise UsageError(f"the kind {show(kind)} {problem}; name another by --kind, such as --kind MyApp")
    group = group or DEFAULT_GROUP
    if problem := _wrong_group(group):
        raise UsageError(f"the group {show(group)} {problem}; name a domain of yours, such as --group apps.example.com")
    return ProjectNames(name, _package(name), kind, plural_of(kind), group)


def _wrong_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        return "is none: lower-case letters, digits and inner dashes, beginning with a letter"
    if len(name) > LONGEST:
        return f"has {len(name)} characters: names of pods and Services are made of it, and {LONGEST} are the most"
    package = _package(name)
    if keyword.iskeyword(package) or keyword.issoftkeyword(package):
        return "is a word of Python's own, and no name of a package"
    if package in sys.stdlib_module_names or package == "test":
        return f"is that of the module {package!r} of Python's standard library, which the package would hide"
    if package in TAKEN_PACKAGES:
        return f"is taken: a package {package!r} would hide one that the project needs"
    if name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        return "is that of a namespace that each cluster has, and the operator gets a namespace of its name"
    return ""


def _near(name: str) -> str:
    """A name that is allowed, and looks like this one; "" if there is none."""
    plain = unicodedata.normalize("NFKD", name[:1000]).encode("ascii", "ignore").decode()
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", plain)
    near = "-".join(words).lower().lstrip("0123456789-")[:LONGEST].rstrip("-")
    for found in (near, f"{near[: LONGEST - 9]}-operator"):
        if near and not _wrong_name(found) and not _wrong_kind(_kind_of(found)):
            return found
    return ""


def _kind_of(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _wrong_kind(kind: str) -> str:
    if not _KIND.fullmatch(kind):
        return "is none: letters and digits, beginning with a capital"
    if len(kind) > LONGEST_KIND:
        return f"has {len(kind)} characters, and {LONGEST_KIND} are the most"
    if keyword.iskeyword(kind) or hasattr(builtins, kind) or kind in TAKEN_KINDS:
        return "is a name that the Python of the project has already"
    return ""


def _wrong_group(group: str) -> str:
    if not _GROUP.fullmatch(group):
        return "is none: a domain name in lower case, with a dot in it"
    if len(group) > LONGEST_GROUP:
        return f"has {len(group)} characters, and {LONGEST_GROUP} are the most"
    if group.endswith((".k8s.io", ".kubernetes.io")) or group in ("k8s.io", "kubernetes.io"):
        return "is Kubernetes' own: the API server takes no CRDs in it without an approval"
    return ""


def _package(name: str) -> str:
    return name.replace("-", "_")
