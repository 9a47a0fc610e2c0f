"""`fitcheck rules golden` and `docs`: pages that are checked against the rules."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from fitcheck.cli.main import cli
from fitcheck.engine.api import rules_for
from fitcheck.engine.workshop import golden
from fitcheck.engine.workshop.reference import Configuration, configurations, evaluate

ROOT = Path(__file__).parents[1]
RULES = rules_for()


def call(*args: str, status: int = 0) -> str:
    found = CliRunner().invoke(cli, ["rules", *args])
    assert found.exit_code == status, found.output
    return found.output


def test_the_golden_appendix_is_up_to_date() -> None:
    assert (ROOT / "docs/golden.md").read_text(encoding="utf-8") == golden.page(RULES)
    assert "1 page up to date." in call("golden")


def test_the_appendix_has_every_number_exactly() -> None:
    page = golden.page(RULES)
    for configuration in configurations():
        outcome = evaluate(RULES, configuration)
        assert f"`{' '.join(golden.command(RULES, configuration))}`" in page
        total = "serving_total" if configuration.mode else "total"
        assert f"{outcome.values[total]:,} |" in page


@pytest.mark.parametrize("configuration", configurations(), ids=lambda c: c.id)
def test_the_printed_command_gives_the_printed_numbers(configuration: Configuration) -> None:
    words = golden.command(RULES, configuration)[1:]
    found = CliRunner().invoke(cli, [*words, "--source", "catalogue", "--json"])
    assert found.exit_code in (0, 1)
    # Notes on standard error follow the JSON where the runner does not keep the streams apart.
    memory = json.JSONDecoder().raw_decode(found.output)[0]["memory_bytes"]
    outcome = evaluate(RULES, configuration)
    assert {n: outcome.values[n] for n in memory if n in outcome.values} == {
        n: v for n, v in memory.items() if n in outcome.values
    }


def test_a_moved_number_is_shown_and_taken_over(tmp_path: Path) -> None:
    page = tmp_path / "golden.md"
    assert "is missing" in call("golden", "--file", str(page), status=1)
    call("golden", "--write", "--file", str(page))
    assert page.read_text(encoding="utf-8") == golden.page(RULES)
    text = page.read_text(encoding="utf-8").replace("total_high", "total_top")
    page.write_text(text, encoding="utf-8")
    shown = call("golden", "--file", str(page), status=1)
    assert "-| total_top |" in shown and "+| total_high |" in shown
    call("golden", "--write", "--file", str(page))
    assert "up to date" in call("golden", "--file", str(page))


def test_in_an_installed_package_there_is_no_docs_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(golden, "checkout", lambda: None)
    for command in (("golden",), ("golden", "--write"), ("docs", "--check")):
        assert "source checkout" in call(*command, status=2)


def test_docs_writes_and_checks_the_generated_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ModuleType("pages")
    made.pages = lambda rules: {"a.md": "one\n", "docs/deep/b.md": f"{len(rules.formulas)}\n"}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fitcheck.engine.workshop.pages", made)
    target = ("--to", str(tmp_path))
    assert "2 of 2 pages out of date" in call("docs", "--check", *target, status=1)
    assert "2 pages, 2 written." in call("docs", *target)
    assert (tmp_path / "deep/b.md").read_text(encoding="utf-8") == f"{len(RULES.formulas)}\n"
    assert "2 pages up to date." in call("docs", "--check", *target)
    (tmp_path / "a.md").write_text("two\n", encoding="utf-8")
    assert "-two\n+one" in call("docs", "--check", *target, status=1)
