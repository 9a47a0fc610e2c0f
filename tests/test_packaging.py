"""The sdist, the wheel and the editable install each hold all of fitcheck and nothing else."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from fitcheck.engine.codegen import generated

ROOT = Path(__file__).parents[1]
PACKAGED = ("engine", "cli", "measurement", "formulas", "gpus", "profiles")
PACKAGE_FILES = {"fitcheck/__init__.py", "fitcheck/__main__.py", "fitcheck/py.typed"} | {
    f"fitcheck/engine/{name}" for name, _ in generated(str(ROOT))
}  # what the build writes from the rule files
IN_SDIST_ONLY = ("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "pyproject.toml")

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(tool) is None for tool in ("build", "hatchling")),
    reason="needs build and hatchling, both in the extra dev",
)


@dataclass(frozen=True)
class Built:
    """What the build made; the wheel twice, from the sdist and from the checkout."""

    sdist: Path
    wheel: Path
    wheel_from_checkout: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    by_sdist, by_checkout = (tmp_path_factory.mktemp(name) for name in ("sdist", "checkout"))
    _build(ROOT, by_sdist)  # the sdist, and the wheel from it
    _build(ROOT, by_checkout, "--wheel")
    (sdist,), (wheel,), (direct,) = (
        by_sdist.glob("*.tar.gz"),
        by_sdist.glob("*.whl"),
        by_checkout.glob("*.whl"),
    )
    return Built(sdist, wheel, direct)


def _build(checkout: Path, out: Path, *options: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *options]
    done = subprocess.run([*command, str(checkout)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _files(folder: Path) -> set[str]:
    """The files below `folder`, as paths from the root, without what Python leaves behind."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def _wheel_files(wheel: Path) -> dict[str, bytes]:
    """Name and content of each file of the package, without the dist-info folder."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name
        }


def test_wheel_holds_every_file_and_no_other_top_level_name(built: Built) -> None:
    packaged = set().union(*(_files(ROOT / folder) for folder in PACKAGED))
    expected = {f"fitcheck/{name}" for name in packaged if not name.startswith("engine/_fitcheck/")}
    assert set(_wheel_files(built.wheel)) == expected | PACKAGE_FILES
    for folder in ("formulas", "gpus", "profiles"):
        assert any(n.startswith(f"fitcheck/{folder}/") and n.endswith(".yaml") for n in expected)


def test_wheel_from_sdist_equals_wheel_from_checkout(built: Built) -> None:
    assert _wheel_files(built.wheel) == _wheel_files(built.wheel_from_checkout)


def test_sdist_holds_the_sources_tests_and_documents(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    sources = set().union(*(_files(ROOT / folder) for folder in (*PACKAGED, "tests", "docs")))
    assert names >= sources | set(IN_SDIST_ONLY)
    assert not [name for name in names if "__pycache__" in name or name.startswith("build/")]


def test_wheel_runs_when_installed(built: Built, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(built.wheel) as archive:
        archive.extractall(installed)
    # PYTHONPATH comes before the editable install; the dependencies come from this environment.
    environment = os.environ | {"PYTHONPATH": str(installed)}
    where = "import fitcheck; print(fitcheck.__file__)"
    assert Path(_python(["-c", where], tmp_path, environment)).is_relative_to(installed)
    assert _version() in _python(["-m", "fitcheck", "--version"], tmp_path, environment)
    serve = (
        "import sys; from fitcheck import estimate\n"
        "report = estimate('meta-llama/Llama-3.1-8B', mode='serving', source='catalogue')\n"
        "compiled = 'fitcheck.engine._compiled_mode_serving' in sys.modules\n"
        "print(report['max_concurrent'], compiled, 'fitcheck.engine.loading' in sys.modules)\n"
    )
    assert _python(["-c", serve], tmp_path, environment) == "25 True False"


def test_wheel_declares_the_version_of_the_source(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        assert f"\nVersion: {_version()}\n" in archive.read(name).decode()


def _version() -> str:
    """The literal in the source; nothing computes it, so starting up costs no metadata look-up."""
    tree = ast.parse((ROOT / "engine/_fitcheck/__init__.py").read_text(encoding="utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__version__"
    )
    version = ast.literal_eval(value)
    assert isinstance(version, str)
    return version


def test_editable_install_sees_new_files_at_once(tmp_path: Path) -> None:
    checkout, installed = tmp_path / "checkout", tmp_path / "installed"
    for folder in PACKAGED:
        shutil.copytree(
            ROOT / folder, checkout / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    make = "import sys, hatchling.build as b; print(b.build_editable(sys.argv[1]))"
    wheel = _python(["-c", make, str(tmp_path)], checkout).splitlines()[-1]
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        assert not [n for n in archive.namelist() if n.startswith("fitcheck/")], "a copy goes stale"
        archive.extractall(installed)

    (checkout / "formulas/new_quantity.yaml").write_text("id: new_quantity\n", encoding="utf-8")
    (checkout / "engine/new_module.py").write_text("NAME = __name__\n", encoding="utf-8")
    look = (
        "import site, sys, pathlib; site.addsitedir(sys.argv[1])\n"
        "import fitcheck, fitcheck.engine.new_module as new\n"
        "folder = pathlib.Path(fitcheck.__file__).parent\n"
        "print(fitcheck.__version__, new.NAME, (folder / 'formulas/new_quantity.yaml').resolve())\n"
        "for name in ('engine', 'cli', 'formulas'):\n"
        "    try: __import__(name)\n"
        "    except ModuleNotFoundError: continue\n"
        "    print(name, 'is importable')\n"
    )
    # -I -S: neither the editable install of this environment nor the current folder is on the path.
    seen = _python(["-I", "-S", "-c", look, str(installed)], tmp_path)
    new_file = (checkout / "formulas/new_quantity.yaml").resolve()
    assert seen == f"{_version()} fitcheck.engine.new_module {new_file}"


def test_build_stops_when_a_packaged_folder_is_missing(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "engine/_fitcheck", checkout / "engine/_fitcheck")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    command = [sys.executable, "-c", "import hatchling.build as b; b.build_wheel('.')"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True)
    assert done.returncode != 0
    assert "is missing: the package needs it" in done.stderr


def _python(arguments: list[str], cwd: Path, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
