from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopylite.app import App
from kopylite.errors import UsageError
from kopylite.migration.converter import MovedModule, move
from kopylite.migration.sources import parse_source

POD = "@kopf.on.create('pods')\ndef f(**_): pass\n"
FORMS = {
    "another name": "import kopf as k\n@k.on.create('pods')\ndef f(**_): pass\n",
    "names from it": "from kopf import on, adopt as own\n@on.create('pods')\ndef f(**_):\n    own({})\n",
    "all names from it": "from kopf import *\n@on.create('pods')\ndef f(**_):\n    adopt({})\n",
    "called, not decorated": "import kopf\ndef f(**_): pass\nkopf.on.create('pods')(f)\n",
    "a lambda": "import kopf\nkopf.on.create('pods')(lambda **_: kopf.info({}, reason='x'))\n",
    "a decorator of a name": "import kopf\non_pod = kopf.on.create('pods')\n@on_pod\ndef f(**_): pass\n",
    "in a class": "import kopf\nclass A:\n    @staticmethod\n    @kopf.on.create('pods')\n    def f(**_): pass\n",
    "one of several statements of a line": f"import os; import kopf; x = 1\n{POD}",
    "beside another import": f"import os, kopf\n{POD}assert os\n",
    "in a try": f"try:\n    import kopf\nexcept ImportError:\n    raise\n{POD}",
    "names that are taken": f"import kopf\napp = App = Kind = bridge = Request = Context = Pod = ORIGIN = 1\n{POD}",
    "several lines": "import kopf\n@kopf.on.create(\n    'pods',\n    labels={'a': '''x\ny'''},\n)\ndef f(**_): pass\n",
    "three texts": "import kopf\n@kopf.on.create('', 'v1', 'pods')\ndef f(**_): pass\n",
    "constants": "import kopf\nclass C:\n    V = 'v1'\nT = (C.V, 'po' + 'ds')\n@kopf.on.create(*T)\ndef f(**_): pass\n",
}


def moved(text: str | bytes, name: str = "shop.py") -> MovedModule:
    return move([parse_source(text.encode() if isinstance(text, str) else text, name)])[0]


def executed(found: MovedModule) -> dict[str, object]:
    module: dict[str, object] = {"__name__": "moved"}
    exec(compile(found.text, "moved.py", "exec"), module)
    return module


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_handler_is_found_in_whatever_form_it_is_declared_and_the_result_is_an_app_that_calls_it(form: str) -> None:
    found = moved(form)
    apps = [value for value in executed(found).values() if isinstance(value, App)]
    assert [spec.kind.kind for app in apps for spec in app.controllers] == ["Pod"]
    named = {node.id for node in ast.walk(ast.parse(found.text)) if isinstance(node, ast.Name)}
    assert not named & {"kopf", "k", "on", "on_pod", "adopt", "own"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import kopf\nfor p in ['pods']:\n    @kopf.on.create(p)\n    def f(**_): pass\n", "under `for`"),
        ("import kopf\ndef g():\n    @kopf.on.create('pods')\n    def f(**_): pass\n", "inside of g()"),
        ("import kopf\nclass A:\n    @kopf.on.create('pods')\n    def f(self, **_): pass\n", "a method of A"),
        ("import kopf, conf\n@kopf.on.create(conf.G, 'v1', conf.P)\ndef f(**_): pass\n", "conf.P is known only"),
        ("import kopf\nO = {}\n@kopf.on.create('pods', **O)\ndef f(**_): pass\n", "options are known only"),
        ("import kopf\n@kopf.on.event(kopf.EVERYTHING)\ndef f(**_): pass\n", "kopf.EVERYTHING is known only"),
        ("import kopf\n@kopf.on.create_fn('pods')\ndef f(**_): pass\n", "no such decorator"),
        ("import kopf\nfor f in ():\n    kopf.on.create('pods')(f)\n", "called by nobody"),
    ],
)
def test_what_cannot_be_called_by_name_stays_in_the_text_and_is_told_of(text: str, reason: str) -> None:
    found = moved(text)
    assert any(reason in remark.done and remark.todo for remark in found.remarks), found.remarks
    assert "def f(" in found.text or "(f)" in found.text
    ast.parse(found.text)


def test_a_handler_under_a_condition_is_called_and_told_of() -> None:
    guarded = "try:\n    import kopf\n    THERE = True\nexcept ImportError:\n    kopf = None\n    THERE = False\n"
    found = moved(guarded + "if THERE:\n    @kopf.on.create('pods')\n    def f(**_): pass\n")
    assert "run.created(f)" in found.text
    assert any("under a condition" in remark.done and remark.todo for remark in found.remarks)
    executed(found)


