"""The structure is under test: who imports whom, who may touch which dependency, what is pure, what is big."""

from __future__ import annotations

import ast
import functools
import gc
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent.parent / "kopylite"

# Left never imports right. Rooms of one set ignore each other.
LAYERS: list[set[str]] = [
    {"lazily", "troubleshooting"},
    {"boundary", "redaction"},
    {"errors", "clock", "observers"},
    {"wholefiles"},
    {"checks"},
    {"workqueue", "objects"},
    {"crds"},
    {"client", "serving", "codegen", "starter"},
    {"cache", "reconcile", "leaderelection"},
    {"triggers", "webhooks"},
    {"controller"},
    {"lifecycle"},
    {"collectors"},
    {"registry"},
    {"metrics", "diagnostics"},
    {"manager", "supervision"},
    {"app"},
    {"deploy"},
    {"doctor"},
    {"migration"},
    {"devcluster"},
    {"testing"},
    {"sweep"},
    {"cli"},
]
# Rooms aside from the ladder: they import only what is named here.
ASIDE = {"apiserver": {"boundary", "errors", "objects", "clock", "serving"}}
# Who may import a room from aside (lazily, for --dev and for tests).
ASIDE_USERS = {"cli", "devcluster", "sweep", "testing"}

# The rooms of the embedded server, the same way: the first knows nobody, the last joins them all.
APISERVER_LAYERS: list[set[str]] = [
    {"schema", "storage", "depth", "slices"},
    {"aside"},
    {"request", "patching"},
    {"resources"},
    {"printers", "builtin"},
    {"world"},
    {"reads", "outbound"},
    {"writes"},
    {"deletion", "admission"},
    {"access", "crd", "endpoints"},
    {"openapi", "core"},
    {"bootstrap", "controllers"},
    {"assembly", "front"},
    {"server", "gateway"},
]

DOORS = {
    "kubernetes_asyncio": {"objects/models.py", "apiserver/builtin/descriptions.py"},
    "aiohttp": {"serving/", "apiserver/"},
    "httptools": {"client/wire.py"},
    "aiohappyeyeballs": {"client/dialing.py"},
    "prometheus_client": {"metrics.py", "collectors.py", "registry.py"},
    "yaml": {"objects/yamlread.py", "objects/yamlwrite.py"},
    "re2": {"apiserver/schema/regex.py"},
    "time": {"clock.py", "sweep/clocks.py"},
    "python_socks": {"client/socks.py"},
    "random": {"clock.py", "sweep/clocks.py"},
    "sqlite3": {"apiserver/storage/"},
    "secrets": {"clock.py", "apiserver/"},
}  # fmt: skip

