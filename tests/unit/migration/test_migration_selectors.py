from __future__ import annotations

import ast
from typing import Any

import pytest

from kopylite.migration import advice, rewriting, wiring
from kopylite.migration.constants import constants_of, text_of
from kopylite.migration.declarations import arguments_used, declared_in
from kopylite.migration.report import Remark, rendered
from kopylite.migration.selectors import catalogue, kinds_of
from kopylite.migration.vocabulary import BRIDGED, vocabulary_of

VERSIONS = [
    {"name": "v1beta1", "served": True},
    {"name": "v1", "served": True, "storage": True},
    {"name": "v0", "served": False},
]
NAMES = {"kind": "WebPage", "plural": "webpages", "shortNames": ["wp"], "categories": ["site"]}
CRD = {"spec": {"group": "example.com", "names": NAMES, "versions": VERSIONS}}
MODULE = ast.parse("G = 'example.com'\nclass C:\n    V = 'v1'\nT = (G, C.V, 'webpages')\nL = L2 = 'x'\nL = 'y'\n")


def found(arguments: str) -> Any:
    call = ast.parse(f"f({arguments})").body[0].value  # type: ignore[attr-defined]
    options = {each.arg: each.value for each in call.keywords}
    kinds = kinds_of(call.args, options, constants_of([MODULE]), catalogue([CRD, {"spec": 1}]))
    return kinds if isinstance(kinds, str) else [(each.kind, each.api_version, bool(each.doubt)) for each in kinds]


PAGE = [("WebPage", "'example.com/v1'", False)]


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ("'webpages'", PAGE),
        ("'wp'", PAGE),
        ("'WebPage'", PAGE),
        ("'webpages.example.com'", PAGE),
        ("'webpages.v1.example.com'", PAGE),
        ("'example.com', 'webpages'", PAGE),
        ("'example.com/v1', 'webpages'", PAGE),
        ("G, C.V, 'webpages'", PAGE),
        ("*T", PAGE),
        ("f'{G}', 'v1', 'web' + 'pages'", PAGE),
        ("group=G, version='v1', kind='WebPage'", PAGE),
        ("category='site'", PAGE),
        ("'example.com', 'v1beta1', 'webpages'", [("WebPage", "'example.com/v1beta1'", False)]),
        ("'pods'", [("Pod", "'v1'", False)]),
        ("'', 'v1', 'pods'", [("Pod", "'v1'", False)]),
        ("'v1', 'configmaps'", [("ConfigMap", "'v1'", False)]),
        ("'apps', 'v1', 'deployments'", [("Deployment", "'apps/v1'", False)]),
        ("'deploy'", [("Deployment", "'apps/v1'", False)]),
        ("'networking.k8s.io', 'v1beta1', 'ingresses'", [("Ingress", "'networking.k8s.io/v1'", False)]),
        ("'extensions', 'v1beta1', 'ingresses'", [("Ingress", "'networking.k8s.io/v1'", False)]),
        ("'a.example.com', 'v1', 'policies'", [("Policy", "'a.example.com/v1'", True)]),
        ("kind='MyThing', group='a.example.com', version='v2'", [("MyThing", "'a.example.com/v2'", True)]),
        ("'things'", [("Thing", "'unknown.example.com/v1'", True)]),
        ("conf.G, conf.V, 'things'", [("Thing", 'f"{conf.G}/{conf.V}"', True)]),
        ("conf.G, 'v1', conf.P", "conf.P is known only when the program runs"),
        ("L", "L is known only when the program runs"),
        ("", "it names no resource"),
        ("'a', 'b', 'c', 'd'", "it has more than three arguments"),
    ],
)
def test_a_resource_is_found_by_whatever_kopf_calls_it(arguments: str, kinds: Any) -> None:
    assert found(arguments) == kinds


def test_a_name_that_stands_for_itself_is_not_known() -> None:
    constants = constants_of([ast.parse("A = B\nB = A\n")])
    assert text_of(ast.parse("A", mode="eval").body, constants) is None


def test_arguments_are_found_among_parameters_and_in_the_rest() -> None:
    function = ast.parse(
        "def f(spec, *, old=None, **kw):\n    kw['diff'], kw.get('event'), kw.pop('x', 1), kw[y]\n"
    ).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert arguments_used(function) == {"spec", "old", "diff", "event", "x"}


def test_declarations_are_in_the_order_of_the_text() -> None:
    text = "@kopf.on.create('a')\n@kopf.timer('b', interval=1)\ndef f(): pass\n@kopf.daemon('c')\ndef g(): pass\n"
    tree = ast.parse(f"import kopf\n{text}")
    assert [each.what for each in declared_in(tree, vocabulary_of(tree)).handlers] == ["create", "timer", "daemon"]


def test_the_report_says_first_what_needs_a_person() -> None:
    text = rendered([Remark("b.py", 2, "x", "done"), Remark("a.py", 1, "y\n\x1b", "done", "do this")])
    assert text.startswith("1 place needs a person:\na.py:1: y")
    assert "\x1b" not in text
    assert "do this" in text.partition("Done:")[0]


def test_what_is_named_in_a_moved_module_is_there() -> None:
    from kopylite.migration import bridge

    assert {name for name in (*BRIDGED, *rewriting.TYPES) if not hasattr(bridge, name)} == set()
    assert {name for name in ("Handling", "Origin", "changed", "review") if not hasattr(bridge, name)} == set()
    assert set(advice.BECAME) >= {"create", "daemon"}
    assert {name for name in wiring._METHODS.values() if not hasattr(bridge.Handling, name)} == set()


def test_settings_have_advice_by_their_nearest_known_name() -> None:
    assert "Lease" in advice.of_setting("peering.standalone")
    assert advice.of_setting("peering.priority") == advice.SETTINGS["peering"]
    assert "no such setting" in advice.of_setting("new.things")
