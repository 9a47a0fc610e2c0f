"""`fitcheck rules lint`, `test` and `prove`: what a formula editor is told, and exit statuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fitcheck.cli.main import cli
from fitcheck.cli.rules.layout import Progress
from fitcheck.engine.api import rules_for
from fitcheck.engine.checks import check_roots
from fitcheck.engine.loading import roots_of
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.opened import open_rules
from fitcheck.engine.workshop.prove import PROVED, REFUTED, SAMPLED, Proof, prove

RULES = rules_for()
ALL = everything(RULES).formulas
EXTRA = """\
id: extra
title: Extra
status: draft
unit: byte
live: [forward]
counts: A few bytes for every sequence.
symbols:
  b: {from: flags.batch_size, unit: sequence, min: 1, integer: true, meaning: micro-batch size}
constants:
  rate: {value: 4, unit: byte/sequence, meaning: bytes of one sequence}
cases:
  - id: all
    expr: EXPR
    says: a rate for each
claims: CLAIMS
examples:
  - {name: three, given: {b: 3}, expect: EXPECT}
"""


def call(*args: str, status: int = 0) -> str:
    found = CliRunner(env={"COLUMNS": "100"}).invoke(cli, ["rules", *args])
    assert found.exit_code == status, found.output
    return found.output


def lay(
    folder: Path,
    expr: str = "b * rate",
    expect: str = "12",
    claims: str = "{nonnegative: true, rises_with: [b]}",
) -> str:
    """An overlay with one more component."""
    text = EXTRA.replace("EXPR", expr).replace("EXPECT", expect).replace("CLAIMS", claims)
    (folder / "extra.yaml").write_text(text, encoding="utf-8")
    return str(folder)


# --- lint ----------------------------------------------------------------------------------------


def test_the_bundled_rules_are_clean() -> None:
    assert call("lint").startswith("No problem in ")


def test_lint_prints_every_problem_with_its_place(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="c * rate", expect="13")
    text = call("lint", folder, status=1)
    assert f"{tmp_path}/extra.yaml:13:11  F201 unknown-symbol" in text
    assert "\n" + " " * 20 + "^\n" in text
    assert text.rstrip().endswith("fitcheck rules explain F201")


def test_lint_as_json_has_what_the_engine_reports(tmp_path: Path) -> None:
    folder = lay(tmp_path, expect="13")
    data = json.loads(call("lint", folder, "--json", status=1))
    assert [(p["code"], p["line"], p["message"]) for p in data["problems"]] == [
        (p.code, p.mark.line, p.message) for p in check_roots(roots_of([folder]))
    ]
    assert data["files"] > 100 and data["not_read"] == []
    assert json.loads(call("lint", "--json"))["problems"] == []


def test_lint_says_which_files_nothing_reads(tmp_path: Path) -> None:
    folder = lay(tmp_path)
    stray = tmp_path / "formula" / "lost.yaml"
    stray.parent.mkdir()
    stray.write_text("id: lost\n", encoding="utf-8")
    assert f"{stray} is not read" in call("lint", folder)
    assert json.loads(call("lint", folder, "--json"))["not_read"] == [str(stray)]


@pytest.mark.parametrize("command", ["lint", "test", "prove", "diff"])
def test_a_useless_folder_could_not_run(command: str, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("text", encoding="utf-8")
    assert "no rule file in it" in call(command, str(tmp_path), status=2)
    assert "is a file; give the folder" in call(command, str(file), status=2)
    assert "is no folder" in call(command, str(tmp_path / "none"), status=2)


@pytest.mark.parametrize("command", ["lint", "test", "prove"])
def test_a_file_that_is_no_yaml_is_a_problem_and_no_traceback(command: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: [", encoding="utf-8")
    found = CliRunner().invoke(cli, ["rules", command, str(tmp_path)])
    assert found.exit_code in (1, 2)
    assert "F100" in found.output or "bad: not evaluated" in found.output
    assert "Traceback" not in found.output and "internal error" not in found.output


def test_flags_that_cannot_be_read_could_not_run(tmp_path: Path) -> None:
    (tmp_path / "formulas").mkdir()
    (tmp_path / "formulas" / "flags.yaml").write_text("flags: {a: {}}\n", encoding="utf-8")
    assert "F10" in call("lint", str(tmp_path), status=1)
    assert "F10" in call("test", str(tmp_path), status=2)
    assert "F10" in call("prove", str(tmp_path), status=2)


# --- test ----------------------------------------------------------------------------------------


def test_every_bundled_example_comes_out() -> None:
    data = json.loads(call("test", "--json"))
    assert len(data["examples"]) == sum(len(f.examples) for f in ALL.values())
    assert all(e["expected"] == e["got"] and not e["problem"] for e in data["examples"])
    assert data["cases_without_example"] == {} and data["skipped"] == []


def test_an_example_is_printed_with_both_numbers(tmp_path: Path) -> None:
    folder = lay(tmp_path, expect="1_300")
    text = call("test", folder, "--only", "extra", status=1)
    line = next(line for line in text.split("\n") if "WRONG" in line)
    assert line.split()[:3] == ["WRONG", "1,300", "12"]
    assert "(1,288 fewer)" in text and f"[{tmp_path}/extra.yaml:17:42]" in text
    assert "1 example, 1 wrong." in text


def test_an_example_that_gives_too_little(tmp_path: Path) -> None:
    file = tmp_path / "extra.yaml"
    lay(tmp_path)
    file.write_text(file.read_text(encoding="utf-8").replace("{b: 3}", "{}"), encoding="utf-8")
    assert "no value is given for `b`" in call("test", str(tmp_path), "--only", "extra", status=1)


def test_a_division_by_zero_is_a_wrong_example(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="b * rate / (b - b)")
    assert "cannot be evaluated" in call("test", folder, "--only", "extra", status=1)


def test_formulas_that_cannot_be_read_are_skipped_and_said(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="c * rate")
    text = call("test", folder, status=1)
    assert "extra: not evaluated" in text and "all as expected" in text
    assert "has problems that come first" in call("test", folder, "--only", "extra", status=2)


def test_only_of_an_unknown_id_suggests_one() -> None:
    assert "Did you mean `total`?" in call("test", "--only", "totl", status=2)


# --- prove ---------------------------------------------------------------------------------------


def test_the_bundled_claims_hold() -> None:
    claims = json.loads(call("prove", "--json"))["claims"]
    amounts = Counter(c["verdict"] for c in claims)
    assert amounts[REFUTED] == 0
    assert amounts[PROVED] >= 100
    named = {(f.id, n) for f in ALL.values() for n in f.claims.get("rises_with", ())}
    assert named == {
        (c["formula"], c["claim"].removeprefix("rises with "))
        for c in claims
        if c["claim"].startswith("rises with ") and "banded" not in c["claim"]
    }


def proofs(folder: str, name: str = "extra") -> list[Proof]:
    opened = open_rules(roots_of([folder]))
    return list(prove(opened.rules, opened.rules.formula(name)))


def test_max_and_if_are_split_into_branches(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="max(b * rate, 2 * b * rate if b > 2 * b else b * rate)")
    verdicts = {p.claim: p.verdict for p in proofs(folder)}
    assert verdicts["never negative"] == PROVED


def test_what_cannot_be_proved_is_tried_on_a_sample(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="rate * (b * b - b) / b + rate * 2 / b", expect="0")
    verdicts = {p.claim: p.verdict for p in proofs(folder)}
    assert verdicts["rises with b"] in (SAMPLED, PROVED)  # (b - 1) + 2 / b never falls from 1 on


def test_a_counter_example_has_the_numbers_of_the_file(tmp_path: Path) -> None:
    folder = lay(tmp_path, claims="{nonnegative: true, falls_with: [b]}")
    text = " ".join(call("prove", folder, "--only", "extra", status=1).split())
    assert "REFUTED falls with b: in example `three`, b 3 -> 4 takes the result from" in text
    assert "from 12 byte to 16 byte" in text and f"[{tmp_path}/extra.yaml:15:1]" in text
    assert "1 proved, 0 sampled, 1 refuted" in text


def test_a_claim_that_only_fails_elsewhere_is_found(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="max(rate * b - 2 * rate, 2 * rate - rate * b)", expect="4")
    (found,) = [p for p in proofs(folder) if p.claim == "rises with b"]
    assert found.verdict == REFUTED and "->" in found.how


def test_a_negative_result_is_a_counter_example(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="rate * b - 2 * rate * 2 * 2", expect="-20")
    found = next(p for p in proofs(folder) if p.claim == "never negative")
    assert found == Proof(
        "extra",
        f"{tmp_path}/extra.yaml:15:1",
        "",
        "never negative",
        REFUTED,
        "example `three` gives -20 byte",
    )


def test_a_negative_result_outside_the_examples_is_found(tmp_path: Path) -> None:
    folder = lay(tmp_path, expr="rate * b - 2 * rate", expect="4")
    found = next(p for p in proofs(folder) if p.claim == "never negative")
    assert (found.verdict, found.how) == (REFUTED, "b = 1, rate = 4 gives -4 byte")


@pytest.mark.parametrize(
    ("expr", "expect", "verdict"), [("b * rate", "12", PROVED), ("12 - b * rate", "0", REFUTED)]
)
def test_the_result_rises_with_a_banded_constant(
    expr: str, expect: str, verdict: str, tmp_path: Path
) -> None:
    folder = Path(lay(tmp_path, expr=expr, expect=expect, claims="{no_direction: {b: a test}}"))
    file = folder / "extra.yaml"
    text = file.read_text(encoding="utf-8").replace("value: 4,", "low: 3, value: 4, high: 5,")
    file.write_text(text, encoding="utf-8")
    (found,) = proofs(str(folder))
    assert (found.claim, found.verdict) == ("rises with the banded rate", verdict)


def test_progress_is_silent_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress("working")
    assert capsys.readouterr().err == ""


def test_interrupting_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fitcheck.cli.rules.proving.prove", interrupted)
    assert call("prove", status=130).strip() == ""
