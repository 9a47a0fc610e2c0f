"""Every lint code has a page, and every page a code: `engine/workshop/codes.yaml`."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import fitcheck.engine
from fitcheck.cli.main import cli
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.workshop import codes

ENGINE = Path(fitcheck.engine.__file__ or "").parent
CODE = re.compile(r"F[0-9]{3}")


def texts(node: ast.AST | None) -> list[str]:
    """The text that an argument can be; none where it is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        return texts(node.body) + texts(node.orelse)
    return []


def printed(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(code, name) of every problem that code can report."""
    for node in ast.walk(tree):
        pairs: list[tuple[ast.AST, ast.AST]] = []
        if isinstance(node, ast.Call):
            pairs = list(zip(node.args, node.args[1:], strict=False))
        elif isinstance(node, ast.Tuple):
            pairs = list(zip(node.elts, node.elts[1:], strict=False))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            pairs = list(zip(node.args.defaults, node.args.defaults[1:], strict=False))
        for first, second in pairs:
            for code in (t for t in texts(first) if CODE.fullmatch(t)):
                yield from ((code, name) for name in texts(second) if not CODE.fullmatch(name))


def reported() -> set[tuple[str, str]]:
    return {
        pair
        for path in sorted(ENGINE.rglob("*.py"))
        for pair in printed(ast.parse(path.read_text(encoding="utf-8")))
    }


def mentioned() -> set[str]:
    """Every code that stands as a text of its own in the engine."""
    return {
        node.value
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and CODE.fullmatch(node.value)
    }


def test_every_code_and_name_has_a_page_and_every_page_is_used() -> None:
    paged = {(page.code, name) for page in codes.pages().values() for name in page.names}
    assert reported() == paged
    assert mentioned() == {page.code for page in codes.pages().values()}


@pytest.mark.parametrize("page", codes.pages().values(), ids=lambda page: page.code)
def test_a_page_says_all_that_a_person_needs(page: codes.Page) -> None:
    assert page.title and page.names and page.checks and page.mend
    assert page.wrong and page.right and page.wrong != page.right
    assert all(len(line) <= 120 for line in (*page.wrong.split("\n"), *page.right.split("\n")))


def test_a_page_is_found_by_code_and_by_name() -> None:
    assert codes.page(" f204 ") is codes.page("unit-mismatch") is codes.pages()["F204"]


@pytest.mark.parametrize(
    ("wrong", "near"), [("F240", "`F[24]04`"), ("unit-mismach", "`unit-mismatch`"), ("", "lists")]
)
def test_an_unknown_code_suggests_one(wrong: str, near: str) -> None:
    with pytest.raises(InputProblem, match=near):
        codes.page(wrong)


def test_explain_prints_a_page() -> None:
    found = CliRunner().invoke(cli, ["rules", "explain", "F204"])
    assert found.exit_code == 0
    page = codes.page("F204")
    for text in (page.title, "unit-mismatch", page.wrong, page.right):
        assert text in found.output


def test_explain_lists_every_code() -> None:
    found = CliRunner().invoke(cli, ["rules", "explain"])
    assert found.exit_code == 0
    assert all(code in found.output for code in codes.pages())


def test_explain_as_json() -> None:
    runner = CliRunner()
    one = json.loads(runner.invoke(cli, ["rules", "explain", "f601", "--json"]).output)
    assert one["code"] == "F601" and one["names"] and one["wrong"] != one["right"]
    every = json.loads(runner.invoke(cli, ["rules", "explain", "--json"]).output)
    assert [p["code"] for p in every["codes"]] == [*codes.pages()]


def test_explain_of_an_unknown_code_could_not_run() -> None:
    found = CliRunner().invoke(cli, ["rules", "explain", "F999"])
    assert found.exit_code == 2
    assert "There is no lint code `F999`" in found.output