PURE = {
    "troubleshooting.py",
    "errors.py", "observers.py", "checks.py", "objects/", "crds/", "codegen/", "client/fields.py", "client/verbs.py",
    "client/patches.py", "client/overlay.py",
    "client/changes.py", "client/addresses.py", "client/paths.py", "client/selecting.py", "cache/watchstate.py",
    "triggers/annotated.py", "triggers/events.py", "triggers/predicates.py", "triggers/objectpredicates.py",
    "workqueue/state.py", "workqueue/delays.py",
    "workqueue/ratelimiters.py", "reconcile/request.py", "reconcile/chains.py", "reconcile/conditions.py",
    "reconcile/owners.py", "leaderelection/settings.py", "leaderelection/lease.py", "leaderelection/candidate.py",
    "controller/spec.py", "controller/timers.py", "lifecycle/spec.py", "lifecycle/declarations.py",
    "reconcile/state.py", "controller/outcome.py", "serving/probes.py", "serving/routes.py", "serving/address.py",
    "diagnostics/hotloop.py", "redaction/", "manager/options.py", "manager/scope.py", "manager/health.py", "app.py",
    "sweep/plans.py", "sweep/trace.py", "sweep/states.py", "sweep/oracles.py", "sweep/findings.py", "sweep/report.py",
    "sweep/specs.py",
    "supervision/restarts.py", "supervision/exposition.py",
    "starter/naming.py", "deploy/calls.py", "deploy/needs.py", "deploy/rules.py", "deploy/hooks.py",
    "deploy/manifests.py", "deploy/chart.py",
    "apiserver/schema/", "apiserver/patching/", "apiserver/builtin/", "apiserver/printers/", "apiserver/resources/",
    "apiserver/request/", "apiserver/openapi/", "apiserver/crd/columns.py", "apiserver/crd/custom_resources.py",
    "apiserver/crd/definitions.py", "apiserver/crd/validation.py", "apiserver/admission/quota_usage.py",
    "webhooks/edits.py", "webhooks/reviews.py", "webhooks/specs.py", "webhooks/conversion.py",
    "webhooks/configurations.py",
    "doctor/findings.py", "doctor/wire.py", "doctor/report.py", "doctor/access.py", "doctor/certificates.py",
    "doctor/versions.py", "doctor/definitions.py", "doctor/rights.py", "doctor/leases.py", "doctor/deletions.py",
    "doctor/ownership.py", "doctor/hooks.py", "doctor/servers.py", "doctor/workload.py",
    "migration/advice.py", "migration/arguments.py", "migration/constants.py", "migration/converter.py",
    "migration/declarations.py", "migration/filters.py", "migration/report.py", "migration/rewriting.py",
    "migration/selectors.py", "migration/sources.py", "migration/traces.py", "migration/vocabulary.py",
    "migration/wiring.py",
}  # fmt: skip
IMPURE_EXCEPTIONS = {"objects/models.py", "apiserver/builtin/descriptions.py", "apiserver/builtin/data.py"}
IMPURE_MODULES = {
    "asyncio",
    "anyio",
    "aiohttp",
    "socket",
    "ssl",
    "time",
    "random",
    "os",
    "threading",
    "subprocess",
}

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 50
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base", "types", "misc"}