def test_nothing_of_the_text_is_lost() -> None:
    text = '"""Doc."""\nfrom __future__ import annotations\nimport kopf  # why\n# a comment\n' + POD + (
        "x = kopf.nothing(1)  # another\nif __name__ == '__main__':\n    kopf.run()\n"
    )  # fmt: skip
    found = moved(text).text
    for line in text.split("\n"):
        assert line in found or line.replace("kopf.nothing", "bridge.missing('kopf.nothing', 'shop.py:7')") in found, (
            line
        )
    assert found.startswith('"""Doc."""\nfrom __future__ import annotations\nfrom kopylite import')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raise kopf.TemporaryError('a', delay=5)", "raise Retry('a', after=5)"),
        ("raise kopf.TemporaryError('a')", "raise Retry('a', after=60)"),
        ("raise kopf.TemporaryError(('a'),)", "raise Retry(('a'), after=60)"),
        ("raise kopf.TemporaryError('a', delay=x)", "raise bridge.TemporaryError('a', delay=x)"),
        ("raise kopf.TemporaryError('a', delay=0)", "raise bridge.TemporaryError('a', delay=0)"),
        ("raise kopf.PermanentError('a')", "raise TerminalError('a')"),
        ("raise kopf.AdmissionError(('a'), code=400)", "raise Denied(('a'))"),
        ("class E(kopf.TemporaryError): pass", "class E(bridge.TemporaryError): pass"),
        ("kopf.adopt(x, owner=kopf.y)", "bridge.adopt(x, owner=bridge.missing('kopf.y', 'shop.py:2'))"),
        ("def g(kopf): kopf.adopt()", "def g(kopf): kopf.adopt()"),
        ("def g(a: kopf.Body) -> kopf.Patch: ...", "def g(a: bridge.Body) -> bridge.Patch: ..."),
    ],
)
def test_names_of_kopf_become_those_of_kopylite(before: str, after: str) -> None:
    assert after in moved(f"import kopf\n{before}\n").text


def test_what_is_caught_is_what_is_raised() -> None:
    found = moved("import kopf\ntry: pass\nexcept (kopf.TemporaryError, kopf.PermanentError): pass\n").text
    assert "except (Retry, TerminalError):" in found


def test_settings_become_options_of_the_app_and_are_told_of() -> None:
    found = moved(
        "import kopf\n@kopf.on.startup()\ndef f(settings, **_):\n    settings.peering.name = 'mine'\n"
        "    settings.persistence.finalizer = 'a/b'\n    settings.persistence.progress_storage = "
        "kopf.AnnotationsProgressStorage(prefix='my.example.com')\n    settings.posting.enabled = False\n" + POD
    )
    assert "leader_election=True" in found.text
    assert "bridge.no_kopf_beside('mine')" in found.text
    assert "finalizer='a/b', prefix='my.example.com'" in found.text
    assert "on_start(ctx" not in found.text, "a handler that did nothing else is not called"
    assert {f"settings.{name}" for name in ("peering.name", "posting.enabled")} <= {r.construct for r in found.remarks}


@pytest.mark.parametrize(
    ("causes", "method"),
    [
        ("create", "created"),
        ("update", "updated"),
        ("create update", "changed"),
        ("resume", "resumed"),
        ("resume create", "resumed"),
        ("resume create update", "always"),
        ("event", "always"),
        ("delete", "deleted"),
    ],
)
def test_the_causes_of_a_handler_say_when_it_is_called(causes: str, method: str) -> None:
    decorators = "".join(f"@kopf.on.{cause}('pods')\n" for cause in causes.split())
    assert f"run.{method}(f)" in moved(f"import kopf\n{decorators}def f(**_): pass\n").text


def test_of_two_handlers_of_one_name_both_are_called() -> None:
    found = moved(
        "import kopf\n@kopf.on.create('pods')\ndef f(**_): pass\n@kopf.on.update('pods')\ndef f(**_): pass\n"
    ).text
    assert "run.created(f_3)" in found
    assert "run.updated(f)" in found


def test_handlers_of_fields_alone_are_run_by_changes_of_these() -> None:
    found = moved("import kopf\n@kopf.on.field('pods', field='spec.nodeName')\ndef f(**_): pass\n").text
    assert "predicates=field_changed('spec.nodeName') | bridge.deletion_began" in found


def test_an_argument_that_is_not_known_needs_a_person() -> None:
    found = moved("import kopf\n@kopf.on.update('pods')\ndef f(spec, **kw):\n    kw['diff']\n    kw.get('old')\n")
    assert {r.done.split("`")[1] for r in found.remarks if r.todo and "`" in r.done} == {"diff", "old"}


def test_a_kind_of_two_files_is_told_of() -> None:
    one, two = move([parse_source(f"import kopf\n{POD}".encode(), name) for name in ("a.py", "b.py")])
    assert not any(remark.todo for remark in one.remarks)
    assert any("a.py" in remark.done for remark in two.remarks)


def test_what_the_page_shows_is_what_is_made() -> None:
    page = (Path(__file__).parents[3] / "docs" / "from-kopf.md").read_text()
    before, after = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    names = {"kind": "Page", "plural": "pages"}
    crd = {"spec": {"group": "example.com", "names": names, "versions": [{"name": "v1"}]}}
    [found] = move([parse_source(before.encode(), "operator.py")], [crd])
    assert after.partition("\n")[2].strip() in found.text


def test_a_file_without_kopf_stays_as_it_is() -> None:
    assert moved("x = 1\n").text == "x = 1\n"


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_bytes_are_refused_with_a_message_or_moved(data: bytes) -> None:
    refusal, found = None, None
    try:
        found = moved(b"import kopf\n" + data)
    except UsageError as error:
        refusal = str(error)
    assert ast.parse(found.text) if found else "shop.py" in str(refusal)


WORDS = st.sampled_from(
    [
        *("kopf", "on", ".", "(", ")", "'pods'", "@kopf.on.create", "\n", "def f(**_): pass", "class A:", "    ", "="),
        *(
            "*",
            ",",
            "if x:",
            "kopf.adopt(x)",
            "kopf.TemporaryError",
            "raise ",
            "lambda **_: 1",
            "import kopf",
            ";",
            "#",
        ),
        "async ",
    ]
)


@given(st.lists(WORDS, max_size=12).map("".join))
def test_whatever_python_makes_of_words_of_kopf_stays_python(text: str) -> None:
    try:
        found = moved(f"import kopf\n{text}\n")
    except UsageError:
        return
    ast.parse(found.text)
