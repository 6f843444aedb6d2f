from __future__ import annotations

import ast
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from kopylite.errors import UsageError
from kopylite.starter import files_of
from kopylite.starter.naming import LONGEST, LONGEST_GROUP, LONGEST_KIND, TAKEN_KINDS, TAKEN_PACKAGES, names_of

LONG = "a" * LONGEST


def test_all_names_follow_from_one() -> None:
    names = names_of("web-cache")
    assert (names.package, names.kind, names.plural, names.group) == (
        "web_cache", "WebCache", "webcaches", "example.com",
    )  # fmt: skip
    assert names_of("shop", "Policy", "shop.example.org").plural == "policies"
    assert names_of(LONG, "K" * LONGEST_KIND).name == LONG


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Web_Cache", "try web-cache"),
        ("WebCache", "try web-cache"),
        ("HTTPProxy", "try http-proxy"),
        ("café", "try cafe"),
        ("my.app", "try my-app"),
        ("-x-", "try x"),
        ("3scale", "try scale"),
        ("кэш", "is none: lower-case letters, digits and inner dashes"),
        ("", "the name '' is none"),
        ("a\n", "is none"),
        ("../etc", "try etc"),
        ("class", "a word of Python's own, and no name of a package; try class-operator"),
        ("match", "a word of Python's own"),
        ("json", "the module 'json' of Python's standard library, which the package would hide; try json-operator"),
        ("test", "Python's standard library"),
        ("kopylite", "a package 'kopylite' would hide one that the project needs; try kopylite-operator"),
        ("tests", "would hide"),
        ("prometheus-client", "would hide"),
        ("kube-system", "a namespace that each cluster has"),
        ("a" * 64, "64 characters: names of pods and Services are made of it, and 40 are the most; try aaa"),
        ("x" * 100_000, "the most"),
    ],
)
def test_a_bad_name_is_refused_with_the_rule_and_a_way_out(name: str, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        names_of(name)
    assert text in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("kind", ["myApp", "My_App", "Ünit", "True", "Exception", "App", "K" * 60, "My App"])
def test_a_bad_kind_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"the kind .*--kind MyApp"):
        names_of("shop", kind)


@pytest.mark.parametrize(
    "group",
    [
        *("apps", "Example.com", "x.k8s.io", "kubernetes.io", "a..b", "a.b.", "exämple.com", "1.2"),
        f"{'a' * 64}.com",
        "a." * (LONGEST_GROUP // 2) + "io",
    ],
)
def test_a_bad_group_is_refused(group: str) -> None:
    with pytest.raises(UsageError, match=r"the group .*--group apps\.example\.com"):
        names_of("shop", group=group)


NAMES = st.text(max_size=80) | st.from_regex(r"[a-z0-9-]{1,70}", fullmatch=True)


@given(NAMES, st.text(max_size=9), st.text(max_size=9))
@example("None", "", "")  # the kind of "none" is a name of Python's
def test_any_texts_give_names_that_python_and_kubernetes_take_or_one_error(name: str, kind: str, group: str) -> None:
    try:
        names = names_of(name, kind, group)
    except UsageError as error:
        if "; try " in (text := str(error)):
            names_of(text.rpartition("; try ")[2])
        return
    assert names.package.isidentifier()
    assert names.package not in sys.stdlib_module_names
    assert names.kind.isidentifier()
    assert names.name.isascii()


def test_no_package_of_what_a_project_installs_can_be_hidden() -> None:
    wanted, needed = [Requirement("kopylite"), *map(Requirement, ("mypy", "pytest", "ruff"))], set()
    while wanted:
        requirement = wanted.pop()
        try:
            found = distribution(requirement.name)
        except PackageNotFoundError:
            continue
        if found.name not in needed:
            needed.add(found.name)
            extra = {"extra": "dev"} if found.name == "kopylite" else {"extra": ""}
            lines = map(Requirement, found.requires or ())
            wanted += [each for each in lines if each.marker is None or each.marker.evaluate(extra)]
    modules = {name for name, owners in packages_distributions().items() if needed & set(owners)}
    hidden = {name for name in modules if name.isidentifier() and not name.startswith("_") and name == name.lower()}
    assert hidden <= TAKEN_PACKAGES, f"add {sorted(hidden - TAKEN_PACKAGES)}"


def test_no_kind_can_hide_what_the_projects_files_import() -> None:
    texts = files_of(names_of("x", "Kx"), "")
    trees = [ast.parse(text) for name, text in texts.items() if name.endswith(".py")]
    imports = [n for tree in trees for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name for node in imports for alias in node.names}
    classes = {name for name in imported if name[:1].isupper() and not name.startswith("Kx")}
    assert classes <= TAKEN_KINDS, f"add {sorted(classes - TAKEN_KINDS)}"