def for_each(paths: Callable[[], list[Path]]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test for all modules, which tells every one that breaks the rule: a test each were thousands to collect."""

    def of_all(rule: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            broken = []
            for path in paths():
                try:
                    rule(path)
                except AssertionError as error:
                    broken.append(f"{relative(path)}: {str(error).splitlines()[0]}")
            if broken:
                pytest.fail("\n".join(broken), pytrace=False)

        test.__name__, test.__doc__ = rule.__name__, rule.__doc__
        return test

    return of_all


@functools.cache
def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@functools.cache
def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


@functools.cache
def in_type_checking(path: Path) -> set[int]:
    """ids of the nodes that only a type checker sees."""
    hidden: set[int] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            hidden.update(id(inner) for inner in ast.walk(node))
    return hidden


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """The trees are as many objects as all else together: no look for garbage goes through them, here or later."""
    gc.disable()
    yield
    for cached in (tree_of, nodes_of, in_type_checking):
        cached.cache_clear()
    gc.enable()


@functools.cache
def imports_of(path: Path) -> tuple[str, ...]:
    return tuple(_imports_of(path))


def _imports_of(path: Path) -> Iterator[str]:
    hidden = in_type_checking(path)
    package = ["kopylite", *path.relative_to(PACKAGE).parts[:-1]]
    for node in nodes_of(path):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            prefix = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            module = f"{prefix}{node.module or ''}".strip(".")
            yield module
            if module == "kopylite":
                yield from (f"kopylite.{alias.name}" for alias in node.names)


def rank(room: str) -> int:
    for index, layer in enumerate(LAYERS):
        if room in layer:
            return index
    raise AssertionError(f"room {room!r} has no place in LAYERS")


def apiserver_rank(room: str) -> int:
    for index, layer in enumerate(APISERVER_LAYERS):
        if room in layer:
            return index
    raise AssertionError(f"room {room!r} has no place in APISERVER_LAYERS")


@for_each(modules)
def test_a_room_imports_only_rooms_below_it(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for name in imports_of(path):
        if not name.startswith("kopylite."):
            continue
        other = name.split(".")[1]
        if other == room or not other.islower():
            continue
        if room in ASIDE:
            assert other in ASIDE[room], f"{relative(path)} imports {other}"
        elif other in ASIDE:
            assert room in ASIDE_USERS, f"{relative(path)} imports {other}"
        else:
            assert rank(other) < rank(room), f"{relative(path)} ({room}) imports {other}"


def apiserver_modules() -> list[Path]:
    return [path for path in modules() if room_of(path) == "apiserver" and path != PACKAGE / "apiserver/__init__.py"]


@for_each(apiserver_modules)
def test_a_room_of_the_embedded_server_imports_only_rooms_below_it(path: Path) -> None:
    room = path.relative_to(PACKAGE / "apiserver").parts[0].removesuffix(".py")
    for name in imports_of(path):
        if not name.startswith("kopylite.apiserver."):
            continue
        other = name.split(".")[2]
        if other != room:
            assert apiserver_rank(other) < apiserver_rank(room), f"{relative(path)} ({room}) imports {other}"


@for_each(modules)
def test_each_dependency_has_one_door(path: Path) -> None:
    name = relative(path)
    for imported in imports_of(path):
        doors = DOORS.get(imported.split(".")[0])
        if doors is not None:
            assert any(name == door or (door.endswith("/") and name.startswith(door)) for door in doors), (
                f"{name} imports {imported}; its doors are {sorted(doors)}"
            )


def pure_modules() -> list[Path]:
    return [
        path
        for path in modules()
        if relative(path) not in IMPURE_EXCEPTIONS
        and any(relative(path) == p or (p.endswith("/") and relative(path).startswith(p)) for p in PURE)
    ]


@for_each(pure_modules)
def test_a_pure_module_has_no_await_no_clock_and_no_io(path: Path) -> None:
    for node in nodes_of(path):
        assert not isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)), f"line {getattr(node, 'lineno', 0)}"
    impure = {name.split(".")[0] for name in imports_of(path)} & IMPURE_MODULES
    assert not impure, f"{relative(path)} imports {sorted(impure)}"


@for_each(modules)
def test_modules_and_functions_stay_small(path: Path) -> None:
    assert path.stem not in FORBIDDEN_NAMES, f"{relative(path)}: name it after what it holds"
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_MODULE_LINES, f"{relative(path)} has {lines} lines"
    for node in nodes_of(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            size = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node):
                size -= len((ast.get_docstring(node) or "").splitlines()) + 1
            assert size <= MAX_FUNCTION_LINES, f"{relative(path)}:{node.lineno} {node.name} has {size} lines"


# Names that stand for the same in each room that has them.
SHARED_NAMES = {
    **dict.fromkeys(("Object", "Schema", "Crd"), "a dict of JSON; the name says what it is about"),
    "KindLike": "what names a kind: of a known type where that is returned, of any where an App takes it",
}


def public_names(path: Path) -> Iterator[str]:
    """The classes of a module and its aliases of types, without those for its own use."""
    for node in tree_of(path).body:
        name = ""
        if isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and not ast.unparse(node.value).startswith(("TypeVar(", "ParamSpec(")):
                name = target.id
        if name[:1].isupper() and not name.isupper():
            yield name


def test_a_name_of_a_class_means_one_thing() -> None:
    """What two rooms call by one name, readers and stack traces mix up."""
    homes: dict[str, list[str]] = {}
    for path in modules():
        for name in public_names(path):
            homes.setdefault(name, []).append(relative(path))
    repeated = {name: found for name, found in homes.items() if len(found) > 1}
    assert repeated.keys() == SHARED_NAMES.keys(), repeated


@for_each(modules)
def test_a_logger_of_a_module_is_called_logger(path: Path) -> None:
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("logging.getLogger("):
            assert ast.unparse(node.targets[0]) == "logger", f"{relative(path)}:{node.lineno}"


@functools.cache
def module_names() -> set[str]:
    return {module_name(path) for path in modules()}


def module_name(path: Path) -> str:
    parts = ["kopylite", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def top_level_imports(path: Path) -> set[str]:
    tree = tree_of(path)
    hidden = in_type_checking(path)
    found: set[str] = set()
    for node in tree.body:
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found & module_names()


def test_there_are_no_import_cycles() -> None:
    graph = {module_name(path): top_level_imports(path) for path in modules() if path.name != "__init__.py"}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for other in graph.get(name, ()):
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


@for_each(modules)
def test_tasks_are_born_only_in_task_groups(path: Path) -> None:
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            if getattr(node.func, "attr", getattr(node.func, "id", "")) not in ("create_task", "ensure_future"):
                continue
            called = ast.unparse(node.func)
            assert not called.endswith(("asyncio.create_task", "ensure_future")), f"{relative(path)}:{node.lineno}"
            assert called != "loop.create_task", f"{relative(path)}:{node.lineno}"


# Who may import what comes with an extra only. Outside of these rooms it has to be there for everybody.
EXTRAS = {
    "dev": {"apiserver/", "serving/authority.py"},
    "webhooks": {"serving/authority.py"},
    "fast": {"cli/run.py"},
    "socks": {"client/socks.py"},
}
# Loaded by pytest itself; hypothesis where it is there.
IMPORTS_OF_HOSTS = {
    ("testing/plugin.py", "pytest"), ("testing/examples.py", "hypothesis"), ("testing/conversions.py", "hypothesis"),
    ("sweep/plugin.py", "pytest"),
}  # fmt: skip


@functools.cache
def project_table() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    return table


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """By the name that is imported: what is installed under which names."""
    return packages_distributions()


def distribution(requirement: str) -> str:
    """The normal form of a requirement's name."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\s<>=!~;\[]", requirement)[0]).lower()


@for_each(modules)
def test_what_is_imported_is_declared(path: Path) -> None:
    project = project_table()
    declared = {distribution(requirement) for requirement in project["dependencies"]}
    for extra, requirements in project["optional-dependencies"].items():
        if any(
            relative(path) == door or (door.endswith("/") and relative(path).startswith(door)) for door in EXTRAS[extra]
        ):
            declared |= {distribution(requirement) for requirement in requirements}
    names = {name.split(".")[0] for name in imports_of(path)} - {"kopylite"} - set(sys.stdlib_module_names)
    for name in names:
        found = {distribution(one) for one in distributions().get(name, [name])}
        assert found & declared or (relative(path), name) in IMPORTS_OF_HOSTS, (
            f"{relative(path)} imports {name}, which no dependency declares (or an extra that is not this room's)"
        )


def test_what_comes_with_an_extra_is_imported_where_it_is_used() -> None:
    """Every module can be imported without any extra; what needs one says so when it is called."""
    project = project_table()
    extra = {distribution(one) for requirements in project["optional-dependencies"].values() for one in requirements}
    for path in modules():
        for node in tree_of(path).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                found = {distribution(one) for one in distributions().get(name.split(".")[0], ())}
                assert not found & extra, f"{relative(path)}:{node.lineno} imports {name} at its top"


# Where bytes of the server are parsed, and where functions of the user are called: what holds one, by its name.
PARSING = {
    *("client/codec.py", "client/resources.py", "cache/record.py", "manager/connection.py", "diagnostics/hotloop.py"),
    *("client/oidc.py", "client/execplugin.py", "client/kubeconfig.py"),
}
PARSER = re.compile(r"msgspec\.json\.decode|json\.loads|_decode_\w+|decode|read_documents?")
USERS_FUNCTIONS = {
    "controller/worker.py": {"reconcile", "self._reconcile"},
    "reconcile/threads.py": {"self._function", "self._variables.run"},
    "triggers/handlers.py": {"self._function"},
    "triggers/sources.py": {"self._keys", "self._open", "predicate", "self._predicate"},
    "cache/indexer.py": {"values", "function", "self.names[name]"},
}
GUARDS = {"read", "Guard", "in_context", "in_fresh_context"}


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (node for node in nodes_of(path) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def guarded_names(path: Path) -> set[str]:
    """The functions that a module hands to a guard instead of calling them."""
    calls = [node for node in nodes_of(path) if isinstance(node, ast.Call)]
    handed = [arg for call in calls if ast.unparse(call.func) in GUARDS for arg in call.args]
    inner = [arg.args[0] if isinstance(arg, ast.Call) and arg.args else arg for arg in handed]
    return {ast.unparse(arg).removeprefix("self.") for arg in inner}


def calls_outside_of_guards(function: ast.AST) -> Iterator[ast.Call]:
    """Calls that no `except Exception` (or BaseException) around them catches, and that no lambda defers."""
    todo = [*ast.iter_child_nodes(function)]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.Try):
            caught = {ast.unparse(handler.type) for handler in node.handlers if handler.type is not None}
            todo += [*node.handlers, *node.orelse, *node.finalbody]
            todo += [] if caught & {"Exception", "BaseException"} else node.body
            continue
        if isinstance(node, ast.Call):
            yield node
        todo += ast.iter_child_nodes(node)


@pytest.mark.parametrize("name", sorted(PARSING))
def test_whatever_parses_bytes_of_the_server_is_reached_through_the_guard(name: str) -> None:
    path = PACKAGE / name
    guarded, parses = guarded_names(path), re.compile(PARSER)
    exposed: set[str] = set()
    while True:
        more = {
            function.name
            for function in functions_of(path)
            if function.name not in guarded | exposed
            for call in calls_outside_of_guards(function)
            if (called := ast.unparse(call.func).removeprefix("self.")) in exposed or parses.fullmatch(called)
        }
        if not more:
            break
        exposed |= more
    assert not {function for function in exposed if not function.startswith("_")}, f"{name}: not under `read`"


@pytest.mark.parametrize("name", sorted(USERS_FUNCTIONS))
def test_functions_of_the_user_are_called_by_a_guard_alone(name: str) -> None:
    path, guarded = PACKAGE / name, guarded_names(PACKAGE / name)
    for function in functions_of(path):
        if function.name in guarded:
            continue
        for call in calls_outside_of_guards(function):
            assert ast.unparse(call.func) not in USERS_FUNCTIONS[name], f"{name}:{call.lineno} in {function.name}"


# What is called by somebody else than this package, by its name alone.
CALLED_FROM_OUTSIDE = {
    "create_or_patch": "the public API",
    "get_subresource": "the public API",
    "kill_api_server": "the public API",
    "user_kubeconfig": "the public API",
    "recording": "the public API",
    **dict.fromkeys(("before_write", "cut_watch", "delay_events", "lose_response"), "the public API"),
    "utcnow": "in the place of datetime's",
    "ignore_aliases": "PyYAML's dumper",
    "handle_error": "aiohttp's protocol",
    **dict.fromkeys(("data_received", "eof_received", "pause_writing", "resume_writing"), "asyncio's protocol"),
    **dict.fromkeys(
        ("on_body", "on_header", "on_headers_complete", "on_message_begin", "on_message_complete"), "httptools' parser"
    ),
    **dict.fromkeys(
        ("pytest_addoption", "pytest_configure", "pytest_sessionfinish", "pytest_unconfigure"), "pytest, of its plugin"
    ),
}


def names_read(path: Path) -> Iterator[str]:
    """Every name that a module uses, in texts too: registries and messages to pydantic name functions by a text."""
    for node in nodes_of(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from re.findall(r"\w+", node.value)


def names_defined(path: Path) -> Iterator[str]:
    """Functions, methods, classes and constants; not what a decorator, a base of another package or a name made at run
    time calls."""
    tree = tree_of(path)
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            if isinstance(target, ast.Name):
                yield target.id
    called = "getattr(" in path.read_text()
    for node in nodes_of(path):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or path.name == "jsonschema.py":
            continue
        registered = any("." in ast.unparse(one) for one in node.decorator_list)
        if not registered and not (called and node.name.startswith("_")):
            yield node.name


def test_what_is_defined_is_used() -> None:
    """Names that nothing of the package reads, tests aside: dead code, or an entry of CALLED_FROM_OUTSIDE."""
    read = {name for path in modules() for name in names_read(path)}
    defined = {
        (relative(path), name) for path in modules() for name in names_defined(path) if not name.startswith("__")
    }
    dead = {(path, name) for path, name in defined if name not in read and name not in CALLED_FROM_OUTSIDE}
    assert not dead, sorted(dead)
