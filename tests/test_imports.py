"""What may import what, what may never be called, and what an answer may not load."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("engine", "cli", "measurement", "formulas", "gpus", "profiles")
PACKAGE_FILES = ROOT / "engine/_fitcheck"  # becomes fitcheck/__init__.py and __main__.py, the top
MEASURING_STACK = {"torch", "transformers", "peft", "bitsandbytes"}
HEAVY = {"sympy", "jsonschema", "numpy", "rich", "huggingface_hub", "matplotlib"}


def modules(*folders: str) -> list[Path]:
    """The Python files below these folders of the repository, without those of the package top."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found, folders
    return [path for path in found if PACKAGE_FILES not in path.parents]


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Every dotted name that the code imports, lazily too; `package` resolves relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: -(node.level - 1) or None] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and called(node) in {"import_module", "__import__"}:
            yield from (str(a.value) for a in node.args[:1] if isinstance(a, ast.Constant))


def imports_of(path: Path) -> set[str]:
    folder = path.parent.relative_to(ROOT)
    return set(imports(parse(path), ".".join(("fitcheck", *folder.parts))))


def called(node: ast.Call) -> str:
    """The last name of what is called: `load` for `yaml.load(...)`."""
    return ast.unparse(node.func).rpartition(".")[2]


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("engine", "fitcheck.cli"),
        ("engine", "fitcheck.measurement"),
        ("cli", "fitcheck.measurement"),
        ("measurement", "fitcheck.cli"),
    ],
)
def test_imports_run_one_way(folder: str, forbidden: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules(folder)
        for name in imports_of(path)
        if within(name, forbidden)
    ]
    assert not wrong


def test_only_measurement_imports_the_measuring_stack() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules("engine", "cli")
        for name in imports_of(path)
        if name.partition(".")[0] in MEASURING_STACK
    ]
    assert not wrong


def test_folders_are_imported_by_their_installed_name() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}, which is fitcheck.{name} when installed"
        for path in modules("engine", "cli", "measurement", "tests")
        for name in imports_of(path)
        if name.partition(".")[0] in FOLDERS
    ]
    assert not wrong


def test_relative_imports_are_resolved() -> None:
    tree = ast.parse("from . import a\nfrom .b import c\nfrom ..cli import d\nimport e.f")
    found = ["fitcheck.engine.a", "fitcheck.engine.b.c", "fitcheck.cli.d", "e.f"]
    assert list(imports(tree, "fitcheck.engine")) == found


def runs_text(tree: ast.Module) -> list[str]:
    """Calls that can run what a file says: Python's own, sympy's parsers, YAML's full loader."""
    imported_from_yaml = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "yaml"
        for alias in node.names
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [ast.unparse(node) for node in calls if _runs_text(node.func, imported_from_yaml)]


def _runs_text(function: ast.expr, imported_from_yaml: set[str]) -> bool:
    module, _, name = ast.unparse(function).rpartition(".")
    if name in {"sympify", "parse_expr", "parse_latex"}:
        return True
    if name in {"eval", "exec", "execfile"}:
        return module in {"", "builtins"}
    if name == "S":  # sympy's short name of sympify
        return module in {"", "sympy", "sp"}
    loads = name.endswith(("load", "load_all")) and not name.startswith("safe_")
    return loads and (module == "yaml" or (name in imported_from_yaml and not module))


def test_no_text_is_run() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {call}"
        for path in modules("engine", "cli")
        for call in runs_text(parse(path))
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("eval(text)", True),
        ("builtins.exec(text)", True),
        ("sympy.sympify(text)", True),
        ("sympy.parsing.sympy_parser.parse_expr(text)", True),
        ("from sympy import S\nS(text)", True),
        ("yaml.load(text, Loader=loader)", True),
        ("yaml.unsafe_load_all(text)", True),
        ("from yaml import full_load\nfull_load(text)", True),
        ("yaml.safe_load(text)", False),
        ("json.load(file)", False),
        ("expression.evalf()", False),
        ("sympy.S.One", False),
    ],
)
def test_calls_that_run_text_are_found(code: str, found: bool) -> None:
    assert bool(runs_text(ast.parse(code))) is found


def test_json_from_a_local_config_loads_nothing_heavy(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": 2048,
                "intermediate_size": 5632,
                "num_hidden_layers": 22,
                "num_attention_heads": 32,
                "num_key_value_heads": 4,
                "vocab_size": 32000,
                "tie_word_embeddings": False,
            }
        ),
        encoding="utf-8",
    )
    program = (
        "import atexit, sys\n"
        "from fitcheck.cli.start import main\n"
        f"sys.argv = ['fitcheck', {str(config)!r}, '--qlora', '--gpu', '4090', '--json']\n"
        "atexit.register(lambda: print('loaded', *sorted(sys.modules), file=sys.stderr))\n"
        "main()\n"
    )
    done = _python(program, tmp_path)
    assert done.returncode in (0, 1), done.stderr
    assert "memory_mib" in json.loads(done.stdout)
    loaded = done.stderr.rpartition("loaded ")[2].split()
    assert "fitcheck.cli.answer" in loaded
    assert not HEAVY.intersection(loaded)


def test_import_fitcheck_loads_nothing_of_the_engine(tmp_path: Path) -> None:
    done = _python("import fitcheck, sys; print(*sys.modules)", tmp_path)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "fitcheck" in loaded
    assert not loaded & {"fitcheck.engine", "click", "yaml", *HEAVY}


def test_public_names_come_on_first_use(tmp_path: Path) -> None:
    program = (
        "import fitcheck, sys\n"
        "assert set(fitcheck.__all__) <= set(dir(fitcheck))\n"
        "values = [getattr(fitcheck, name) for name in fitcheck.__all__]\n"
        "assert fitcheck.estimate is sys.modules['fitcheck.engine.api'].estimate\n"
        "assert issubclass(fitcheck.Refusal, fitcheck.FitcheckError)\n"
        "try: fitcheck.estimat\n"
        "except AttributeError as error: print(error)\n"
    )
    done = _python(program, tmp_path)
    assert done.stdout.strip() == "module 'fitcheck' has no attribute 'estimat'", done.stderr


def _python(program: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)
