from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kopylite.cli import main
from kopylite.cli.exitcodes import Exit

MODULE = """
from collections.abc import Callable
from pydantic import BaseModel
from kopylite import App, CustomResource, Kind

class AppSpec(BaseModel):
    image: str
    replicas: int = 1

class MyApp(CustomResource[AppSpec, None], group="example.com", version="v1"):
    pass

class Other(CustomResource[AppSpec, None], group="example.com", version="v1"):
    pass

class Plain(BaseModel):
    pass

app = App("myapp")

@app.reconciler(MyApp, owns=[Kind("apps/v1", "Deployment")])
async def reconcile(ctx, request):
    return None
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "operator.py"
    path.write_text(MODULE)
    return path


def kinds(text: str) -> list[str]:
    return [document["spec"]["names"]["kind"] for document in yaml.safe_load_all(text)]


@pytest.mark.parametrize(
    ("name", "expected"), [("", ["MyApp", "Other"]), (":app", ["MyApp"]), (":Other", ["Other"]), (":MyApp", ["MyApp"])]
)
def test_it_prints_the_kinds_of_a_module_an_app_or_a_class(
    module: Path, capsys: pytest.CaptureFixture[str], name: str, expected: list[str]
) -> None:
    assert main(["crd", f"{module}{name}"]) == 0
    assert kinds(capsys.readouterr().out) == expected


@pytest.mark.parametrize("target", ["samples.shop.operator", "samples.shop.operator:app"])
def test_a_kind_that_an_app_converts_says_who_is_called(capsys: pytest.CaptureFixture[str], target: str) -> None:
    assert main(["crd", target, "-n", "ops"]) == 0
    [crd] = yaml.safe_load_all(capsys.readouterr().out)
    service = {"name": "shop-webhooks", "namespace": "ops", "path": "/convert", "port": 443}
    assert crd["spec"]["conversion"] == {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}},
    }


def test_it_writes_one_file_a_kind(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "crds"
    assert main(["crd", str(module), "--output-dir", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["myapps.example.com.yaml", "others.example.com.yaml"]
    assert kinds((folder / "myapps.example.com.yaml").read_text()) == ["MyApp"]
    assert main(["crd", str(module), "--output-dir", str(folder), "--check"]) == 0


def test_check_fails_for_a_difference_and_says_what_is_dangerous(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crds"
    main(["crd", str(module), "--output-dir", str(folder)])
    committed = {path.name: path.read_text() for path in folder.iterdir()}
    module.write_text(MODULE.replace("replicas: int = 1", "replicas: str"))
    capsys.readouterr()
    assert main(["crd", str(module), "--output-dir", str(folder), "--check"]) == 1
    out = capsys.readouterr().out
    assert "myapps.example.com.yaml: differs from the classes" in out
    assert "DANGEROUS: v1 .spec.replicas: is required now" in out
    assert "DANGEROUS: v1 .spec.replicas: the type changes from integer to string" in out
    assert {path.name: path.read_text() for path in folder.iterdir()} == committed


def test_check_fails_for_a_missing_file(module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crd", f"{module}:MyApp", "--output-dir", str(tmp_path / "none"), "--check"]) == 1
    assert "myapps.example.com.yaml: missing" in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("{}:nothing", 4, "has no attribute 'nothing'"),
        ("{}:Plain", 4, "has no CustomResource"),
        ("no-such-operator.py", 3, "there is no file"),
        ("no_such_module_at_all", 3, "there is no module"),
    ],
)
def test_a_wrong_target_gives_one_clear_line(
    module: Path, capsys: pytest.CaptureFixture[str], target: str, code: int, message: str
) -> None:
    assert main(["crd", target.format(module)]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_field_that_no_crd_can_have_gives_one_clear_line(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(MODULE.replace("replicas: int = 1", "replicas: Callable[[], int]"))
    assert main(["crd", str(module)]) == 5
    assert "has no JSON form" in capsys.readouterr().err


def test_what_the_server_will_not_check_is_noted(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(MODULE.replace("replicas: int = 1", "replicas: bool | str = True"))
    assert main(["crd", f"{module}:MyApp"]) == 0
    assert "note: MyApp.spec.replicas: the server does not check" in capsys.readouterr().err


def test_the_other_versions_of_a_kind_belong_to_its_crd(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.write_text(MODULE + 'class MyAppV2(MyApp, version="v2", kind="MyApp", storage=False):\n' + "    pass\n")
    for target in (f"{module}:app", f"{module}:MyApp", str(module)):
        assert main(["crd", target]) == 0
        crd = next(yaml.safe_load_all(capsys.readouterr().out))
        assert [version["name"] for version in crd["spec"]["versions"]] == ["v2", "v1"]


def test_check_finds_a_kind_whose_plural_was_changed(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crds"
    assert main(["crd", f"{module}:MyApp", "--output-dir", str(folder)]) == 0
    (folder / "broken.yaml").write_text("a: [")
    module.write_text(MODULE.replace('version="v1"', 'version="v1", plural="appz"', 1))
    capsys.readouterr()
    assert main(["crd", f"{module}:MyApp", "--output-dir", str(folder), "--check"]) == 1
    said = capsys.readouterr().out
    assert f"appz.example.com.yaml: missing; {folder}/myapps.example.com.yaml has this kind under another name" in said
    assert "DANGEROUS: names.plural: changed from myapps to appz" in said


@pytest.mark.parametrize("text", ["", "kind: Service", "kind: CustomResourceDefinition", "a: ["])
def test_check_names_a_file_that_holds_no_crd(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "myapps.example.com.yaml").write_text(text)
    assert main(["crd", f"{module}:MyApp", "--output-dir", str(tmp_path), "--check"]) == Exit.USAGE
    problem = ":1: did not find" if text == "a: [" else " holds no CustomResourceDefinition"
    assert f"{tmp_path}/myapps.example.com.yaml{problem}" in capsys.readouterr().err


def test_a_folder_that_is_a_file_is_named(module: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crd", str(module), "--output-dir", str(module)]) == Exit.USAGE
    assert str(module) in capsys.readouterr().err


def test_check_notices_a_class_that_was_removed(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "crds"
    assert main(["crd", str(module), "--output-dir", str(folder)]) == 0
    foreign = (folder / "others.example.com.yaml").read_text().replace("example.com", "other.org")
    (folder / "others.other.org.yaml").write_text(foreign)
    for target in (str(module), f"{module}:app", f"{module}:MyApp"):
        assert main(["crd", target, "--output-dir", str(folder), "--check"]) == 0
    module.write_text(
        MODULE.replace('class Other(CustomResource[AppSpec, None], group="example.com", version="v1")', "class X")
    )
    capsys.readouterr()
    for target in (str(module), f"{module}:app"):
        assert main(["crd", target, "--output-dir", str(folder), "--check"]) == 1
        said = capsys.readouterr().out
        assert f"{folder}/others.example.com.yaml: no class declares this kind any more" in said
        assert "DANGEROUS" in said
        assert "other.org" not in said
    assert main(["crd", f"{module}:MyApp", "--output-dir", str(folder), "--check"]) == 0
